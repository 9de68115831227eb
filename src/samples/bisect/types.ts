import type { ProtocolName } from '../../conversation/types.ts';
import type { JsonObject } from '../../lib/json/json.ts';

/** The verdict of one probe: fails the same way, passes, or fails in another way. */
export type Verdict = 'same' | 'passes' | 'other';

/** One request that was sent. */
export interface ProbeReport {
  /** Identifies the candidate. */
  readonly key: string;
  readonly verdict: Verdict;
  /** Requests sent by now. */
  readonly spent: number;
  /** The kind of part that is being removed: `messages`, `tools`, … */
  readonly phase: string;
  /** Bytes of the candidate, and of the smallest failing one so far. */
  readonly bytes: number;
  readonly best: number;
}

export interface BisectOptions {
  readonly body: JsonObject;
  readonly protocol: ProtocolName;
  /** Requests that may be sent. */
  readonly budget: number;
  /** Sends one candidate. An error ends the search with what was found so far. */
  readonly probe: (body: JsonObject) => Promise<Verdict>;
  /** Verdicts of an earlier run, by key: they cost nothing. */
  readonly known?: ReadonlyMap<string, readonly Verdict[]>;
  readonly onProbe?: (probe: ProbeReport) => void;
  /** Asked when the budget is spent: how many more requests may be sent; 0 ends the search. */
  readonly more?: (spent: number) => Promise<number>;
  /** The failure's message, once known. */
  readonly failure?: () => string;
  /** The vendor refused the request itself: such a failure does not come and go, and is looked at once. */
  readonly isRefusal?: boolean;
  /** Ends the search early. */
  readonly signal?: AbortSignal;
}

/** What the minimal failing request holds and the nearest passing one lacks. */
export interface BisectCause {
  /** JSON pointer into the whole request. */
  readonly at: string;
  /** The same place in the minimal request. */
  readonly in_minimal: string;
  /** Bytes of that value in the whole request. */
  readonly bytes: number;
  /** Bytes of it that are enough to fail. */
  readonly enough: number;
}

export interface BisectReport {
  /** `minimal`: nothing more can be left out; `partial`: the search ended before that. */
  readonly result: 'minimal' | 'partial' | 'does-not-fail';
  /** The smallest request that still fails the same way. */
  readonly minimal: JsonObject;
  /** The nearest request that passes. */
  readonly passing: JsonObject | undefined;
  /** Requests sent in this run. */
  readonly probes: number;
  /** How often the failure shows when it can: 1 = always. */
  readonly failure_rate: number;
  readonly cause: BisectCause | undefined;
  readonly words: string;
}
