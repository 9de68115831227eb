/** The state of one exchange with server tools, committed hop by hop so that a failed try leaves no trace. */

import type { Payer } from '../../conversation/account/payer.ts';
import type { Target } from '../../conversation/target.ts';
import type { Conversation, ProtocolName, Turn } from '../../conversation/types.ts';
import { addUsage, type Usage } from '../../conversation/usage.ts';
import type { JsonObject } from '../../lib/json/json.ts';
import type { ToolRun } from '../../samples/recording.ts';
import { Sources } from './citations/sources.ts';
import type { HopLedger } from './hop-ledger.ts';
import { type Offer, offerFor } from './offer.ts';
import type { ToolRegistry } from './registry.ts';
import type { CallLimit } from './run-calls.ts';
import type { ServerTool, ToolLog } from './tool.ts';

export interface ServerToolLimits {
  /** Follow-up hops; the last one is sent without server tools. */
  readonly rounds: number;
  /** Calls that run at the same time. Default 4. */
  readonly parallel?: number;
  /** Milliseconds for all tools of an exchange together. Default 120 000. */
  readonly totalMs?: number;
}

export interface ServerToolOptions {
  readonly registry: ToolRegistry;
  readonly ledger: HopLedger;
  readonly client: ProtocolName;
  /** The owner of the request, '' without auth. No owner ever gets another's stored answers. */
  readonly owner: string;
  readonly payer?: Payer | undefined;
  readonly limits: ServerToolLimits;
  readonly log: ToolLog;
  /** Calls made before the model is asked, in order; they stand in the context with their results. */
  readonly forced?: readonly ForcedCall[];
  /** The client's stream shows every run as a `tool-event`. */
  readonly events?: boolean;
  readonly onRun?: (run: ToolRun) => void;
  /** The credentials of the configuration, in every spelling: they are masked in results. */
  readonly secrets?: readonly string[];
  /** Milliseconds, monotonic. */
  readonly now?: () => number;
}

/** A call made for the model before it is asked. */
export interface ForcedCall {
  /** A tool of the registry. The call is not made where the client has its own tool of that name. */
  readonly name: string;
  /** The arguments; undefined: no call. */
  readonly input: (original: Conversation) => JsonObject | undefined;
}

/** Changed only by {@link Session.commit} and between hops. */
export class Session {
  readonly sources = new Sources();
  readonly uses = new Map<ServerTool, number>();
  /** The conversation that the first hop's passes got: the frozen original of every hop. */
  base: Conversation | undefined;
  /** The forced calls and their results. Never stored in the ledger: the next turn makes its own. */
  preface: readonly Turn[] = [];
  /** The turns added since, as the upstream knows them. */
  addedTurns: readonly Turn[] = [];
  /** Blocks that the client has got. */
  blockCount = 0;
  /** The text that the client has got, and the ids of its own calls. */
  clientText = '';
  clientCallIds: readonly string[] = [];
  /** Ids of the server calls that were shown to the client. */
  shownCallIds: string[] = [];
  /** Tokens of the earlier hops. */
  usage: Usage | undefined;
  /** Runs of hosted tools by their names in usage. */
  readonly hostedRuns: Record<string, number> = {};
  /** The time is used up: the next hop must answer. */
  exhausted = false;
  /** The log event of the first tool round has been written. */
  cloneLogged = false;
  #declared: CallLimit | undefined;
  #offers = new Map<string, Offer>();
  #began: number | undefined;

  constructor(readonly options: ServerToolOptions) {}

  /**
   * The tools for a target; the same in every hop of this exchange, as long as it takes them.
   * @param history as in {@link offerFor}
   */
  offer(original: Conversation, target: Target, history?: () => readonly Turn[]): Offer {
    // A model that has just refused tools takes none.
    const key = `${target.provider}\n${target.model}\n${target.profile.maxTools}`;
    const known = this.#offers.get(key);
    if (known !== undefined) return known;
    const offer = offerFor(this.base ?? original, target, this.options.registry, history);
    this.#offers.set(key, offer);
    return offer;
  }

  /** The limit on calls of declared tools, read once from the client's request. */
  declaredCalls(original: Conversation | undefined): CallLimit {
    const most = original?.settings.rest?.max_tool_calls;
    this.#declared ??= { max: typeof most === 'number' && most >= 0 ? most : Infinity, used: 0 };
    return this.#declared;
  }

  /** Milliseconds left for tools; the time starts with the first call. */
  leftMs(): number {
    const now = (this.options.now ?? performance.now.bind(performance))();
    this.#began ??= now;
    return (this.options.limits.totalMs ?? 120_000) - (now - this.#began);
  }

  /** Must this hop answer? */
  isLast(hop: number): boolean {
    return this.exhausted || hop > this.options.limits.rounds;
  }

  /** Counts a run of a hosted tool that the client declared. */
  countHostedRun(hosted: string): void {
    const key = `${hosted}_requests`;
    this.hostedRuns[key] = (this.hostedRuns[key] ?? 0) + 1;
  }

  /** The usage of all hops with that of the running one; undefined where no vendor reported any. */
  totalUsage(hop: Usage | undefined): Usage | undefined {
    const sum =
      this.usage === undefined ? hop : hop === undefined ? this.usage : addUsage(this.usage, hop);
    if (Object.keys(this.hostedRuns).length === 0) return sum;
    return addUsage(sum ?? { input: 0, output: 0 }, {
      input: 0,
      output: 0,
      hosted: this.hostedRuns,
    });
  }

  /** Takes over a hop that came to its true end. */
  commit(hop: {
    readonly base: Conversation;
    readonly blockCount: number;
    readonly text: string;
    readonly clientCallIds: readonly string[];
    readonly usage: Usage | undefined;
  }): void {
    this.base ??= hop.base;
    this.blockCount = hop.blockCount;
    this.clientText += hop.text;
    this.clientCallIds = [...this.clientCallIds, ...hop.clientCallIds];
    if (hop.usage !== undefined) {
      this.usage = this.usage === undefined ? hop.usage : addUsage(this.usage, hop.usage);
    }
  }
}
