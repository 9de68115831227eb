/** The frame of every page of the manual: name and version, search, contents by group, previous and next page. */

import { policyHash } from '../lib/text/sha256.ts';
import { escapeHtml } from './escape.ts';
import { GROUPS, inLanguage, type Language, type Page } from './pages.ts';
import { SCRIPT } from './script.ts';
import { sectionsOf } from './sections.ts';
import { STYLE } from './stylesheet.ts';

export const ROOT = '/docs';

/** One style sheet and one script by their hashes, pictures of this server, and its own search form. */
export const POLICY = [
  "default-src 'none'",
  `style-src ${policyHash(STYLE)}`,
  `script-src ${policyHash(SCRIPT)}`,
  // `data:` is for the empty icon, without which browsers ask for /favicon.ico.
  "img-src 'self' data:",
  "base-uri 'none'",
  "form-action 'self'",
  "frame-ancestors 'none'",
].join('; ');

const TEXTS = {
  en: {
    skip: 'Skip to the page',
    search: 'Search',
    searchLabel: 'Search the manual',
    contents: 'Contents',
    exchanges: 'Exchanges',
    previous: 'Previous',
    next: 'Next',
    themes: 'Theme: that of the system|Theme: light|Theme: dark',
    other: '中文',
  },
  'zh-CN': {
    skip: '跳到正文',
    search: '搜索',
    searchLabel: '搜索手册',
    contents: '目录',
    exchanges: '请求记录',
    previous: '上一页',
    next: '下一页',
    themes: '主题：跟随系统|主题：浅色|主题：深色',
    other: 'English',
  },
} as const;

export const otherLanguage = (language: Language): Language => (language === 'en' ? 'zh-CN' : 'en');

export interface Framed {
  readonly title: string;
  /** HTML. */
  readonly body: string;
  /** Version of the program. */
  readonly version: string;
  /** Undefined for the page of search results. */
  readonly page?: Page;
  /** Of a page of search results. */
  readonly language?: Language;
  /** The path of the same page in the other language. */
  readonly other?: string;
  readonly query?: string;
}

function sectionList(page: Page): string {
  const items = sectionsOf(page, 2)
    .filter(({ anchor }) => anchor !== '')
    .map(({ anchor, heading }) => `<li><a href="#${anchor}">${escapeHtml(heading)}</a></li>`);
  return items.length < 2 ? '' : `\n<ul class="within">\n${items.join('\n')}\n</ul>`;
}

function contents(language: Language, open: Page | undefined): string {
  return GROUPS.map(({ title, pages }) => {
    const links = inLanguage(pages, language).map((one) => {
      const mark = one === open ? ' aria-current="page"' : '';
      const link = `<a href="${ROOT}/${one.name}"${mark}>${escapeHtml(one.title)}</a>`;
      return `<li>${link}${one === open ? sectionList(one) : ''}</li>`;
    });
    return `<h2>${escapeHtml(title[language])}</h2>\n<ul>\n${links.join('\n')}\n</ul>`;
  }).join('\n');
}

function neighbours(page: Page): string {
  const texts = TEXTS[page.language];
  const all = GROUPS.flatMap(({ pages }) => inLanguage(pages, page.language));
  const at = all.indexOf(page);
  const link = (to: Page | undefined, rel: 'prev' | 'next', label: string) =>
    to === undefined
      ? ''
      : `<a class="${rel}" rel="${rel}" href="${ROOT}/${to.name}"><small>${label}</small>${escapeHtml(to.title)}</a>`;
  return at < 0
    ? ''
    : `<footer>${link(all[at - 1], 'prev', texts.previous)}${link(all[at + 1], 'next', texts.next)}</footer>`;
}

/** The whole HTML document. */
export function frame(framed: Framed): string {
  const { title, body, version, page, query = '', other } = framed;
  const language = page?.language ?? framed.language ?? 'en';
  const texts = TEXTS[language];
  // A search in a Chinese page leads to Chinese pages, in whatever language it is asked.
  const asks = language === 'en' ? '' : `<input type="hidden" name="lang" value="${language}">`;
  const its = otherLanguage(language);
  const toOther =
    other === undefined
      ? ''
      : `<a href="${escapeHtml(other)}" lang="${its}" hreflang="${its}">${texts.other}</a>`;
  return `<!doctype html>
<html lang="${language}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escapeHtml(title)} · hopgate</title>
<link rel="icon" href="data:,">
<style>${STYLE}</style>
<script>${SCRIPT}</script>
</head>
<body>
<a class="skip" href="#content">${texts.skip}</a>
<header>
<a class="brand" href="${ROOT}">hopgate <small>${escapeHtml(version)}</small></a>
<form action="${ROOT}" role="search"><input type="search" name="q" value="${escapeHtml(query)}" placeholder="${texts.search}" aria-label="${texts.searchLabel}" maxlength="200">${asks}</form>
<a class="to-contents" href="#contents">${texts.contents}</a>
<a href="/ui">${texts.exchanges}</a>
${toOther}
<button type="button" class="theme" data-names="${texts.themes}" hidden></button>
</header>
<div class="frame">
<main id="content">
${body}
${page === undefined ? '' : neighbours(page)}
</main>
<nav id="contents" aria-label="${texts.contents}">
${contents(language, page)}
</nav>
</div>
</body>
</html>
`;
}
