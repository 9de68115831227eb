/** Passes, repairs and records the structured calls of one reply. */

import { GatewayError } from '../../conversation/errors.ts';
import type {
  BlockHead,
  BlockStartEvent,
  DeltaEvent,
  FinishReason,
  StreamEvent,
} from '../../conversation/events.ts';
import { repeatedArguments } from '../../conversation/tools/argument-pieces.ts';
import { canonicalText, isObject } from '../../lib/json/json.ts';
import { LeakBlock } from './block/block.ts';
import { lex } from './block/lex.ts';
import { Search } from './block/reading.ts';
import { buildCalls, PARALLEL, parallelCalls, type RecoveredCall } from './build-calls.ts';
import type { Lexicon } from './grammars.ts';
import type { ToolIndex } from './tool-index.ts';
import { jsonValue } from './values/coerce-value.ts';
import { JsonCheck } from './values/json-check.ts';
import { BracketScan } from './values/json-scan.ts';
import type { Repairs } from './values/repair-json.ts';

export interface NativeRules {
  readonly tools: ToolIndex;
  readonly all: Lexicon;
  readonly repairs: Repairs;
  readonly provider: string;
}

/** The output for one event: events that pass, or calls that replace one. */
export interface NativeOutput {
  readonly events: readonly StreamEvent[];
  readonly calls?: readonly RecoveredCall[];
  readonly family?: string;
  /** The tool whose arguments have been repaired. */
  readonly repaired?: string;
  /** The name that the vendor gave to a tool of another name. */
  readonly misnamed?: string;
}

const pass = (...events: StreamEvent[]): NativeOutput => ({ events });
const NOTHING: NativeOutput = { events: [] };

/** Takes the events of structured calls. Keeps their order and holds those that may have to change. */
export class NativeCalls {
  #head: CallHead | undefined;
  #call: NativeCall | undefined;
  #held: StreamEvent[] = [];
  /** The call has ended, but its JSON is incomplete. */
  #open: Extract<CallEnding, { type: 'open' }> | undefined;
  readonly #recorded: { readonly name: string; readonly text: string }[] = [];

  constructor(private readonly rules: NativeRules) {}

  get count(): number {
    return this.#recorded.length;
  }

  start(given: BlockStartEvent, called: CallHead): NativeOutput {
    const head = corrected(called, this.rules.tools);
    // Another event than the vendor's: its bytes do not go on.
    const event = head === called ? given : { ...given, head };
    this.#head = head;
    this.#call =
      head.by === 'provider' || head.kind !== 'function'
        ? undefined
        : new NativeCall(head, this.rules.tools, this.rules.all, this.rules.repairs);
    if (this.#call?.held) return this.#hold(event);
    return {
      events: [event],
      ...(head.name === called.name ? {} : { misnamed: called.name }),
    };
  }

  /** For use while nothing is held. True: the piece passes; false: it is now held. */
  passes(event: DeltaEvent): boolean {
    if (this.#call === undefined || this.#call.push(event.text)) return true;
    this.#held.push(event);
    return false;
  }

  delta(event: DeltaEvent): NativeOutput {
    if (this.#call === undefined) return pass(event);
    if (!this.#call.push(event.text)) return this.#hold(event);
    const events = [...this.#held, event];
    this.#held = [];
    return { events };
  }

  /** Any other event while something is held. */
  beside(event: StreamEvent): NativeOutput {
    return this.#held.length > 0 ? this.#hold(event) : pass(event);
  }

  /** @throws GatewayError upstream if the arguments of a client's tool cannot be read */
  stop(event: StreamEvent & { readonly index: number }): NativeOutput {
    const call = this.#call;
    if (call === undefined) return pass(event);
    const ending = call.end();
    const name = this.#head!.name;
    if (ending.type !== 'calls') this.#recorded.push({ name, text: call.text });
    switch (ending.type) {
      case 'same':
        return this.#flush(event);
      case 'rest':
        this.#recorded[this.#recorded.length - 1] = { name, text: call.text };
        return this.#instead(ending.text, event);
      case 'calls':
        this.#held = [];
        this.#call = undefined;
        for (const each of ending.calls) this.#recorded.push({ name: each.name, text: each.input });
        return { events: [], calls: ending.calls, family: ending.family };
      case 'open':
        this.#open = ending;
        return this.#hold(event);
      case 'broken':
        // The gateway runs this tool and reports the error to the model.
        if (this.#runsHere) return this.#flush(event);
        throw this.#broken();
    }
  }

  /**
   * Decides on a call whose JSON broke off, once the finish reason is known, or another block follows (then
   * it was not the length limit).
   * @throws GatewayError upstream if no limit cut it and the tool is the client's
   */
  decide(reason: FinishReason | undefined): NativeOutput {
    const open = this.#open;
    if (open === undefined) return NOTHING;
    this.#open = undefined;
    if (reason === 'length' || reason === 'context-overflow') return this.#flush();
    if (open.text === undefined) {
      if (this.#runsHere) return this.#flush();
      throw this.#broken();
    }
    const stop = this.#held.findLast((event) => event.type === 'block-stop')!;
    return this.#instead(open.text, stop as StreamEvent & { readonly index: number });
  }

  /** The stream has ended; returns held events unchanged. */
  end(): readonly StreamEvent[] {
    return this.#flush().events;
  }

  get holding(): boolean {
    return this.#held.length > 0;
  }

  /** The key of every structured call so far; see {@link callKey}. */
  keys(): Set<string> {
    return new Set(
      this.#recorded.map(({ name, text }) => {
        const known = this.rules.tools.resolve(name);
        return callKey(known?.name ?? name, text);
      }),
    );
  }

  #hold(event: StreamEvent): NativeOutput {
    this.#held.push(event);
    return NOTHING;
  }

  #flush(...more: StreamEvent[]): NativeOutput {
    const events = [...this.#held, ...more];
    this.#held = [];
    this.#call = undefined;
    return { events };
  }

  /** Replaces the held deltas with the rest of the arguments. */
  #instead(text: string, stop: StreamEvent & { readonly index: number }): NativeOutput {
    const others = this.#held.filter((event) => event.type !== 'delta' && event !== stop);
    this.#held = [];
    this.#call = undefined;
    const delta: StreamEvent[] = text === '' ? [] : [{ type: 'delta', index: stop.index, text }];
    return { events: [...delta, stop, ...others], repaired: this.#head!.name };
  }

  get #runsHere(): boolean {
    return this.rules.tools.runsHere(this.#head!.name);
  }

  #broken(): GatewayError {
    const { provider } = this.rules;
    return new GatewayError(
      'upstream',
      `Provider ${provider} sent a call of the tool ${this.#head!.name} whose arguments are not JSON and cannot be repaired.`,
      { code: 'broken_tool_arguments', retryable: true },
    );
  }
}

// Kimi's ids, Harmony's recipients and Gemini's own module in place of a name: `functions.NAME:0`, `functions.NAME`, `default_api:NAME`.
const DECORATION = /^(?:functions?|default_api)[.:/]|:\d+$/g;

/** The head with the name of the declared tool that the vendor meant; the same head if it needs none. */
function corrected(head: CallHead, tools: ToolIndex): CallHead {
  const { name, by, kind, namespace } = head;
  if (by === 'provider' || kind !== 'function' || namespace !== undefined) return head;
  const bare = name.replace(DECORATION, '');
  const known = bare === name ? undefined : tools.resolve(name);
  const meant = known?.name === bare && known.kind === kind && known.namespace === undefined;
  return meant ? { ...head, name: bare } : head;
}

/** A canonical text of a call: equal calls have equal keys. */
export function callKey(name: string, input: string): string {
  const value = input.trim() === '' ? {} : jsonValue(input);
  if (value === undefined) return `${name} ${input}`;
  try {
    return `${name} ${canonicalText(value)}`;
  } catch (thrown) {
    // Nested deeper than the stack allows: use the text.
    if (thrown instanceof RangeError) return `${name} ${input}`;
    throw thrown;
  }
}

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
  readonly #check = new JsonCheck();
  /** The whole arguments, and how much of them was sent. */
  #text: string[] = [];
  #gone = 0;
  #length = 0;
  /** Everything is held, because the call cannot go out under this name. */
  readonly #whole: boolean;

  constructor(
    private readonly head: CallHead,
    private readonly tools: ToolIndex,
    private readonly lexicon: Lexicon,
    private readonly repairs: Repairs,
  ) {
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
    if (this.#check.atComma || this.#check.unsure || this.#isBare) return false;
    this.#gone = this.#length;
    return true;
  }

  /** So far an empty object: relays of Claude begin with one, and the arguments follow (BerriAI/litellm#4537). */
  get #isBare(): boolean {
    return this.#length < MAX_BARE && EMPTY_OBJECT.test(this.text);
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
      return { type: 'open', text: suffix(this.repairs.text(text.trimEnd()), shown) };
    }
    const value = jsonValue(text);
    if (isObject(value)) return { type: 'same' };
    // The arguments may be a JSON string that contains the object.
    const inner = typeof value === 'string' ? jsonValue(value) : undefined;
    if (value === null) return { type: 'rest', text: '{}' };
    const fixed = isObject(inner)
      ? (value as string)
      : (repeatedArguments(this.#text) ??
        objectOr(text.replace(EMPTY_BEFORE, '')) ??
        this.#unmarked(text) ??
        objectOr(this.#untailed(text)) ??
        this.#fixed(text));
    const rest = suffix(fixed, gone);
    return rest === undefined ? { type: 'broken' } : { type: 'rest', text: rest };
  }

  #fixed(text: string): string | undefined {
    const inside = withoutWrapping(text);
    return objectOr(inside) ?? this.repairs.text(inside);
  }

  /** The arguments without the closers of a model's own markup behind them. */
  #untailed(text: string): string {
    const end = new BracketScan().feed(text);
    const tail = end < 0 ? -1 : text.indexOf('<', end);
    for (let at = tail; at >= 0 && at < text.length; ) {
      const found = lex(text, at, this.lexicon);
      if (found === undefined || found === 'partial') {
        if (text[at]!.trim() !== '') return text;
        at++;
      } else if (found.closing || found.word.role === 'stop') at = found.end;
      else return text;
    }
    return tail < 0 ? text : text.slice(0, tail);
  }

  /** Reads markup instead of JSON (`<arg_key>…`, `<parameter …>…`) as the body of this call. */
  #unmarked(text: string): string | undefined {
    if (!text.trimStart().startsWith('<')) return undefined;
    const { name } = this.head;
    const forms = [
      [`<tool_call>${name}\n`, '</tool_call>'],
      [`<invoke name="${name}">`, '</invoke>'],
    ] as const;
    for (const [before, behind] of forms) {
      const calls = this.#recover(before + text + behind);
      if (calls.length === 1 && calls[0]!.name === this.head.name) return calls[0]!.input;
    }
    return undefined;
  }

  #recover(markup: string): readonly RecoveredCall[] {
    const lexeme = lex(markup, 0, this.lexicon);
    if (lexeme === undefined || lexeme === 'partial') return [];
    const block = new LeakBlock({ type: 'tag', lexeme, lineStart: false }, this.lexicon, {
      isTool: () => true,
      repairs: this.repairs,
      search: new Search(),
    });
    const state = block.push(markup.slice(lexeme.end));
    if ((state === 'more' ? block.finish() : state) !== 'done' || block.reading.unreadable)
      return [];
    return block.reading.calls.flatMap((call) => buildCalls(call, this.tools, this.repairs));
  }

  /** Handles a name that is no tool's: a wrapper of several calls, or a name with markup in it. */
  #other(): CallEnding {
    const { name } = this.head;
    const text = this.text;
    if (PARALLEL.test(name)) {
      const value = jsonValue(text);
      const calls = parallelCalls(value, 'parallel')?.flatMap((c) =>
        buildCalls(c, this.tools, this.repairs),
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
      this.tools,
      this.repairs,
    );
    return calls.length > 0 ? { type: 'calls', calls, family } : { type: 'same' };
  }
}

const EMPTY_OBJECT = /^\s*\{\s*\}\s*$/;
const EMPTY_BEFORE = /^\s*\{\s*\}(?=\s*\{)/;
/** No longer text is looked at as an empty object. */
const MAX_BARE = 16;

const objectOr = (text: string): string | undefined =>
  isObject(jsonValue(text)) ? text : undefined;

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
