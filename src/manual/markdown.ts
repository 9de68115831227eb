/** Renders the Markdown of the manual to HTML; everything is escaped, so no HTML in a page passes. */

import { escapeHtml, unescapeHtml } from './escape.ts';

/** The address of a link target; undefined: the link stays text. */
export type Resolve = (target: string) => string | undefined;

/** The anchor of a heading, as on GitHub: lower case, dashes for spaces, no punctuation. */
export function anchorOf(heading: string): string {
  return heading
    .toLowerCase()
    .replace(/\[([^\]]*)\]\([^)]*\)/g, '$1')
    .replace(/[^\p{L}\p{N}_\- ]/gu, '')
    .trim()
    .replaceAll(' ', '-');
}

/** Shown by the script of the page, which knows whether there is a clipboard. */
const COPY = '<button class="copy" type="button" data-done="✓" hidden="hidden">Copy</button>';
/** From so many columns on, a row of a table is a block on a phone, with the headings before the cells. */
const MIN_STACKED = 3;
/** A table of at most so many columns never scrolls: on a small screen the code in it breaks between its words. */
const MAX_FITTING = 3;

const OPTIONS: Bun.markdown.Options = { noIndentedCodeBlocks: true, strikethrough: false };

/** The body of a page; `resolve` gives the addresses of links and pictures. */
export function renderMarkdown(text: string, resolve: Resolve): string {
  const anchors = new Set<string>();
  let rows: string[][] = [];
  let cells: string[] = [];
  const cell = (html: string) => {
    cells.push(html);
    return '';
  };
  return Bun.markdown.render(
    text,
    {
      text: escapeHtml,
      // Its characters came as text already.
      html: (escaped) => (escaped.startsWith('&lt;!--') ? '' : escaped),
      heading: (html, { level }) => {
        const id = escapeHtml(unique(anchorOf(textOf(html)), anchors));
        // The heading of a section is a link to itself, so that its address can be copied.
        const linked = level === 1 || html.includes('<a ');
        const title = linked ? html : `<a href="#${id}">${html}</a>`;
        return `<h${level} id="${id}">${title}</h${level}>\n`;
      },
      paragraph: (html) => `<p>${html}</p>\n`,
      blockquote: (html) => `<blockquote>${html.trimEnd()}</blockquote>\n`,
      code: (html, meta) => codeBlock(unescapeHtml(html), meta?.language ?? ''),
      list: (html, { ordered }) => (ordered ? `<ol>\n${html}</ol>\n` : `<ul>\n${html}</ul>\n`),
      listItem: (html) => `<li>${html.trimEnd()}</li>\n`,
      hr: () => '<hr>\n',
      th: cell,
      td: cell,
      tr: () => {
        rows.push(cells);
        cells = [];
        return '';
      },
      table: () => {
        const html = tableOf(rows);
        rows = [];
        return html;
      },
      strong: (html) => `<strong>${html}</strong>`,
      emphasis: (html) => `<em>${html}</em>`,
      codespan: (html) => `<code>${html}</code>`,
      link: (html, { href }) => {
        const address = resolve(href);
        return address === undefined ? html : `<a href="${escapeHtml(address)}">${html}</a>`;
      },
      image: (html, { src }) => {
        const address = resolve(src);
        return address === undefined
          ? html
          : `<img src="${escapeHtml(address)}" alt="${escapeHtml(textOf(html))}">`;
      },
    },
    OPTIONS,
  );
}

function unique(id: string, anchors: Set<string>): string {
  let name = id;
  for (let n = 1; anchors.has(name); n++) name = `${id}-${n}`;
  anchors.add(name);
  return name;
}

const textOf = (html: string): string => unescapeHtml(html.replace(/<[^>]*>/g, ''));

function codeBlock(code: string, language: string): string {
  const name = language === '' ? '' : ` class="language-${escapeHtml(language)}"`;
  const lines = code.replace(/\n$/, '');
  return `<div class="code"><pre tabindex="0"><code${name}>${highlight(lines, language)}\n</code></pre>${COPY}</div>\n`;
}

/** HTML in whose code a line may end between two words: `OTEL_|SDK`, `/v1/|memory`, `Hopgate|Down`. */
const breakable = (html: string) =>
  html.replace(/<code>[^<]*/g, (code) =>
    code.replace(
      /[_/,:=](?=[\w"'{&….])|[a-zA-Z]\.(?=\w)|[a-z](?=[A-Z])/g,
      (before) => `${before}<wbr>`,
    ),
  );

function tableOf([headings = [], ...body]: readonly string[][]): string {
  const stacked = headings.length >= MIN_STACKED;
  const content = headings.length <= MAX_FITTING ? breakable : (html: string) => html;
  const labels = headings.map((heading) => escapeHtml(textOf(heading)));
  const cell = (html: string, at: number) => {
    // The first cell is the heading of its block.
    const label = stacked && at > 0 && labels[at] ? ` data-label="${labels[at]}"` : '';
    return `<td${label}>${content(html)}</td>`;
  };
  const head = headings.map((html) => `<th>${content(html)}</th>`).join('');
  const rows = body.map((cells) => `<tr>${cells.map(cell).join('')}</tr>`);
  const open = stacked ? '<table class="stacked">' : '<table>';
  return `<div class="table" tabindex="0">${open}\n<thead><tr>${head}</tr></thead>\n<tbody>\n${rows.join('\n')}\n</tbody></table></div>\n`;
}

/** Every token begins where the last one ended, so that a pass over the code takes linear time. */
const TOKEN = /\s+|"(?:[^"\\\n]|\\.)*"?|'[^'\n]*'?|#[^\n]*|\/\/[^\n]*|[\p{L}\p{N}_$.-]+|./gu;

interface Language {
  /** What begins a comment. */
  readonly comment: '#' | '//' | '';
  /** A word or string before a colon is a key. */
  readonly keys?: boolean;
  readonly words?: ReadonlySet<string>;
}

const words = (text: string): ReadonlySet<string> => new Set(text.split(' '));
const SCRIPT: Language = {
  comment: '//',
  words: words('import from const let await async for of new return if else function export'),
};
const LANGUAGES: Readonly<Record<string, Language>> = {
  yaml: { comment: '#', keys: true, words: words('true false null') },
  json: { comment: '', keys: true, words: words('true false null') },
  toml: { comment: '#', words: words('true false') },
  sh: { comment: '#', words: words('curl hopgate npm docker export sudo') },
  ini: { comment: '#' },
  nginx: { comment: '#', words: words('server location proxy_pass upstream listen') },
  dockerfile: { comment: '#', words: words('FROM RUN COPY ENV EXPOSE USER VOLUME ENTRYPOINT CMD') },
  python: {
    comment: '#',
    words: words('import from def for in with as return if else print None True False'),
  },
  ts: SCRIPT,
  js: SCRIPT,
};

/** Escaped HTML; code of an unknown language is only escaped. */
export function highlight(code: string, name: string): string {
  const language = Object.hasOwn(LANGUAGES, name) ? LANGUAGES[name]! : undefined;
  if (language === undefined) return escapeHtml(code);
  let out = '';
  for (const match of code.matchAll(TOKEN)) {
    const [token] = match;
    const kind = kindOf(token, language, code[match.index - 1], code[match.index + token.length]);
    // `#` inside a word, as in a URL, begins no comment: what follows it is read as code.
    out += kind === '' ? escapeHtml(token) : `<span class="${kind}">${escapeHtml(token)}</span>`;
  }
  return out;
}

/** The class of a token: `c` comment, `k` key or keyword, `s` string, `n` number; '' for all others. */
function kindOf(
  token: string,
  { comment, keys, words: known }: Language,
  before: string | undefined,
  after: string | undefined,
): string {
  if (comment !== '' && token.startsWith(comment)) {
    return before === undefined || /\s/.test(before) ? 'c' : '';
  }
  if (keys === true && after === ':' && /^["'\p{L}_$]/u.test(token)) return 'k';
  if (/^["']/.test(token) && token.length > 1) return 's';
  if (/^\d[\d._]*$/.test(token)) return 'n';
  return known?.has(token) === true && (before === undefined || /[\s|(]/.test(before)) ? 'k' : '';
}
