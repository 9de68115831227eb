/** Parses Python literals and calls: `{'a': True}` as a value, `[fn(a=1), …]` as calls. */

import type { Json } from '../../../lib/json/json.ts';
import { memberOf } from '../../../lib/json/json-members.ts';

export interface PythonCall {
  readonly name: string;
  readonly arguments: { readonly [key: string]: Json };
}

const CONSTANTS: Readonly<Record<string, Json>> = {
  True: true,
  False: false,
  None: null,
  true: true,
  false: false,
  null: null,
};
const ESCAPES: Readonly<Record<string, string>> = {
  n: '\n',
  t: '\t',
  r: '\r',
  b: '\b',
  f: '\f',
  '\\': '\\',
  "'": "'",
  '"': '"',
  '\n': '',
};

/** A recursive-descent parser. Every method throws SyntaxError if the text is no literal. */
export class LiteralReader {
  at = 0;
  constructor(readonly text: string) {}

  fail(): never {
    throw new SyntaxError(`not a Python literal at ${this.at}`);
  }

  space(): void {
    while (/\s/.test(this.text[this.at] ?? '')) this.at++;
  }

  take(char: string): boolean {
    this.space();
    if (this.text[this.at] !== char) return false;
    this.at++;
    return true;
  }

  expect(char: string): void {
    if (!this.take(char)) this.fail();
  }

  word(pattern: RegExp): string | undefined {
    this.space();
    pattern.lastIndex = this.at;
    const found = pattern.exec(this.text)?.[0];
    if (found !== undefined) this.at += found.length;
    return found;
  }

  value(): Json {
    this.space();
    const char = this.text[this.at];
    if (char === '{') return this.dictionary();
    if (char === '[') return this.list(']');
    if (char === '(') return this.list(')');
    if (char === '"' || char === "'") return this.string(char);
    const number = this.word(/[-+]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?/y);
    if (number !== undefined) {
      const value = Number(number);
      return Number.isFinite(value) ? value : this.fail();
    }
    const name = this.word(/[A-Za-z]+/y);
    const constant = name === undefined ? undefined : memberOf(CONSTANTS, name);
    return constant === undefined ? this.fail() : constant;
  }

  key(): Json {
    return this.value();
  }

  dictionary(open = '{', close = '}'): Json {
    this.expect(open);
    const entries: [string, Json][] = [];
    while (!this.take(close)) {
      const key = this.key();
      if (typeof key !== 'string') this.fail();
      this.expect(':');
      entries.push([key, this.value()]);
      if (!this.take(',')) {
        this.expect(close);
        break;
      }
    }
    return Object.fromEntries(entries);
  }

  list(close: string): Json {
    this.at++;
    const items: Json[] = [];
    while (!this.take(close)) {
      items.push(this.value());
      if (!this.take(',')) {
        this.expect(close);
        break;
      }
    }
    return items;
  }

  string(quote: string): string {
    const triple = this.text.startsWith(quote.repeat(3), this.at);
    const close = triple ? quote.repeat(3) : quote;
    this.at += close.length;
    let out = '';
    for (;;) {
      if (this.at >= this.text.length) this.fail();
      if (this.text.startsWith(close, this.at)) {
        this.at += close.length;
        return out;
      }
      const char = this.text[this.at++]!;
      if (char !== '\\') {
        out += char;
        continue;
      }
      const next = this.text[this.at++] ?? '';
      const hex = next === 'x' ? 2 : next === 'u' ? 4 : 0;
      const digits = hex > 0 ? this.text.slice(this.at, this.at + hex) : '';
      if (hex > 0 && digits.length === hex && /^[0-9a-fA-F]+$/.test(digits)) {
        out += String.fromCharCode(Number.parseInt(digits, 16));
        this.at += hex;
      } else out += ESCAPES[next] ?? `\\${next}`;
    }
  }

  call(): PythonCall {
    const name = this.word(/[A-Za-z_][\w.-]*/y) ?? this.fail();
    this.expect('(');
    const entries: [string, Json][] = [];
    while (!this.take(')')) {
      const key = this.word(/[A-Za-z_]\w*/y) ?? this.fail();
      this.expect('=');
      entries.push([key, this.value()]);
      if (!this.take(',')) {
        this.expect(')');
        break;
      }
    }
    return { name, arguments: Object.fromEntries(entries) };
  }

  done(): void {
    this.space();
    if (this.at !== this.text.length) this.fail();
  }
}

export function pythonLiteral(text: string): Json | undefined {
  return readWhole(new LiteralReader(text), (reader) => reader.value());
}

/** The calls in `[fn(a=1, b="x"), …]` or `fn(a=1)`; undefined if the text is something else. */
export function pythonCalls(text: string): readonly PythonCall[] | undefined {
  return readWhole(new LiteralReader(text), (reader) => {
    if (!reader.take('[')) return [reader.call()];
    const calls: PythonCall[] = [];
    while (!reader.take(']')) {
      calls.push(reader.call());
      if (!reader.take(',')) {
        reader.expect(']');
        break;
      }
    }
    return calls;
  });
}

/** Undefined if text follows the value. */
export function readWhole<R extends LiteralReader, T>(
  reader: R,
  read: (reader: R) => T,
): T | undefined {
  try {
    const value = read(reader);
    reader.done();
    return value;
  } catch {
    return undefined;
  }
}

/** Gemma 4's, and FunctionGemma's. */
export const GEMMA_QUOTES: readonly string[] = ['<|"|>', '<escape>'];

class GemmaReader extends LiteralReader {
  override value(): Json {
    this.space();
    const quote = GEMMA_QUOTES.find((each) => this.text.startsWith(each, this.at));
    return quote === undefined ? super.value() : this.marked(quote);
  }

  override key(): Json {
    return this.word(/[A-Za-z_$][\w.$-]*/y) ?? this.value();
  }

  marked(quote: string): string {
    const start = this.at + quote.length;
    const end = this.text.indexOf(quote, start);
    if (end < 0) this.fail();
    this.at = end + quote.length;
    return this.text.slice(start, end);
  }

  /** Some relays write round brackets. */
  arguments(): Json {
    this.space();
    return this.text[this.at] === '(' ? this.dictionary('(', ')') : this.dictionary();
  }
}

/** The arguments as an object; undefined if the text is something else. */
export const gemmaArguments = (text: string): Json | undefined =>
  readWhole(new GemmaReader(text), (reader) => reader.arguments());
