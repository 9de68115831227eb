/** Checks one structured call of the vendor for markup in its name or arguments and for broken JSON. */

import type { BlockHead } from '../../conversation/events.ts';
import { repeatedArguments } from '../../conversation/tools/argument-pieces.ts';
import { isObject } from '../../lib/json/json.ts';
import { LeakBlock } from './block/block.ts';
import { lex } from './block/lex.ts';
import { buildCalls, PARALLEL, parallelCalls, type RecoveredCall } from './build-calls.ts';
import type { Lexicon } from './grammar.ts';
import { Search } from './scan/search.ts';
import type { ToolIndex } from './tool-index.ts';
import { jsonValue } from './values/coerce-value.ts';
import { JsonCheck } from './values/json-check.ts';
import type { Repairs } from './values/repair-json.ts';

export type CallHead = Extract<BlockHead, { type: 'tool-call' }>;

/** The result of checking a call at its end. */
export type CallEnding =
  /** The call is unchanged. */
  | { readonly type: 'same' }
  /** Arguments text that replaces the held text. */
  | { readonly type: 'rest'; readonly text: string }
  /** Other calls that replace it; nothing of it was sent. */
  | { readonly type: 'calls'; readonly calls: readonly RecoveredCall[]; readonly family?: string }
  /** The JSON broke off. The finish reason tells whether that is the length limit or an error. */
  | { readonly type: 'open'; readonly text: string | undefined }
  /** The arguments cannot be read. */
  | { readonly type: 'broken' };

export class NativeCall {
  readonly #head: CallHead;
  readonly #tools: ToolIndex;
  readonly #lexicon: Lexicon;
  readonly #repairs: Repairs;
  readonly #check = new JsonCheck();
  /** The whole arguments, and how much of them was sent. */
  #text: string[] = [];
  #gone = 0;
  #length = 0;
  /** Everything is held, because the call cannot go out under this name. */
  readonly #whole: boolean;

  constructor(head: CallHead, tools: ToolIndex, lexicon: Lexicon, repairs: Repairs) {
    this.#head = head;
    this.#repairs = repairs;
    this.#tools = tools;
    this.#lexicon = lexicon;
    const { name } = head;
    const strange = tools.resolve(name) === undefined || /[<>|｜\n]/.test(name);
    this.#whole = tools.size > 0 && strange && (PARALLEL.test(name) || /[<|｜({\n]/.test(name));
  }

  /** The head is held too. */
  get held(): boolean {
    return this.#whole;
  }

  /**
   * True if everything so far may pass; false if this piece has to wait. A trailing comma waits, because it
   * could not be repaired once sent.
   */
  push(text: string): boolean {
    this.#text.push(text);
    this.#length += text.length;
    if (this.#whole || !this.#check.push(text)) return false;
    if (this.#check.atComma || this.#check.unsure) return false;
    this.#gone = this.#length;
    return true;
  }

  /** The arguments as they came. */
  get text(): string {
    return this.#text.join('');
  }

  end(): CallEnding {
    if (this.#whole) return this.#other();
    if (this.#check.complete || (this.#check.empty && this.#check.valid)) return { type: 'same' };
    const text = this.text;
    const gone = text.slice(0, this.#gone);
    // White space behind the last value went out already; the repair closes the brackets before it.
    if (this.#check.valid) {
      const shown = gone === text ? text.trimEnd() : gone;
      return { type: 'open', text: suffix(this.#repairs.text(text.trimEnd()), shown) };
    }
    const value = jsonValue(text);
    if (isObject(value)) return { type: 'same' };
    // The arguments may be a JSON string that contains the object.
    const inner = typeof value === 'string' ? jsonValue(value) : undefined;
    if (value === null) return { type: 'rest', text: '{}' };
    const fixed = isObject(inner)
      ? (value as string)
      : (repeatedArguments(this.#text) ?? this.#unmarked(text) ?? this.#fixed(text));
    const rest = suffix(fixed, gone);
    return rest === undefined ? { type: 'broken' } : { type: 'rest', text: rest };
  }

  #fixed(text: string): string | undefined {
    const inside = withoutWrapping(text);
    return isObject(jsonValue(inside)) ? inside : this.#repairs.text(inside);
  }

  /** Reads markup instead of JSON (`<arg_key>…`, `<parameter …>…`) as the body of this call. */
  #unmarked(text: string): string | undefined {
    if (!text.trimStart().startsWith('<')) return undefined;
    const { name } = this.#head;
    const forms = [
      [`<tool_call>${name}\n`, '</tool_call>'],
      [`<invoke name="${name}">`, '</invoke>'],
    ] as const;
    for (const [before, behind] of forms) {
      const calls = this.#recover(before + text + behind);
      if (calls.length === 1 && calls[0]!.name === this.#head.name) return calls[0]!.input;
    }
    return undefined;
  }

  #recover(markup: string): readonly RecoveredCall[] {
    const lexeme = lex(markup, 0, this.#lexicon);
    if (lexeme === undefined || lexeme === 'partial') return [];
    const block = new LeakBlock({ type: 'tag', lexeme, lineStart: false }, this.#lexicon, {
      isTool: () => true,
      repairs: this.#repairs,
      search: new Search(),
    });
    const state = block.push(markup.slice(lexeme.end));
    if ((state === 'more' ? block.finish() : state) !== 'done' || block.reading.unreadable)
      return [];
    return block.reading.calls.flatMap((call) => buildCalls(call, this.#tools, this.#repairs));
  }

  /** Handles a name that is no tool's: a wrapper of several calls, or a name with markup in it. */
  #other(): CallEnding {
    const { name } = this.#head;
    const text = this.text;
    if (PARALLEL.test(name)) {
      const value = jsonValue(text);
      const calls = parallelCalls(value, 'parallel')?.flatMap((c) =>
        buildCalls(c, this.#tools, this.#repairs),
      );
      return calls !== undefined && calls.length > 0 ? { type: 'calls', calls } : { type: 'same' };
    }
    const end = name.search(/[<|｜({\n]/);
    const base = end < 0 ? name : name.slice(0, end);
    const value = text.trim() === '' ? {} : jsonValue(text);
    const bare = isObject(value) && Object.keys(value).length === 0;
    // GLM puts the whole call into the name and leaves the arguments empty.
    if (bare) {
      const calls = this.#recover(`<tool_call>${name}</tool_call>`);
      if (calls.length > 0) return { type: 'calls', calls, family: 'glm' };
    }
    const input = { type: 'json' as const, text: text.trim() === '' ? '{}' : text };
    const family = /channel|constrain/.test(name) ? 'harmony' : 'glm';
    if (bare && /arg_(?:key|value)/.test(name)) return { type: 'broken' };
    const calls = buildCalls(
      { name: base, family, input, malformed: false },
      this.#tools,
      this.#repairs,
    );
    return calls.length > 0 ? { type: 'calls', calls, family } : { type: 'same' };
  }
}

/** A model's end of a turn, left behind what it wrote. */
const STOP_WORDS = ['<|im_end|>', '<|eot_id|>', '<|eom_id|>', '<|endoftext|>', '<|end|>', '</s>'];

/** The arguments without the Markdown fence around them and the stop words behind them. */
function withoutWrapping(text: string): string {
  let inside = text;
  for (const word of STOP_WORDS) {
    const end = inside.trimEnd();
    if (end.endsWith(word)) inside = end.slice(0, -word.length);
  }
  const fenced = inside.trim();
  const open = /^```(?:json)?\s*(?=\{)/i.exec(fenced);
  if (open === null || !fenced.endsWith('}\n```')) return inside;
  return fenced.slice(open[0].length, -'\n```'.length);
}

/** The part of `full` after `gone`; undefined if `full` does not begin with it. */
function suffix(full: string | undefined, gone: string): string | undefined {
  return full?.startsWith(gone) ? full.slice(gone.length) : undefined;
}
