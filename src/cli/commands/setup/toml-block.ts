/** Adds marked blocks to TOML files as text and takes them out again; everything else keeps its bytes. */

import { isObject, type Json } from '../../../lib/json/json.ts';
import { messageOf } from '../../../lib/text/thrown.ts';
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

/** What the blocks of a client may hold. */
export interface Owned {
  /**
   * Tables that are the gateway's alone; what stands there already makes way. A name that ends with "/" is the
   * beginning of names.
   */
  readonly tables: readonly string[];
  /** Keys of tables in which the user has others; `''` is the top of the file. */
  readonly keys: Readonly<Record<string, readonly string[]>>;
}

/** Keys of one table with their values; without names, of the top of the file. */
export interface TomlTable {
  readonly path: readonly string[];
  readonly keys: Readonly<Record<string, Json>>;
}

const isOwnTable = ({ tables }: Owned, name: string): boolean =>
  tables.some((own) => name === own || name.startsWith(own.endsWith('/') ? own : `${own}.`));

const headerOf = (path: readonly string[]): string =>
  `[${path.map((name) => (/^[\w-]+$/.test(name) ? name : JSON.stringify(name))).join('.')}]`;

/** Strings, numbers, booleans and lists of them are the same in TOML as in JSON. */
const pairsOf = ({ keys }: TomlTable): readonly string[] =>
  Object.entries(keys).map(([key, value]) => `${key} = ${JSON.stringify(value)}`);

/**
 * The text with the tables: keys of the top before everything else, keys of a table that is there behind its header,
 * all others at the end. @throws Error when it is no TOML, or cannot be edited safely
 */
export function putBlocks(
  original: string,
  client: string,
  owned: Owned,
  tables: readonly TomlTable[],
): string {
  parsed(original, 'the file');
  const taken = takeBlocks(original, owned);
  const bom = taken.startsWith('\uFEFF') ? '\uFEFF' : '';
  const text = taken.slice(bom.length);
  const eol = lineBreakOf(text);
  const list = entries(text);
  let blocks = 0;
  const block = (lines: readonly string[]) => {
    const title =
      blocks++ === 0 ? `"hopgate setup ${client} --revert" takes this away` : 'and this';
    return [`${OPEN}: ${title}`, ...lines, CLOSE, ''].join(eol);
  };
  const waiting = new Map(tables.map((table) => [table.path.join('.'), table]));
  const top = waiting.get('');
  waiting.delete('');
  let body = top === undefined ? '' : block(pairsOf(top));
  let name = '';
  for (const entry of list) {
    const lines = text.slice(entry.start, entry.end);
    if (entry.kind === 'table') name = entry.name;
    if (isOwnTable(owned, name)) {
      body += entry.kind === 'other' ? lines : disabledLines(lines);
      continue;
    }
    const replaced = entry.kind === 'key' && owned.keys[name]?.includes(entry.name) === true;
    body += replaced ? disabledLines(lines) : lines;
    const ours = entry.kind === 'table' ? waiting.get(name) : undefined;
    if (ours === undefined) continue;
    waiting.delete(name);
    body += (lines.endsWith('\n') ? '' : eol) + block(pairsOf(ours));
  }
  if (waiting.size > 0) {
    const rest = [...waiting.values()];
    if (body !== '' && !body.endsWith('\n')) body += eol;
    body += block(rest.flatMap((table) => [headerOf(table.path), ...pairsOf(table)]));
  }
  return checked(bom + body, tables);
}

/** The file was edited as text: whether it says what it should. */
function checked(text: string, tables: readonly TomlTable[]): string {
  const result = parsed(text, 'the file with the new lines');
  for (const { path, keys } of tables) {
    const at = dig(result, path);
    const good = Object.entries(keys).every(([key, value]) =>
      Bun.deepEquals(dig(at, [key]), value),
    );
    if (!good) {
      const name = path.length === 0 ? 'these keys' : headerOf(path);
      throw new Error(`the file defines ${name} in a way that cannot be edited safely`);
    }
  }
  return text;
}

/** @throws Error when it is no TOML */
function parsed(text: string, what: string): Json {
  try {
    return Bun.TOML.parse(text) as Json;
  } catch (thrown) {
    throw new Error(`${what} is not valid TOML (${messageOf(thrown)})`);
  }
}

function dig(value: Json | undefined, path: readonly string[]): Json | undefined {
  let at: Json | undefined = value;
  for (const key of path) at = isObject(at) ? at[key] : undefined;
  return at;
}

/**
 * The text without the blocks, and with the lines that they had disabled. Lines between the marks that belong to
 * the user stay: programs edit their files too, and add new keys and tables before a comment at the end of a section,
 * and the closing mark is such a comment. @throws Error when a closing mark is missing
 */
export function takeBlocks(text: string, owned: Owned): string {
  const out: string[] = [];
  const shared = new Set(Object.values(owned.keys).flat());
  let inside = false;
  let own = false;
  /** The header of a table that only the block has; it stays if the user's keys follow. */
  let header: string | undefined;
  for (const line of linesOf(text)) {
    const words = line.replace(/^\uFEFF/, '');
    if (words.startsWith(OPEN)) {
      inside = true;
      own = false;
      header = undefined;
      if (line !== words) out.push('\uFEFF');
    } else if (inside && words.startsWith(CLOSE)) inside = false;
    else if (inside) {
      const name = HEADER.exec(line.trim())?.[1];
      if (name !== undefined) {
        own = isOwnTable(owned, plain(name));
        header = owned.keys[plain(name)] === undefined ? undefined : line;
        if (!own && header === undefined) out.push(line);
        continue;
      }
      const key = /^\s*"?([A-Za-z0-9_-]+)"?\s*=/.exec(line)?.[1];
      if (own || (key !== undefined && shared.has(key))) continue;
      if (header !== undefined && line.trim() !== '') {
        out.push(header);
        header = undefined;
      }
      out.push(line);
    } else out.push(line.startsWith(KEPT) ? line.slice(KEPT.length) : line);
  }
  if (inside) throw new Error(`the line "${CLOSE}" that ends the block of hopgate is missing`);
  return out.join('');
}
