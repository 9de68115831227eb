/** Reads one leaked block, from its opener on, whatever grammar it is written in; incremental, each character once. */

import { callsInJson } from './calls-in-json.ts';
import { jsonValue } from './coerce-value.ts';
import type { Lexicon } from './grammar.ts';
import { BracketScan } from './json-scan.ts';
import { attribute, type Lexeme, lex } from './lex.ts';
import { pythonCalls, pythonLiteral } from './python-literal.ts';
import type { Pair, RawCall, TreeNode } from './raw-call.ts';
import { repairJson } from './repair-json.ts';

/** `fail`: it is no leak after all, the text stays; `done`: see `calls`, `rest` goes on as text. */
export type BlockState = 'more' | 'done' | 'fail';

/** What a block begins with: markup, or JSON or Python calls as such (whose text is not consumed). */
export type Opener =
  | { readonly type: 'tag'; readonly lexeme: Lexeme }
  | { readonly type: 'json'; readonly kind: 'envelope' | 'bare' | 'result' }
  | { readonly type: 'python' };

type State =
  | 'outer'
  | 'name'
  | 'args'
  | 'body'
  | 'tagged-name'
  | 'key'
  | 'value'
  | 'json'
  | 'python'
  | 'tree'
  | 'header'
  | 'discard'
  | 'tail';

interface OpenCall {
  name: string | undefined;
  pairs: Pair[];
  json: string | undefined;
  malformed: boolean;
}

interface OpenValue {
  readonly key: string | undefined;
  readonly lexeme: Lexeme;
  readonly as: 'string' | 'json' | 'schema';
}

const LONGEST_NAME = 128;
const LONGEST_HEADER = 200;
/** Text that belongs to no grammar: more than this, and the block is given up. */
const MOST_JUNK = 400;

export class Block {
  readonly calls: RawCall[] = [];
  family: string;
  /** So much of a grammar has been seen that what follows is markup, recovered or not. */
  committed = false;
  /** Text behind the block, once `done`. */
  rest = '';
  /** The block was a header after which another channel begins. */
  channel: 'reasoning' | 'text' | undefined;
  /** The text ended within the block. */
  truncated = false;

  readonly #lexicon: Lexicon;
  readonly #opener: Opener;
  #text = '';
  #at = 0;
  #state: State = 'outer';
  #outcome: BlockState = 'more';
  #depth = 0;
  #boxed = false;
  #call: OpenCall | undefined;
  #value: OpenValue | undefined;
  #parts: string[] = [];
  #head = '';
  #keyFromBox = false;
  #scan: BracketScan | undefined;
  #tree: TreeNode[] = [];
  #junk = 0;
  /** Where the search within `#text` goes on, relative to `#at`. */
  #final = false;

  constructor(opener: Opener, lexicon: Lexicon) {
    this.#lexicon = lexicon;
    this.#opener = opener;
    if (opener.type === 'tag') {
      this.family = opener.lexeme.word.family;
      this.#tag(opener.lexeme, opener.lexeme.word.setting === 'bare');
    } else {
      this.family = { envelope: 'json', bare: 'json', result: 'tool-result', python: 'pythonic' }[
        opener.type === 'json' ? opener.kind : 'python'
      ];
      this.#state = opener.type === 'json' ? 'outer' : 'python';
      if (opener.type === 'json') this.committed = opener.kind === 'result';
    }
  }

  push(text: string): BlockState {
    this.#text = this.#at < this.#text.length ? this.#text.slice(this.#at) + text : text;
    this.#at = 0;
    return this.#run();
  }

  /** The text ends here. Calls that are complete count; nothing is made up for the others. */
  finish(): BlockState {
    if (this.#outcome !== 'more') return this.#outcome;
    this.#final = true;
    if (this.#run() !== 'more') return this.#outcome;
    const { json } = this.#call ?? {};
    if (this.#state === 'tail') return this.#end('done');
    if (this.#call !== undefined && json !== undefined && this.#state === 'body') {
      this.#finishCall();
      return this.#end('done');
    }
    if (this.#state === 'json') this.#salvage();
    this.truncated = !(this.#state === 'outer' && this.calls.length > 0);
    const whole = this.#opener.type === 'json' && this.#opener.kind !== 'result';
    if (this.committed || this.calls.length > 0 || whole) return this.#end('done');
    return this.#end('fail');
  }

  #end(outcome: 'done' | 'fail'): BlockState {
    if (this.#outcome === 'more') {
      this.#outcome = outcome;
      this.rest = this.#text.slice(this.#at);
    }
    return this.#outcome;
  }

  #run(): BlockState {
    while (this.#outcome === 'more' && this.#at < this.#text.length && this.#step());
    return this.#outcome;
  }

  /** One step of the state at hand; false: it needs more text. */
  #step(): boolean {
    switch (this.#state) {
      case 'outer':
        return this.#outer();
      case 'name':
        return this.#name();
      case 'args':
        return this.#args();
      case 'body':
        return this.#body();
      case 'tagged-name':
      case 'key':
        return this.#short();
      case 'value':
        return this.#longValue();
      case 'json':
        return this.#json();
      case 'python':
        return this.#python();
      case 'tree':
        return this.#treeText();
      case 'header':
        return this.#header();
      case 'discard':
        return this.#discard();
      case 'tail':
        return this.#tail();
    }
  }

  #skipSpace(): number {
    let at = this.#at;
    for (; at < this.#text.length; at++) {
      const code = this.#text.charCodeAt(at);
      if (code !== 0x20 && code !== 0x0a && code !== 0x0d && code !== 0x09) break;
    }
    this.#at = at;
    return at < this.#text.length ? this.#text.charCodeAt(at) : -1;
  }

  /** Reads markup at the place; undefined: none. */
  #lexHere(at = this.#at): Lexeme | 'partial' | undefined {
    const code = this.#text.charCodeAt(at);
    if (code !== 0x3c && code !== 0x5b && code !== 0x5d) return undefined;
    return lex(this.#text, at, this.#lexicon);
  }

  /** Markup at the place, acted on; 'no' where there is none. */
  #markup(): 'acted' | 'wait' | 'no' {
    const found = this.#lexHere();
    if (found === 'partial') return 'wait';
    if (found === undefined) return 'no';
    this.#at = found.end;
    this.#tag(found, false);
    return 'acted';
  }

  #outer(): boolean {
    const code = this.#skipSpace();
    if (code < 0) return false;
    const markup = this.#markup();
    if (markup !== 'no') return markup === 'acted';
    if (code === 0x7b || code === 0x5b) {
      if (this.#depth > 0 || this.#boxed) this.committed = true;
      this.#startJson();
      return true;
    }
    // Between JSON calls: Llama's `;`, and commas.
    if ((code === 0x3b || code === 0x2c) && this.calls.length > 0) {
      this.#at++;
      return true;
    }
    if (this.#boxed && this.calls.length === 0) {
      this.#head = '';
      this.#state = 'name';
      return true;
    }
    return this.#unexpected();
  }

  /** Text where the grammar has none: behind complete calls it is the answer's, else this is no leak. */
  #unexpected(): false {
    if (this.calls.length > 0) this.#end('done');
    else if (this.committed && this.#junk < MOST_JUNK) {
      this.#junk++;
      this.#at++;
      return this.#step() as false;
    } else this.#end('fail');
    return false;
  }

  #tag(lexeme: Lexeme, bare: boolean): void {
    const { word, closing } = lexeme;
    switch (word.role) {
      case 'wrap':
        this.#finishCall(closing);
        this.#depth += closing ? -1 : 1;
        this.#state = 'outer';
        if (closing && this.#depth <= 0) this.#end('done');
        break;
      case 'box':
        this.#box(lexeme);
        break;
      case 'call':
        this.#callTag(lexeme);
        break;
      case 'name':
        if (closing) break;
        this.#parts = [];
        this.#state = 'tagged-name';
        break;
      case 'arg':
        if (!closing) this.#openArgument(lexeme);
        break;
      case 'key':
        if (closing) break;
        this.#call ??= this.#newCall(undefined);
        this.family = word.family;
        this.#parts = [];
        this.#keyFromBox = false;
        this.#state = 'key';
        break;
      case 'value':
        if (closing) break;
        this.#call ??= this.#newCall(undefined);
        this.#open({ key: this.#value?.key, lexeme, as: 'schema' });
        break;
      case 'args':
        if (word.family === 'deepseek') this.family = 'deepseek';
        this.#state = 'args';
        break;
      case 'node':
        this.#node(lexeme);
        break;
      case 'python':
        this.#state = 'python';
        break;
      case 'header':
        this.#head += bare || word.setting === 'bare' ? `${word.word}` : ' ';
        if (this.#state !== 'header' && word.setting !== 'bare') this.#head = '';
        this.#state = 'header';
        break;
      case 'channel':
        if (this.#call === undefined && this.calls.length === 0 && !closing) {
          this.channel = word.channel;
          this.#end('done');
        }
        break;
      case 'skip':
        this.#state = word.setting === 'square' ? 'discard' : this.#state;
        break;
      case 'stop':
        this.#finishCall();
        this.#end(this.calls.length > 0 || this.committed ? 'done' : 'fail');
        break;
      case 'fence':
        break;
    }
  }

  #box(lexeme: Lexeme): void {
    if (lexeme.closing) {
      this.#finishCall(true);
      this.#boxed = false;
      this.#state = 'outer';
      if (this.#depth <= 0) this.#end('done');
      return;
    }
    // GLM: a second `<tool_call>` where the first `<arg_key>` belongs.
    if (this.#call !== undefined && this.#call.json === undefined && this.#call.pairs.length === 0) {
      this.#parts = [];
      this.#keyFromBox = true;
      this.#state = 'key';
      return;
    }
    this.#finishCall(true);
    if (this.calls.length > 0 && this.#depth <= 0 && this.#boxed) {
      // The next call's box, the closer of this one is missing.
      this.#boxed = true;
    }
    this.#boxed = true;
    this.#head = '';
    this.#state = this.calls.length > 0 ? 'name' : 'outer';
  }

  #callTag(lexeme: Lexeme): void {
    const { word, closing } = lexeme;
    if (closing) {
      if (this.#call === undefined && word.setting === 'bars') {
        this.#state = 'outer';
        return;
      }
      this.#finishCall(true);
      this.#state = 'outer';
      if (this.#depth <= 0 && !this.#boxed) this.#end('done');
      return;
    }
    this.#finishCall();
    if (word.setting === 'bars') {
      this.#head = '';
      this.#state = 'name';
      return;
    }
    if (this.family === 'minimax-m1' || this.family === 'hermes') this.family = word.family;
    if (word.family === 'anthropic-xml' && this.family === 'minimax-m1') this.family = 'dsml';
    this.#call = this.#newCall(attribute(lexeme, word.nameIn ?? 'name'));
    this.committed ||= this.#depth > 0 || this.#boxed || this.#call.name !== undefined;
    this.#state = 'body';
    if (lexeme.empty) {
      this.#finishCall(true);
      this.#state = 'outer';
      if (this.#depth <= 0 && !this.#boxed) this.#end('done');
    }
  }

  #newCall(name: string | undefined): OpenCall {
    return { name, pairs: [], json: undefined, malformed: false };
  }

  /** @param closed its own closer, or one around it, has been seen; JSON arguments need none */
  #finishCall(closed = false): void {
    const call = this.#call;
    this.#call = undefined;
    this.#value = undefined;
    if (call === undefined) return;
    const { name, pairs, json } = call;
    const malformed = call.malformed || (json === undefined && !closed && pairs.length === 0);
    this.calls.push({
      name,
      family: this.family,
      input: json === undefined ? { type: 'pairs', pairs } : { type: 'json', text: json },
      malformed,
    });
  }

  #name(): boolean {
    const text = this.#text;
    for (; this.#at < text.length; this.#at++) {
      const code = text.charCodeAt(this.#at);
      if (code === 0x3c || code === 0x5b || code === 0x5d) {
        const found = this.#lexHere();
        if (found === 'partial') return false;
        if (found === undefined) return this.#unexpected();
        return this.#named();
      }
      if (code === 0x7b || code === 0x28 || code === 0x60) return this.#named();
      const char = text[this.#at]!;
      const behind = this.#head !== this.#head.trimEnd() && this.#head.trim() !== '';
      if (!/[\w.:/@\-\s]/.test(char) || (behind && /\S/.test(char))) return this.#unexpected();
      this.#head += char;
      if (this.#head.length > LONGEST_NAME) return this.#unexpected();
    }
    return false;
  }

  /** The name is complete; what ends it has not been read yet. */
  #named(): boolean {
    const name = this.#head.trim();
    if (name === '') {
      // `[TOOL_CALLS] [{…}]`, and calls whose name is missing.
      if (this.#boxed && this.#text.charCodeAt(this.#at) === 0x7b) {
        this.#startJson();
        return true;
      }
      const markup = this.#markup();
      if (markup === 'no') return this.#unexpected();
      return markup === 'acted';
    }
    if (this.family === 'hermes') this.family = 'glm';
    this.committed = true;
    if (this.#call === undefined) this.#call = this.#newCall(name);
    else this.#call.name = name;
    this.#head = '';
    this.#state = 'body';
    return true;
  }

  /** Behind DeepSeek's and Kimi's separators: JSON, or (R1, V3) the name with a fence behind it. */
  #args(): boolean {
    const code = this.#skipSpace();
    if (code < 0) return false;
    this.#state = code === 0x7b || code === 0x60 || code === 0x3c ? 'body' : 'name';
    return true;
  }

  #body(): boolean {
    const code = this.#skipSpace();
    if (code < 0) return false;
    const call = this.#call;
    if (call === undefined) {
      this.#state = 'outer';
      return true;
    }
    const markup = this.#markup();
    if (markup !== 'no') return markup === 'acted';
    if (code === 0x7b && call.json === undefined && call.pairs.length === 0) {
      this.#startJson();
      return true;
    }
    if (code === 0x60) return this.#fence();
    if (this.#text.startsWith('\\n', this.#at)) {
      this.#at += 2;
      return true;
    }
    if (call.json !== undefined) {
      // `NAME({…})`, `{…};`: what closes a call in other tongues.
      if (code === 0x29 || code === 0x3b || code === 0x2c) {
        this.#at++;
        return true;
      }
      this.#finishCall();
      this.#state = 'outer';
      return true;
    }
    if (code === 0x28 && call.pairs.length === 0) {
      this.#at++;
      return true;
    }
    if (code === 0x5c && this.#at + 1 === this.#text.length) return false;
    call.malformed = true;
    if (++this.#junk > MOST_JUNK) {
      this.#end('fail');
      return false;
    }
    this.#at++;
    return true;
  }

  /** A fence around JSON arguments. */
  #fence(): boolean {
    const fence = /`+(?:[A-Za-z]*)/y;
    fence.lastIndex = this.#at;
    const end = this.#at + fence.exec(this.#text)![0].length;
    if (end === this.#text.length && !this.#final) return false;
    this.#at = end;
    return true;
  }

  #openArgument(lexeme: Lexeme): void {
    this.#call ??= this.#newCall(undefined);
    const key = attribute(lexeme, lexeme.word.nameIn ?? 'name');
    const equals = /^\s*=/.test(lexeme.attributes);
    if (equals && (this.family === 'hermes' || this.family === 'anthropic-xml')) {
      this.family = 'qwen';
    }
    if (key === undefined || /[<>=]/.test(key)) {
      // `<parameter=command=create</parameter>`: its closer has been read as part of it.
      this.#call.malformed = true;
      if (key?.includes('</')) return;
    }
    const marked = attribute(lexeme, lexeme.word.setting === 'xtml' ? 'type' : 'string');
    const isString = marked === 'true' || marked === 'string';
    const as = marked === undefined ? 'schema' : isString ? 'string' : 'json';
    this.#open({ key, lexeme, as });
    if (lexeme.empty) this.#closeValue('');
  }

  #open(value: OpenValue): void {
    this.#value = value;
    this.#parts = [];
    this.#state = 'value';
  }

  #closeValue(text: string): void {
    const { key, lexeme, as } = this.#value!;
    this.#value = undefined;
    this.#parts = [];
    this.#state = 'body';
    if (key === undefined) {
      this.#call!.malformed = true;
      return;
    }
    let value = text;
    if (/^\s*=/.test(lexeme.attributes)) value = value.replace(/^\r?\n/, '').replace(/\r?\n$/, '');
    else if (this.family === 'minimax-m2') value = value.trim();
    this.#call!.pairs.push({ key, text: value, as });
  }

  /** A value, up to the first closer of its own, or to what can only stand behind it. */
  #longValue(): boolean {
    const text = this.#text;
    let from = this.#at;
    for (;;) {
      const at = text.indexOf('<', from);
      if (at < 0) {
        this.#parts.push(text.slice(this.#at));
        this.#at = text.length;
        return false;
      }
      const found = lex(text, at, this.#lexicon);
      const verdict = found === 'partial' ? 'wait' : this.#closes(found);
      if (verdict === 'wait') {
        this.#parts.push(text.slice(this.#at, at));
        this.#at = at;
        return false;
      }
      if (verdict === 'no') {
        from = at + 1;
        continue;
      }
      this.#parts.push(text.slice(this.#at, at));
      this.#at = verdict === 'own' ? (found as Lexeme).end : at;
      this.#closeValue(this.#parts.join(''));
      return true;
    }
  }

  #closes(found: Lexeme | undefined): 'own' | 'around' | 'wait' | 'no' {
    if (found === undefined) return 'no';
    const open = this.#value!.lexeme;
    const { role, setting } = found.word;
    const own = found.closing && role === open.word.role;
    const around =
      (found.closing && (role === 'call' || role === 'wrap' || role === 'box')) ||
      (!found.closing && role === (open.word.role === 'value' ? 'key' : 'arg'));
    if (!own && !around) return 'no';
    if (setting === open.word.setting) return own ? 'own' : 'around';
    if (open.word.setting === 'xtml' || setting === 'bars') return 'no';
    // DSML opened and plain tags close: only where markup goes on, else it is text that has tags in it.
    let next = found.end;
    while (/\s/.test(this.#text[next] ?? '')) next++;
    if (next === this.#text.length) return this.#final ? (own ? 'own' : 'around') : 'wait';
    const behind = this.#lexHere(next);
    if (behind === 'partial' && !this.#final) return 'wait';
    return behind === undefined ? 'no' : own ? 'own' : 'around';
  }

  /** GLM's keys and names in tags of their own: short text up to the next markup. */
  #short(): boolean {
    const text = this.#text;
    for (;;) {
      const at = text.indexOf('<', this.#at);
      this.#parts.push(text.slice(this.#at, at < 0 ? text.length : at));
      this.#at = at < 0 ? text.length : at;
      const read = this.#parts.reduce((sum, part) => sum + part.length, 0);
      if (read > LONGEST_HEADER) {
        this.#call ??= this.#newCall(undefined);
        this.#call.malformed = true;
        this.#state = 'body';
        return true;
      }
      if (at < 0) return false;
      const found = this.#lexHere();
      if (found === 'partial') return false;
      if (found === undefined) {
        this.#parts.push('<');
        this.#at++;
        continue;
      }
      this.#shortEnds(found, this.#parts.join('').trim());
      return true;
    }
  }

  #shortEnds(found: Lexeme, read: string): void {
    const { role } = found.word;
    if (this.#state === 'tagged-name') {
      if (role === 'name' && found.closing) this.#at = found.end;
      this.#call ??= this.#newCall(undefined);
      this.#call.name = read;
      this.#state = 'body';
      return;
    }
    this.#state = 'body';
    if ((role === 'key' && found.closing) || (role === 'value' && !found.closing)) {
      if (role === 'key') this.#at = found.end;
      this.#value = { key: read, lexeme: found, as: 'schema' };
    } else if (this.#keyFromBox) {
      // Not a key: the call before had no arguments and no closer.
      this.#finishCall(true);
      this.#call = this.#newCall(read);
    } else this.#call!.malformed = true;
  }

  #startJson(): void {
    this.#scan = new BracketScan();
    this.#parts = [];
    this.#state = 'json';
  }

  #json(): boolean {
    const end = this.#scan!.feed(this.#text, this.#at);
    this.#parts.push(this.#text.slice(this.#at, end < 0 ? undefined : end));
    this.#at = end < 0 ? this.#text.length : end;
    if (end < 0) return false;
    this.#jsonEnds(this.#parts.join(''));
    return true;
  }

  #jsonEnds(text: string): void {
    const opener = this.#opener;
    if (this.#call !== undefined) {
      this.#call.json = text;
      this.#state = 'body';
      return;
    }
    if (opener.type === 'json' && opener.kind === 'result') {
      this.#end('done');
      return;
    }
    const value = jsonValue(text) ?? pythonLiteral(text) ?? repairJson(text);
    const calls = callsInJson(value, this.family);
    if (calls === undefined && !this.committed) {
      this.#end('fail');
      return;
    }
    this.committed = true;
    this.calls.push(...(calls ?? [{ ...NO_CALL, family: this.family }]));
    if (opener.type === 'json') {
      this.#state = 'tail';
      if (opener.kind === 'envelope') this.#end('done');
      return;
    }
    this.#state = 'outer';
    if (this.#boxed && opener.lexeme.word.setting === 'square' && this.family === 'mistral') {
      this.#end('done');
    }
  }

  /** The text ended within JSON: a closer inside an unclosed string may have been swallowed. */
  #salvage(): void {
    const text = this.#parts.join('');
    for (let at = text.indexOf('<'); at >= 0; at = text.indexOf('<', at + 1)) {
      const found = lex(text, at, this.#lexicon);
      if (found === undefined || found === 'partial' || !found.closing) continue;
      const { role } = found.word;
      if (role !== 'call' && role !== 'wrap' && role !== 'box') continue;
      const value = repairJson(text.slice(0, at).trim());
      if (value === undefined) return;
      if (this.#call !== undefined) {
        this.#call.json = JSON.stringify(value);
        this.#finishCall();
      } else this.calls.push(...(callsInJson(value, this.family) ?? []));
      if (this.calls.length > 0) this.#state = 'outer';
      return;
    }
  }

  /** Behind JSON that must be the whole reply: nothing, or Llama's next call. */
  #tail(): boolean {
    const code = this.#skipSpace();
    if (code < 0) return false;
    const found = this.#lexHere();
    if (found === 'partial') return false;
    if (found !== undefined && found.word.role === 'stop') {
      this.#at = found.end;
      return true;
    }
    if (code === 0x3b) this.#at++;
    else if (code === 0x7b) this.#startJson();
    else this.#end('fail');
    return true;
  }

  #python(): boolean {
    if (this.#scan === undefined) {
      const code = this.#skipSpace();
      if (code < 0) return false;
      if (code === 0x7b) {
        this.#state = 'outer';
        return true;
      }
      this.#scan = new BracketScan(true);
      this.#parts = [];
    }
    const end = this.#scan.feed(this.#text, this.#at);
    this.#parts.push(this.#text.slice(this.#at, end < 0 ? undefined : end));
    this.#at = end < 0 ? this.#text.length : end;
    if (end < 0) return false;
    const text = this.#parts.join('');
    this.#scan = undefined;
    const json = jsonValue(text);
    const calls =
      json === undefined
        ? pythonCalls(text)?.map(({ name, arguments: value }) => ({ name, value }))
        : undefined;
    const raw = calls?.map(({ name, value }) => ({
      name,
      family: this.family,
      input: { type: 'value' as const, value },
      malformed: false,
    }));
    this.calls.push(...(raw ?? callsInJson(json, this.family) ?? []));
    if (this.calls.length === 0) this.#end('fail');
    else this.#state = this.#opener.type === 'python' ? 'tail' : 'outer';
    return true;
  }

  /** M3: a key's tag opens or closes. */
  #node(lexeme: Lexeme): void {
    this.#call ??= this.#newCall(undefined);
    const { word, closing } = lexeme;
    if (!closing) {
      this.#tree.push({ name: word.word, children: [], text: '' });
      this.#state = 'tree';
      return;
    }
    const node = this.#tree.pop();
    if (node === undefined || node.name !== word.word) {
      this.#call.malformed = true;
      this.#tree = [];
      this.#state = 'body';
      return;
    }
    const parent = this.#tree.at(-1);
    if (parent !== undefined) parent.children.push(node);
    else {
      this.#call.pairs.push({ key: node.name, tree: node });
      this.#state = 'body';
    }
  }

  #treeText(): boolean {
    const text = this.#text;
    const node = this.#tree.at(-1)!;
    let from = this.#at;
    for (;;) {
      const at = text.indexOf(']', from);
      const found = at < 0 ? undefined : this.#lexHere(at);
      if (at >= 0 && found === undefined) {
        from = at + 1;
        continue;
      }
      node.text += text.slice(this.#at, at < 0 ? undefined : at);
      this.#at = at < 0 ? text.length : at;
      if (at < 0 || found === 'partial' || found === undefined) return false;
      this.#at = found.end;
      if (found.word.role !== 'node') {
        // The call closes, its argument did not.
        this.#call!.malformed = true;
        this.#tree = [];
      }
      this.#tag(found, false);
      return true;
    }
  }

  /** Harmony: from `<|start|>` or `<|channel|>` to the message; the recipient makes it a call. */
  #header(): boolean {
    const text = this.#text;
    for (; this.#at < text.length; this.#at++) {
      if (this.#head.length > LONGEST_HEADER) return this.#giveUp();
      const code = text.charCodeAt(this.#at);
      if (code === 0x3c) {
        const found = this.#lexHere();
        if (found === 'partial') return false;
        if (found === undefined) return this.#giveUp();
        this.#at = found.end;
        if (found.word.role === 'fence') return this.#headerEnds();
        this.#tag(found, false);
        return true;
      }
      if (code === 0x7b) return this.#headerEnds();
      this.#head += text[this.#at];
    }
    return false;
  }

  #giveUp(): false {
    this.#end('fail');
    return false;
  }

  #headerEnds(): boolean {
    const header = this.#head;
    this.#head = '';
    const recipient = /\bto=\s*([\w.-]+)/.exec(header)?.[1];
    const thinking = /\banalysis\b/.test(header);
    if (recipient === undefined || thinking) {
      // A channel without a recipient; JSON alone does not end a header.
      if (this.#text.charCodeAt(this.#at - 1) !== 0x3e) return this.#giveUp();
      this.channel = thinking ? 'reasoning' : 'text';
      this.#end('done');
      return true;
    }
    this.committed = true;
    this.#call = this.#newCall(recipient);
    this.#state = 'body';
    return true;
  }

  #discard(): boolean {
    const at = this.#text.slice(this.#at).search(/[^\w-]/);
    this.#at = at < 0 ? this.#text.length : this.#at + at;
    if (at >= 0) this.#state = this.#call === undefined ? 'outer' : 'body';
    return at >= 0;
  }
}

const NO_CALL: RawCall = {
  name: undefined,
  family: '',
  input: { type: 'value', value: undefined },
  malformed: true,
};
