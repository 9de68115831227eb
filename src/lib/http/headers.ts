/** Header fields as a flat list of strings, cheaper than the native `Headers`. */

// A `Headers` is a native object and copies each name and value; four of them a request cost more than reading and
// writing the request itself.

import { put } from '../json/json-members.ts';

/** Read access; a native `Headers` has it too. Names are compared without regard to case. */
export interface ReadonlyHeaders extends Iterable<readonly [string, string]> {
  get(name: string): string | null;
  has(name: string): boolean;
}

// Token of RFC 9110 §5.6.2, and values as the Fetch standard takes them: written as Latin-1, "\u010a" would be a line break.
const NAME = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;
const NO_VALUE = /[\0\r\n\u0100-\uffff]/;

// Every message has the same few names: known names need neither a check nor another copy.
const MAX_NAMES = 1000;
// Names and values together; a longer list gets an index.
const MANY_CELLS = 128;
const lowered = new Map<string, string>();

/** @throws TypeError for an invalid header name */
function lowerName(name: string): string {
  const known = lowered.get(name);
  if (known !== undefined) return known;
  if (!NAME.test(name)) throw new TypeError(`'${name.slice(0, 60)}' is no name of a header`);
  if (lowered.size >= MAX_NAMES) lowered.clear();
  const lower = name.toLowerCase();
  lowered.set(name, lower);
  return lower;
}

function checked(value: string): string {
  if (NO_VALUE.test(value))
    throw new TypeError('a header value holds a line break, or what is not Latin-1');
  return value;
}

export class FlatHeaders implements ReadonlyHeaders {
  /** Name, value, name, value, …; names in lower case, none twice. */
  readonly #cells: string[] = [];
  /** The last result of {@link lines}, until something changes. */
  #lines: string | undefined;
  #linesWithout: ReadonlySet<string> | undefined;
  /** The index of names, for a long list. */
  #places: Map<string, number> | undefined;

  /** @throws TypeError for an invalid header */
  static of(fields: Readonly<Record<string, string>>): FlatHeaders {
    const list = new FlatHeaders();
    for (const name in fields) list.append(name, fields[name]!);
    return list;
  }

  /** The same object where it is a flat list already. */
  static from(fields: ReadonlyHeaders): FlatHeaders {
    if (fields instanceof FlatHeaders) return fields;
    const list = new FlatHeaders();
    if (fields instanceof Headers) {
      // All fields in one native call; they are valid and in lower case already.
      const all: Readonly<Record<string, string | readonly string[]>> = fields.toJSON();
      for (const name in all) {
        const value = all[name]!;
        list.#cells.push(name, typeof value === 'string' ? value : value.join(', '));
      }
    } else {
      for (const [name, value] of fields) list.append(name, value);
    }
    return list;
  }

  /** The fields whose names the filter accepts. */
  where(stays: (name: string) => boolean): FlatHeaders {
    const list = new FlatHeaders();
    const cells = this.#cells;
    for (let i = 0; i < cells.length; i += 2) {
      if (stays(cells[i]!)) list.#cells.push(cells[i]!, cells[i + 1]!);
    }
    return list;
  }

  /** The fields that have other names. */
  without(names: ReadonlySet<string>): FlatHeaders {
    return this.where((name) => !names.has(name));
  }

  /** Would `list.where(stays)` equal this list, itself a result of `where(stays)`? Creates nothing. */
  isWhere(list: FlatHeaders, stays: (name: string) => boolean): boolean {
    const own = this.#cells;
    const cells = list.#cells;
    let next = 0;
    for (let i = 0; i < cells.length; i += 2) {
      if (cells[i] === own[next] && cells[i + 1] === own[next + 1]) next += 2;
      else if (stays(cells[i]!)) return false;
    }
    return next === own.length;
  }

  /** The number of fields. */
  get size(): number {
    return this.#cells.length / 2;
  }

  name(index: number): string {
    return this.#cells[2 * index]!;
  }

  value(index: number): string {
    return this.#cells[2 * index + 1]!;
  }

  get(name: string): string | null {
    const at = this.#at(name);
    return at < 0 ? null : this.#cells[at + 1]!;
  }

  has(name: string): boolean {
    return this.#at(name) >= 0;
  }

  /** Repeated fields are one, their values joined (RFC 9110 §5.3). @throws TypeError as `of` does */
  append(name: string, value: string): void {
    const lower = lowerName(name);
    const at = this.#find(lower);
    const text = checked(value.trim());
    this.#lines = undefined;
    if (at < 0) this.#cells.push(lower, text);
    else this.#cells[at + 1] += `, ${text}`;
  }

  /** Replaces the field. @throws TypeError as `of` does */
  set(name: string, value: string): void {
    this.setOwn(lowerName(name), checked(value));
  }

  /** {@link set} for a name in lower case and a value of this program's own, which need no check. */
  setOwn(name: string, value: string): void {
    const at = this.#find(name);
    this.#lines = undefined;
    if (at < 0) this.#cells.push(name, value);
    else this.#cells[at + 1] = value;
  }

  /** `name: value` and a line break each, but for these names. */
  lines(without: ReadonlySet<string>): string {
    if (this.#lines !== undefined && this.#linesWithout === without) return this.#lines;
    let text = '';
    for (let i = 0; i < this.#cells.length; i += 2) {
      const name = this.#cells[i]!;
      if (!without.has(name)) text += `${name}: ${this.#cells[i + 1]!}\r\n`;
    }
    this.#lines = text;
    this.#linesWithout = without;
    return text;
  }

  /** As `Response` and `fetch` take them. */
  record(): Record<string, string> {
    const out: Record<string, string> = {};
    for (let i = 0; i < this.#cells.length; i += 2) put(out, this.#cells[i]!, this.#cells[i + 1]!);
    return out;
  }

  *[Symbol.iterator](): Iterator<readonly [string, string]> {
    for (let i = 0; i < this.#cells.length; i += 2) yield [this.#cells[i]!, this.#cells[i + 1]!];
  }

  #at(name: string): number {
    const at = this.#find(name);
    if (at >= 0) return at;
    const lower = name.toLowerCase();
    return lower === name ? -1 : this.#find(lower);
  }

  #find(lower: string): number {
    const cells = this.#cells;
    if (cells.length > MANY_CELLS) return this.#indexed(lower);
    for (let i = 0; i < cells.length; i += 2) if (cells[i] === lower) return i;
    return -1;
  }

  /** The same for long lists, by an index. */
  #indexed(lower: string): number {
    const cells = this.#cells;
    this.#places ??= new Map();
    // Names are only ever appended.
    for (let i = this.#places.size * 2; i < cells.length; i += 2) this.#places.set(cells[i]!, i);
    return this.#places.get(lower) ?? -1;
  }
}

/**
 * The names in `Connection`, in lower case; undefined when it names only what happens to the connection, as in
 * nearly every message.
 */
export function hopFields(headers: ReadonlyHeaders): ReadonlySet<string> | undefined {
  const value = headers.get('connection');
  if (value === null || value === 'keep-alive' || value === 'close') return undefined;
  const names = new Set<string>();
  for (const part of value.split(',')) {
    const name = part.trim().toLowerCase();
    if (name !== '' && name !== 'keep-alive' && name !== 'close') names.add(name);
  }
  return names.size === 0 ? undefined : names;
}

/** The fields whose names the filter accepts, without those for this hop only. */
export function endToEnd(fields: FlatHeaders, stays: (name: string) => boolean): FlatHeaders {
  const hop = hopFields(fields);
  return hop === undefined ? fields.where(stays) : fields.where(stays).without(hop);
}
