/** Serves the manual over HTTP: pages, their Markdown, and pictures; pages load nothing from other servers. */

import { createHash } from 'node:crypto';
import { escapeHtml } from './escape.ts';
import { renderMarkdown } from './markdown.ts';
import { PAGES, type Page, PICTURES } from './pages.ts';
import { searchResults } from './search-page.ts';
import { sectionsOf } from './sections.ts';
import { STYLE } from './stylesheet.ts';

const ROOT = '/docs';
const styleHash = createHash('sha256').update(STYLE).digest('base64');

// One style sheet by its hash, pictures of this server, and its own search form: no script, no frame.
const POLICY = [
  "default-src 'none'",
  `style-src 'sha256-${styleHash}'`,
  // `data:` is for the empty icon, without which browsers ask for /favicon.ico.
  "img-src 'self' data:",
  "base-uri 'none'",
  "form-action 'self'",
  "frame-ancestors 'none'",
].join('; ');

const SAFE = {
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
  'cache-control': 'no-cache',
};

const respond = (body: string, type: string, policy = POLICY): Response =>
  new Response(body, {
    headers: {
      ...SAFE,
      'content-type': `${type}; charset=utf-8`,
      'content-security-policy': policy,
    },
  });

// A page never changes while the program runs, so it is rendered once.
const rendered = new Map<string, string>();

/**
 * `/docs`, `/docs/NAME` (HTML), `/docs/NAME.md` (Markdown), `/docs/img/NAME.svg`; undefined for any
 * other path. Only paths in the tables exist; no file is read.
 * @param path the path of the request's URL, without a query
 * @param query the search terms of `/docs?q=…`
 */
export function docsPage(path: string, query?: string): Response | undefined {
  if (path === ROOT || path === `${ROOT}/`) {
    const words = query?.trim() ?? '';
    if (words === '') return page(PAGES[0]!);
    return respond(
      frame({ title: words, body: searchResults(words, ROOT), query: words }),
      'text/html',
    );
  }
  if (!path.startsWith(`${ROOT}/`)) return undefined;
  const name = path.slice(ROOT.length + 1);
  const picture = /^img\/([\w-]+\.svg)$/.exec(name)?.[1];
  if (picture !== undefined && Object.hasOwn(PICTURES, picture)) {
    // A picture that is opened directly is a document: it may hold styles and nothing else.
    const alone = "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'";
    return respond(PICTURES[picture]!, 'image/svg+xml', alone);
  }
  const bare = name.replace(/\.md$/, '');
  const found = PAGES.find((one) => one.name === bare);
  if (found === undefined) return undefined;
  return name === bare ? page(found) : respond(found.text, 'text/markdown');
}

function page(one: Page): Response {
  let html = rendered.get(one.name);
  if (html === undefined) {
    html = document(one);
    rendered.set(one.name, html);
  }
  return respond(html, 'text/html');
}

const document = (page: Page): string =>
  frame({ title: page.title, body: renderMarkdown(page.text, address), page });

interface Framed {
  readonly title: string;
  /** HTML. */
  readonly body: string;
  /** Undefined for the page of search results. */
  readonly page?: Page;
  readonly query?: string;
}

/** The sections of a page, for the list at its side. */
function sectionList(page: Page): string {
  const items = sectionsOf(page, 2)
    .filter(({ anchor }) => anchor !== '')
    .map(({ anchor, heading }) => `<li><a href="#${anchor}">${escapeHtml(heading)}</a></li>`);
  return items.length < 2 ? '' : `\n<ul class="within">\n${items.join('\n')}\n</ul>`;
}

function frame({ title, body, page: open, query = '' }: Framed): string {
  const links = PAGES.map((one) => {
    const here = one === open;
    const mark = here ? ' aria-current="page"' : '';
    const link = `<a href="${ROOT}/${one.name}"${mark}>${escapeHtml(one.title)}</a>`;
    return `<li>${link}${here ? sectionList(one) : ''}</li>`;
  });
  const language = open?.name.endsWith('zh-CN') ? 'zh-CN' : 'en';
  return `<!doctype html>
<html lang="${language}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escapeHtml(title)} · hopgate</title>
<link rel="icon" href="data:,">
<style>${STYLE}</style>
</head>
<body>
<a class="skip" href="#content">Skip to the page</a>
<div class="frame">
<nav aria-label="Manual">
<form action="${ROOT}" role="search"><input type="search" name="q" value="${escapeHtml(query)}" placeholder="Search" aria-label="Search the manual" maxlength="200"></form>
<ul>
${links.join('\n')}
</ul>
</nav>
<main id="content">
${body}
</main>
</div>
</body>
</html>
`;
}

/**
 * The address of a link in a page: pages and pictures of the manual, anchors in the same page, the web. Links to
 * source files stay text, because those are not served.
 */
export function address(target: string): string | undefined {
  if (/^https?:\/\//i.test(target)) return target;
  if (target.startsWith('#')) return target;
  const [file = '', anchor] = target.replace(/^\.\//, '').split('#', 2);
  const behind = anchor === undefined ? '' : `#${anchor}`;
  const bare = file.replace(/^docs\//, '');
  if (/^(\.\.\/)?README\.zh-CN\.md$/.test(bare)) return `${ROOT}/zh-CN${behind}`;
  const picture = /^img\/([\w-]+\.svg)$/.exec(bare)?.[1];
  if (picture !== undefined) {
    return Object.hasOwn(PICTURES, picture) ? `${ROOT}/img/${picture}` : undefined;
  }
  const name = /^([\w-]+(?:\.zh-CN)?)\.md$/.exec(bare)?.[1];
  const known = PAGES.some((one) => one.name === name);
  return known ? `${ROOT}/${name}${behind}` : undefined;
}
