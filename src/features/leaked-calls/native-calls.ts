/** Passes, repairs and records the structured calls of one reply. */

import { GatewayError } from '../../conversation/errors.ts';
import type {
  BlockStartEvent,
  DeltaEvent,
  FinishReason,
  StreamEvent,
} from '../../conversation/events.ts';
import { isObject, type Json } from '../../lib/json/json.ts';
import type { RecoveredCall } from './build-calls.ts';
import type { Lexicon } from './grammar.ts';
import { type CallEnding, type CallHead, NativeCall } from './native-call.ts';
import type { ToolIndex } from './tool-index.ts';
import { jsonValue } from './values/coerce-value.ts';
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
  /** The tool whose call had a form that clients cannot use. */
  readonly odd?: string;
}

const pass = (...events: StreamEvent[]): NativeOutput => ({ events });
const NOTHING: NativeOutput = { events: [] };

/** Takes the events of structured calls. Keeps their order and holds those that may have to change. */
export class NativeCalls {
  readonly #rules: NativeRules;
  #head: CallHead | undefined;
  #call: NativeCall | undefined;
  #held: StreamEvent[] = [];
  /** The call has ended, but its JSON is incomplete. */
  #open: Extract<CallEnding, { type: 'open' }> | undefined;
  readonly #recorded: { readonly name: string; readonly text: string }[] = [];

  constructor(rules: NativeRules) {
    this.#rules = rules;
  }

  get count(): number {
    return this.#recorded.length;
  }

  start(given: BlockStartEvent, called: CallHead): NativeOutput {
    const { odd, ...usual } = called;
    const head = corrected(odd ? usual : called, this.#rules.tools);
    // Another event than the vendor's: its bytes do not go on.
    const event = head === called ? given : { ...given, head };
    this.#head = head;
    this.#call =
      head.by === 'provider' || head.kind !== 'function'
        ? undefined
        : new NativeCall(head, this.#rules.tools, this.#rules.all, this.#rules.repairs);
    if (this.#call?.held) return this.#hold(event);
    return {
      events: [event],
      ...(head.name === called.name ? {} : { misnamed: called.name }),
      ...(odd ? { odd: head.name } : {}),
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
        const known = this.#rules.tools.resolve(name);
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
    return this.#rules.tools.runsHere(this.#head!.name);
  }

  #broken(): GatewayError {
    const { provider } = this.#rules;
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
    return `${name} ${JSON.stringify(sorted(value))}`;
  } catch (thrown) {
    // Nested deeper than the stack allows: use the text.
    if (thrown instanceof RangeError) return `${name} ${input}`;
    throw thrown;
  }
}

function sorted(value: Json): Json {
  if (Array.isArray(value)) return (value as readonly Json[]).map(sorted);
  if (!isObject(value)) return value;
  const entries = Object.entries(value).map(([key, each]) => [key, sorted(each as Json)] as const);
  return Object.fromEntries(entries.sort(([a], [b]) => (a < b ? -1 : 1)));
}
