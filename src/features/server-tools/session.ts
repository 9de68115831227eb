/** What one exchange has done so far: committed hop by hop, so that a failed try leaves no trace. */

import type { Target } from '../../conversation/target.ts';
import type { Conversation, ProtocolName, Turn } from '../../conversation/types.ts';
import { addUsage, type Usage } from '../../conversation/usage.ts';
import type { JsonObject } from '../../lib/json/json.ts';
import type { ToolRun } from '../../samples/recording.ts';
import { Sources } from './citations/sources.ts';
import type { HopLedger } from './ledger.ts';
import { type Offer, offerFor } from './offer.ts';
import type { ToolRegistry } from './registry.ts';
import type { DeclaredCalls } from './run-calls.ts';
import type { ServerTool, ToolLog } from './tool.ts';

export interface ServerToolLimits {
  /** Follow-up hops; the last one goes out without server tools. */
  readonly rounds: number;
  /** Calls at the same time. Default 4. */
  readonly parallel?: number;
  /** Milliseconds for all tools of an exchange together. Default 120 000. */
  readonly totalMs?: number;
}

export interface ServerToolOptions {
  readonly registry: ToolRegistry;
  readonly ledger: HopLedger;
  /** The protocol that the client speaks. */
  readonly client: ProtocolName;
  /** Whose request it is, '' without auth: nobody is ever given what another's answers held. */
  readonly owner: string;
  readonly limits: ServerToolLimits;
  readonly log: ToolLog;
  /** Calls that stand in the context with their results before the model says a word, in order. */
  readonly forced?: readonly ForcedCall[];
  /** The client's stream tells every run (`tool-event`). */
  readonly events?: boolean;
  /** Told of every tool that was run. */
  readonly onRun?: (run: ToolRun) => void;
  /** Milliseconds, monotonic. */
  readonly now?: () => number;
}

/** A call that is made for the model, before it is asked. */
export interface ForcedCall {
  /** Of a tool of the registry; one that the client has a tool of its own for is not made. */
  readonly name: string;
  /** Undefined: there is nothing to call it with. */
  readonly input: (asked: Conversation) => JsonObject | undefined;
}

/** The state of one exchange. Only {@link Session.commit} and what runs between hops change it. */
export class Session {
  readonly options: ServerToolOptions;
  readonly sources = new Sources();
  readonly uses = new Map<ServerTool, number>();
  /** What the first hop's passes were given: the frozen original of every hop. */
  base: Conversation | undefined;
  /** The forced calls and their results, once they are made. Never remembered: the next turn has its own. */
  preface: readonly Turn[] = [];
  /** Everything said and found since, as the upstream knows it. */
  delta: readonly Turn[] = [];
  /** Blocks that the client has been told. */
  blocks = 0;
  /** Text that the client has been told, and calls it was given. */
  said = '';
  clientCalls: readonly string[] = [];
  /** Ids of calls shown to the client. */
  shown: string[] = [];
  /** Tokens of the hops before. */
  usage: Usage | undefined;
  /** Runs of hosted tools, as usage counts them. */
  readonly hosted: Record<string, number> = {};
  /** Time is up, or a cap was met: the next hop must answer. */
  exhausted = false;
  /** The log has been told that an exchange goes on from its original. */
  cloned = false;
  #declared: DeclaredCalls | undefined;
  #offers = new Map<string, Offer>();
  #began: number | undefined;

  constructor(options: ServerToolOptions) {
    this.options = options;
  }

  /**
   * The tools for a target; the same answer in every hop of this exchange.
   * @param history as in {@link offerFor}
   */
  offer(asked: Conversation, target: Target, history?: () => readonly Turn[]): Offer {
    const key = `${target.provider}\n${target.model}`;
    const known = this.#offers.get(key);
    if (known !== undefined) return known;
    const offer = offerFor(this.base ?? asked, target, this.options.registry, history);
    this.#offers.set(key, offer);
    return offer;
  }

  /** The bound on calls of declared tools, read once from what the client asked. */
  declared(asked: Conversation | undefined): DeclaredCalls {
    const most = asked?.settings.rest?.max_tool_calls;
    this.#declared ??= { most: typeof most === 'number' && most >= 0 ? most : Infinity, made: 0 };
    return this.#declared;
  }

  /** Milliseconds left for tools; the clock starts with the first one. */
  leftMs(): number {
    const now = (this.options.now ?? performance.now.bind(performance))();
    this.#began ??= now;
    return (this.options.limits.totalMs ?? 120_000) - (now - this.#began);
  }

  /** The hop that must answer. */
  isLast(hop: number): boolean {
    return this.exhausted || hop > this.options.limits.rounds;
  }

  /** Counts a run of a hosted tool that the client declared. */
  count(hosted: string): void {
    const key = `${hosted}_requests`;
    this.hosted[key] = (this.hosted[key] ?? 0) + 1;
  }

  /** Usage of all hops so far with that of the running one; undefined where nobody said anything. */
  total(hop: Usage | undefined): Usage | undefined {
    const sum =
      this.usage === undefined ? hop : hop === undefined ? this.usage : addUsage(this.usage, hop);
    if (Object.keys(this.hosted).length === 0) return sum;
    return addUsage(sum ?? { input: 0, output: 0 }, { input: 0, output: 0, hosted: this.hosted });
  }

  /** A hop came to its true end. */
  commit(hop: {
    readonly base: Conversation;
    readonly blocks: number;
    readonly said: string;
    readonly clientCalls: readonly string[];
    readonly usage: Usage | undefined;
  }): void {
    this.base ??= hop.base;
    this.blocks = hop.blocks;
    this.said += hop.said;
    this.clientCalls = [...this.clientCalls, ...hop.clientCalls];
    if (hop.usage !== undefined) {
      this.usage = this.usage === undefined ? hop.usage : addUsage(this.usage, hop.usage);
    }
  }
}
