/** Serves the manual over HTTP: pages, their Markdown, and pictures; pages load nothing from other servers. */

import { percentDecoded } from '../lib/text/printable-text.ts';
import { frame, otherLanguage, POLICY, ROOT } from './frame.ts';
import { renderMarkdown } from './markdown.ts';
import { counterpartOf, PAGES, type Page, PHOTOS, PICTURES } from './pages.ts';
import { languageOf } from './search.ts';
import { missingBody, searchResults } from './search-page.ts';

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
 * `/docs`, `/docs/NAME` (HTML), `/docs/NAME.md` (Markdown), `/docs/img/NAME.svg` and `.png`; undefined for any
 * other path. Only paths in the tables exist; no other file is read.
 * @param path the path of the request's URL, without a query
 * @param query the search terms of `/docs?q=…`
 * @param version of the program, shown on every page
 * @param wanted the language of the search page, `en` or `zh-CN`, as in `/docs?q=…&lang=zh-CN`; by default that of the query
 */
export function docsPage(
  path: string,
  query?: string,
  version = '',
  wanted?: string,
): Response | undefined {
  if (path === ROOT || path === `${ROOT}/`) {
    const words = query?.trim() ?? '';
    if (words === '') return page(PAGES[0]!, version);
    const language = wanted === 'zh-CN' || wanted === 'en' ? wanted : languageOf(words);
    const body = searchResults(words, ROOT, language);
    const asked = new URLSearchParams({ q: words, lang: otherLanguage(language) });
    const other = `${ROOT}?${asked}`;
    const html = frame({ title: words, body, query: words, version, language, other });
    return respond(html, 'text/html');
  }
  if (!path.startsWith(`${ROOT}/`)) return undefined;
  const name = path.slice(ROOT.length + 1);
  const picture = /^img\/([\w-]+\.(?:svg|png))$/.exec(name)?.[1];
  if (picture !== undefined) return pictureNamed(picture);
  const bare = name.replace(/\.md$/, '');
  const found = PAGES.find((one) => one.name === bare);
  if (found === undefined) return undefined;
  return name === bare ? page(found, version) : respond(found.text, 'text/markdown');
}

/** What a browser gets for a path of which {@link docsPage} knows nothing: 404, and what the path may mean. */
export function missingPage(path: string, version: string): Response {
  const name = percentDecoded(path.slice(ROOT.length + 1));
  const language = name.includes('zh-CN') ? 'zh-CN' : languageOf(name);
  const body = missingBody(name, ROOT, language);
  // A name with Chinese words is answered in Chinese, however it ends.
  const otherName = language === 'en' ? `${name}.zh-CN` : name.replace(/\.?zh-CN/g, '');
  const other = languageOf(otherName) === 'en' ? `${ROOT}/${encodeURIComponent(otherName)}` : ROOT;
  const { headers } = respond('', 'text/html');
  const html = frame({ title: '404', body, version, language, other });
  return new Response(html, { status: 404, headers });
}

function pictureNamed(name: string): Response | undefined {
  if (Object.hasOwn(PHOTOS, name)) {
    return new Response(Bun.file(PHOTOS[name]!), {
      headers: { ...SAFE, 'content-type': 'image/png' },
    });
  }
  if (!Object.hasOwn(PICTURES, name)) return undefined;
  // A picture that is opened directly is a document: it may hold styles and nothing else.
  const alone = "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'";
  return respond(PICTURES[name]!, 'image/svg+xml', alone);
}

function page(one: Page, version: string): Response {
  const key = `${version}/${one.name}`;
  let html = rendered.get(key);
  if (html === undefined) {
    const english = bothThemes(renderMarkdown(one.text, address));
    const body =
      one.language === 'en' ? english : english.replaceAll('>Copy</button>', '>复制</button>');
    const counterpart = counterpartOf(one);
    const other = counterpart && `${ROOT}/${counterpart.name}`;
    html = frame({ title: one.title, body, page: one, version, other });
    rendered.set(key, html);
  }
  return respond(html, 'text/html');
}

/** Pictures of the page exist twice, for light and for dark themes: the Markdown names the light one. */
const bothThemes = (html: string): string =>
  html.replace(
    /<img src="(\/docs\/img\/[\w-]+)-light\.png" alt="([^"]*)">/g,
    '<picture><source media="(prefers-color-scheme: dark)" srcset="$1-dark.png"><img src="$1-light.png" alt="$2" loading="lazy"></picture>',
  );

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
  const picture = /^img\/([\w-]+\.(?:svg|png))$/.exec(bare)?.[1];
  if (picture !== undefined) {
    const known = Object.hasOwn(PICTURES, picture) || Object.hasOwn(PHOTOS, picture);
    return known ? `${ROOT}/img/${picture}` : undefined;
  }
  const name = /^([\w-]+(?:\.zh-CN)?)\.md$/.exec(bare)?.[1];
  const known = PAGES.some((one) => one.name === name);
  return known ? `${ROOT}/${name}${behind}` : undefined;
}
