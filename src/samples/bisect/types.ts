/** The search for the smallest request that still fails: what it asks, and what it finds. */

import type { ProtocolName } from '../../conversation/types.ts';
import type { JsonObject } from '../../lib/json/json.ts';

/** Of one probe: fails as the request that is looked into does, passes, or fails in some other way. */
export type Verdict = 'same' | 'passes' | 'other';

/** One request that was sent. */
export interface ProbeReport {
  /** Names the body among all candidates. */
  readonly key: string;
  readonly verdict: Verdict;
  /** Requests sent by now. */
  readonly spent: number;
  /** What is being tried: `messages`, `texts`, … */
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
  /** Sends one candidate. What it throws ends the search; what was found so far is told. */
  readonly probe: (body: JsonObject) => Promise<Verdict>;
  /** Verdicts of an earlier run, by key: they cost nothing. */
  readonly known?: ReadonlyMap<string, readonly Verdict[]>;
  readonly onProbe?: (probe: ProbeReport) => void;
  /** Asks for an early end. */
  readonly signal?: AbortSignal;
}

/** What the minimal failing request holds and the nearest passing one does not. */
export interface BisectCause {
  /** JSON pointer into the request that was looked into. */
  readonly at: string;
  /** The same place in the minimal request. */
  readonly in_minimal: string;
  /** Size of what stands there in the request that was looked into. */
  readonly bytes: number;
  /** How much of it is enough to fail. */
  readonly enough: number;
}

export interface BisectReport {
  /** `minimal`: nothing more can be left out; `partial`: budget or patience ended before that. */
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
