/** Types of the API under `/ui/api` for sessions; see `../api.ts`. */

import type { SampleRow } from '../../../samples/sample.ts';
import type { BlockView, TurnView } from '../bodies/api-body.ts';

/** `GET /ui/api/sessions`: the sessions of the last exchanges, the newest first. */
export interface SessionsList {
  readonly sessions: readonly SessionRow[];
}

export interface SessionRow {
  readonly id: string;
  readonly client: string;
  readonly key: string;
  readonly models: readonly string[];
  /** Id of the first exchange of its conversation. */
  readonly first: string;
  /** Milliseconds since 1970, of the first exchange and of the last one's end. */
  readonly from: number;
  readonly until: number;
  readonly exchanges: number;
  /** Exchanges that failed, and those that a later try made good. */
  readonly failed: number;
  readonly retried: number;
  readonly totals: SessionTotals;
}

export interface SessionTotals {
  readonly input_tokens: number;
  readonly cached_tokens: number;
  readonly output_tokens: number;
  /** USD; null when nothing has a price. */
  readonly cost: number | null;
}

/** `GET /ui/api/sessions/:id`: at most the first 400 exchanges of a session, oldest first. */
export interface SessionView {
  readonly id: string;
  readonly steps: readonly SessionStep[];
  /** Conversations of the session, the longest first: the main one, then those of subagents and small jobs. */
  readonly threads: readonly SessionThread[];
  readonly totals: SessionTotals;
  /** Later exchanges were left out. */
  readonly more: boolean;
}

export interface SessionThread {
  /** First words of what it was asked. */
  readonly title: string;
  readonly exchanges: number;
}

/** An exchange in the list. Costs are in USD; null where the model has no price. */
export interface UiRow extends SampleRow {
  readonly cost: number | null;
}

/** One exchange of a session: only what it added to its conversation. */
export interface SessionStep {
  readonly row: UiRow;
  /** Index of its thread. */
  readonly thread: number;
  /** The turns that the request added, and their indexes in the request. */
  readonly added: readonly (TurnView & { readonly index: number })[];
  /** The blocks of the answer. */
  readonly answered: readonly BlockView[];
  /** What went wrong. */
  readonly problem: string | null;
  /** Tries at vendors and tools of the gateway, in milliseconds since the exchange began. */
  readonly spans: readonly SessionSpan[];
  readonly cache: CacheView | null;
}

export interface SessionSpan {
  readonly kind: 'hop' | 'failed' | 'tool';
  readonly name: string;
  readonly from: number;
  readonly to: number;
}

/** Of an exchange whose vendor reports its prompt cache. */
export interface CacheView {
  /** cached / input. */
  readonly share: number;
  /** The cache of the exchange before was not used; null: it was, or there was none. */
  readonly lost: CacheLoss | null;
}

export interface CacheLoss {
  /** Tokens that the exchange before had read from or written to the cache, and this one did not read. */
  readonly tokens: number;
  /** What changed in the prompt in front of the new turns; `none`: nothing did. */
  readonly change: 'target' | 'tools' | 'system' | 'turn' | 'none';
  /** In words, with the first difference. */
  readonly text: string;
}
