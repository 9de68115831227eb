/** Renders the Markdown of the manual to HTML; everything is escaped, so no HTML in a page passes. */

import { escapeHtml } from './escape.ts';
import { highlight } from './highlight.ts';
import { inline, type Resolve } from './markdown-inline.ts';

/** The anchor of a heading, as on GitHub: lower case, dashes for spaces, no punctuation. */
export function anchorOf(heading: string): string {
  return heading
    .toLowerCase()
    .replace(/\[([^\]]*)\]\([^)]*\)/g, '$1')
    .replace(/[^\p{L}\p{N}_\- ]/gu, '')
    .trim()
    .replaceAll(' ', '-');
}

const FENCE = /^(\s*)```\s*([\w-]*)\s*$/;
const HEADING = /^(#{1,6})\s+(.*?)\s*#*$/;
const ITEM = /^(\s*)([-*]|\d+\.)\s+(.*)$/;
const RULE = /^\s*(---+|\*\*\*+)\s*$/;
const COMMENT = /^<!--.*-->$/;

const isTableRow = (line: string) => line.trimStart().startsWith('|');
const startsBlock = (line: string) =>
  line.trim() === '' ||
  FENCE.test(line) ||
  HEADING.test(line) ||
  ITEM.test(line) ||
  line.startsWith('>');

/** The body of a page; `resolve` gives the addresses of links and pictures. */
export function renderMarkdown(text: string, resolve: Resolve): string {
  return blocks(text.replaceAll('\r\n', '\n').split('\n'), resolve, new Set());
}

function blocks(lines: readonly string[], resolve: Resolve, anchors: Set<string>): string {
  const out: string[] = [];
  // The heading of a section is a link to itself, so that its address can be copied.
  const title = (words: string, level: number, id: string) => {
    const html = inline(words, resolve);
    return level === 1 || html.includes('<a ') ? html : `<a href="#${escapeHtml(id)}">${html}</a>`;
  };
  let at = 0;
  while (at < lines.length) {
    const line = lines[at]!;
    const heading = HEADING.exec(line);
    const from = at;
    if (line.trim() === '' || COMMENT.test(line)) at++;
    else if (FENCE.test(line)) {
      at = endOfFence(lines, at);
      out.push(fence(lines.slice(from, at)));
    } else if (heading !== null) {
      at++;
      const level = heading[1]!.length;
      const id = unique(anchorOf(heading[2]!), anchors);
      out.push(`<h${level} id="${escapeHtml(id)}">${title(heading[2]!, level, id)}</h${level}>`);
    } else if (RULE.test(line)) {
      at++;
      out.push('<hr>');
    } else if (isTableRow(line) && /^[\s|:-]+$/.test(lines[at + 1] ?? 'x')) {
      while (at < lines.length && isTableRow(lines[at]!)) at++;
      out.push(table(lines.slice(from, at), resolve));
    } else if (line.startsWith('>')) {
      while (at < lines.length && lines[at]!.startsWith('>')) at++;
      const inner = lines.slice(from, at).map((one) => one.replace(/^>\s?/, ''));
      out.push(`<blockquote>${blocks(inner, resolve, anchors)}</blockquote>`);
    } else if (ITEM.test(line)) {
      at = endOfList(lines, at);
      out.push(list(lines.slice(from, at), resolve, anchors));
    } else {
      at++;
      while (at < lines.length && !startsBlock(lines[at]!)) at++;
      out.push(`<p>${inline(lines.slice(from, at).join('\n'), resolve)}</p>`);
    }
  }
  return out.join('\n');
}

function unique(id: string, anchors: Set<string>): string {
  let name = id;
  for (let n = 1; anchors.has(name); n++) name = `${id}-${n}`;
  anchors.add(name);
  return name;
}

function endOfFence(lines: readonly string[], from: number): number {
  let at = from + 1;
  while (at < lines.length && !/^\s*```\s*$/.test(lines[at]!)) at++;
  return Math.min(at + 1, lines.length);
}

// Shown by the script of the page, which knows whether there is a clipboard.
const COPY = '<button class="copy" type="button" data-done="✓" hidden="hidden">Copy</button>';

function fence(lines: readonly string[]): string {
  const [, indent = '', language = ''] = FENCE.exec(lines[0]!) ?? [];
  const closed = /^\s*```\s*$/.test(lines.at(-1)!) && lines.length > 1;
  const code = lines
    .slice(1, closed ? -1 : undefined)
    .map((line) => (line.startsWith(indent) ? line.slice(indent.length) : line))
    .join('\n');
  const name = language === '' ? '' : ` class="language-${escapeHtml(language)}"`;
  return `<div class="code"><pre tabindex="0"><code${name}>${highlight(code, language)}\n</code></pre>${COPY}</div>`;
}

/** A list continues after blank lines while the next line is indented or another item. */
function endOfList(lines: readonly string[], from: number): number {
  const numbered = isNumbered(lines[from]!);
  const goesOn = (line: string) =>
    /^\s{2,}\S/.test(line) || (ITEM.test(line) && isNumbered(line) === numbered);
  let at = from + 1;
  while (at < lines.length) {
    const line = lines[at]!;
    if (!goesOn(line) && !(line.trim() === '' && goesOn(lines[at + 1] ?? ''))) return at;
    at++;
  }
  return at;
}

const isNumbered = (item: string) => /^\s*\d/.test(item);

function list(lines: readonly string[], resolve: Resolve, anchors: Set<string>): string {
  const base = /^\s*/.exec(lines[0]!)![0];
  const items: string[][] = [];
  for (const line of lines) {
    const item = ITEM.exec(line);
    if (item !== null && item[1]!.length <= base.length) items.push([item[3]!]);
    else items.at(-1)?.push(line.replace(/^\s{1,4}/, ''));
  }
  const rendered = items.map((own) => {
    while (own.at(-1)?.trim() === '') own.pop();
    const simple = !own.slice(1).some((line) => line.trim() === '' || startsBlock(line));
    return `<li>${simple ? inline(own.join('\n'), resolve) : blocks(own, resolve, anchors)}</li>`;
  });
  const name = isNumbered(lines[0]!) ? 'ol' : 'ul';
  return `<${name}>\n${rendered.join('\n')}\n</${name}>`;
}

/** The cells of a row, split at bars that are neither escaped nor in code. */
function cells(row: string): readonly string[] {
  const bare = row.trim().replace(/^\|/, '').replace(/\|$/, '');
  const out = [''];
  let code = false;
  for (let at = 0; at < bare.length; at++) {
    const character = bare[at]!;
    if (character === '\\' && bare[at + 1] === '|') {
      out[out.length - 1] += '|';
      at++;
      continue;
    }
    if (character === '`') code = !code;
    if (character === '|' && !code) out.push('');
    else out[out.length - 1] += character;
  }
  return out.map((cell) => cell.trim());
}

/** From so many columns on, a row of a table is a block on a phone, with the headings before the cells. */
const STACKED = 3;
/** A table of at most so many columns never scrolls: on a small screen the code in it breaks between its words. */
const FITTING = 3;

/** HTML in whose code a line may end between two words: `OTEL_|SDK`, `/v1/|memory`, `Hopgate|Down`. */
const breakable = (html: string) =>
  html.replace(/<code>[^<]*/g, (code) =>
    code.replace(
      /[_/,:=](?=[\w"'{&….])|[a-zA-Z]\.(?=\w)|[a-z](?=[A-Z])/g,
      (before) => `${before}<wbr>`,
    ),
  );

function table(rows: readonly string[], resolve: Resolve): string {
  const headings = cells(rows[0]!);
  const stacked = headings.length >= STACKED;
  const labels = headings.map((heading) => escapeHtml(plainText(heading)));
  const fits = headings.length <= FITTING;
  const cell = (text: string, tag: string, label = '') => {
    const content = inline(text, resolve);
    return `<${tag}${label === '' ? '' : ` data-label="${label}"`}>${fits ? breakable(content) : content}</${tag}>`;
  };
  const head = headings.map((text) => cell(text, 'th')).join('');
  const body = rows.slice(2).map((line) => {
    // The first cell is the heading of its block.
    const label = (at: number) => (stacked && at > 0 ? labels[at] : '');
    return `<tr>${cells(line)
      .map((text, at) => cell(text, 'td', label(at)))
      .join('')}</tr>`;
  });
  const open = stacked ? '<table class="stacked">' : '<table>';
  return `<div class="table" tabindex="0">${open}\n<thead><tr>${head}</tr></thead>\n<tbody>\n${body.join('\n')}\n</tbody></table></div>`;
}

/** Without marks of code, emphasis and links. */
const plainText = (markdown: string) =>
  markdown.replace(/\[([^\]]*)\]\([^)]*\)/g, '$1').replace(/[`*]/g, '');
