/** Adds and removes marked blocks in TOML files as text; everything else keeps its bytes. */

import { CLOSE, disabledLines, KEPT, lineBreakOf, linesOf, OPEN } from './marked-lines.ts';

const HEADER = /^\[\[?\s*([^\]#]+?)\s*\]/;

interface Entry {
  /** Offsets of whole lines, line break included. */
  readonly start: number;
  readonly end: number;
  readonly kind: 'table' | 'key' | 'other';
  /** Dotted and without quotes: the table's path, or the key. */
  readonly name: string;
}

/** Splits a document into tables' headers, keys with their (maybe many-lined) values, and the rest. */
function entries(text: string): Entry[] {
  const list: Entry[] = [];
  let at = 0;
  while (at < text.length) {
    const start = at;
    const lineEnd = endOfLine(text, at);
    const line = text
      .slice(at, lineEnd)
      .trim()
      .replace(/^\uFEFF/, '');
    const header = HEADER.exec(line);
    const key = /^((?:"[^"]*"|'[^']*'|[A-Za-z0-9_-]+|\s*\.\s*)+)\s*=/.exec(line);
    if (header !== null) {
      at = lineEnd;
      list.push({ start, end: at, kind: 'table', name: plain(header[1]!) });
    } else if (key !== null) {
      at = endOfValue(text, text.indexOf('=', at + key[0].length - 1) + 1);
      list.push({ start, end: at, kind: 'key', name: plain(key[1]!) });
    } else {
      at = lineEnd;
      list.push({ start, end: at, kind: 'other', name: '' });
    }
  }
  return list;
}

const plain = (name: string) =>
  name
    .replace(/\s*\.\s*/g, '.')
    .replace(/["']/g, '')
    .trim();

function endOfLine(text: string, at: number): number {
  const end = text.indexOf('\n', at);
  return end < 0 ? text.length : end + 1;
}

/** Offset after the line on which the value that begins at `at` ends. */
function endOfValue(text: string, from: number): number {
  let depth = 0;
  let at = from;
  while (at < text.length) {
    const char = text[at]!;
    if (text.startsWith('"""', at) || text.startsWith("'''", at)) {
      const quote = text.slice(at, at + 3);
      let end = text.indexOf(quote, at + 3);
      while (end > 0 && quote === '"""' && text[end - 1] === '\\')
        end = text.indexOf(quote, end + 1);
      at = end < 0 ? text.length : end + 3;
    } else if (char === '"' || char === "'") {
      at++;
      while (at < text.length && text[at] !== char && text[at] !== '\n') {
        at += char === '"' && text[at] === '\\' ? 2 : 1;
      }
      at++;
    } else if (char === '#') at = endOfLine(text, at) - 1;
    else if (char === '\n' && depth === 0) return at + 1;
    else {
      if (char === '[' || char === '{') depth++;
      if (char === ']' || char === '}') depth--;
      at++;
    }
  }
  return text.length;
}

/** What the blocks hold: names of top-level keys, and a table. */
export interface Owned {
  readonly topKeys: readonly string[];
  readonly table: string;
}

export interface TomlChange extends Owned {
  /** Keys of the top level with their values as TOML. */
  readonly top: readonly (readonly [key: string, value: string])[];
  /** Keys of the table. */
  readonly keys: readonly (readonly [key: string, value: string])[];
}

/** A TOML basic string; JSON's escapes are all legal there. */
export const tomlString = (text: string) => JSON.stringify(text);

/** The text with the blocks: top-level keys before the first table, the table at the end. */
export function putBlocks(original: string, change: TomlChange): string {
  const owned = { topKeys: change.topKeys, table: change.table };
  const taken = takeBlocks(original, owned);
  const bom = taken.startsWith('\uFEFF') ? '\uFEFF' : '';
  const text = taken.slice(bom.length);
  const eol = lineBreakOf(text);
  const ours = new Set(change.top.map(([key]) => key));
  let table = '';
  let body = '';
  for (const entry of entries(text)) {
    if (entry.kind === 'table') table = entry.name;
    const lines = text.slice(entry.start, entry.end);
    const inOurTable = table === change.table || table.startsWith(`${change.table}.`);
    const replaced = table === '' && entry.kind === 'key' && ours.has(entry.name);
    body += replaced || (inOurTable && entry.kind !== 'other') ? disabledLines(lines) : lines;
  }
  const block = (title: string, lines: readonly string[]) =>
    [`${OPEN}: ${title}`, ...lines, CLOSE, ''].join(eol);
  const pairs = (list: TomlChange['top']) => list.map(([key, value]) => `${key} = ${value}`);
  const top = block('"hopgate setup codex --revert" takes this away', pairs(change.top));
  const bottom = block('and this', [`[${change.table}]`, ...pairs(change.keys)]);
  const gap = body === '' || body.endsWith('\n') ? '' : eol;
  return bom + top + body + gap + bottom;
}

/**
 * The text without the blocks, and with the lines that they had disabled. Lines between the marks that belong to
 * the user stay: Codex edits its file too, and adds new keys and tables before a comment at the end of a section,
 * and the closing mark is such a comment. @throws Error when a closing mark is missing
 */
export function takeBlocks(text: string, { topKeys, table }: Owned): string {
  const out: string[] = [];
  let inside = false;
  let section = '';
  const isOurs = (line: string) => {
    const key = /^\s*"?([A-Za-z0-9_-]+)"?\s*=/.exec(line)?.[1];
    if (section === '') return key !== undefined && topKeys.includes(key);
    return section === table || section.startsWith(`${table}.`);
  };
  for (const line of linesOf(text)) {
    const words = line.replace(/^\uFEFF/, '');
    if (words.startsWith(OPEN)) {
      inside = true;
      section = '';
      if (line !== words) out.push('\uFEFF');
    } else if (inside && words.startsWith(CLOSE)) inside = false;
    else if (inside) {
      const header = HEADER.exec(line.trim())?.[1];
      if (header !== undefined) section = plain(header);
      if (!isOurs(line)) out.push(line);
    } else out.push(line.startsWith(KEPT) ? line.slice(KEPT.length) : line);
  }
  if (inside) throw new Error(`the line "${CLOSE}" that ends the block of hopgate is missing`);
  return out.join('');
}
