/** The interface of a memory: events of a space, and how to recall and capture them. */

import type { Payer } from './account/payer.ts';

/** Importance from 0 (trivial) to 1 (must not be forgotten). */
export interface MemoryEvent {
  /** `mem_…` */
  readonly id: string;
  /** Milliseconds since 1970: when it happened. */
  readonly time: number;
  readonly text: string;
  /** The speaker or origin. */
  readonly source?: string;
  readonly tags: readonly string[];
  readonly importance: number;
}

export interface RecalledEvent extends MemoryEvent {
  /** Higher means closer to the query. Comparable within one recall only. */
  readonly score: number;
  /** The text is a passage of a longer one. */
  readonly excerpt?: boolean;
}

export interface NewMemoryEvent {
  readonly text: string;
  /** Default: now. */
  readonly time?: number;
  readonly source?: string;
  readonly tags?: readonly string[];
  readonly importance?: number;
}

export interface RecallQuery {
  readonly query: string;
  /** The most events to return. */
  readonly limit?: number;
  /** The most tokens of all events together, estimated: long texts are cut to passages. 0: no limit. */
  readonly maxTokens?: number;
  /** Only events from this time on, and before this one, in milliseconds since 1970. */
  readonly since?: number;
  readonly until?: number;
  /** The time zone of the one who asks, by its IANA name: "yesterday" is a day there. Default: UTC. */
  readonly timeZone?: string;
  /** The name that the model speaks under: its own words count less than those of others. */
  readonly speaker?: string;
  readonly signal?: AbortSignal;
  /** On whose account the vector of the query goes. */
  readonly payer?: Payer | undefined;
}

/** Identifies a captured turn: when it is captured again, its new events replace the old ones. */
export interface CapturedTurn {
  readonly name: string;
  /** An app gave the name. Otherwise it is known by its words, and only for the time of `memory.dedupe`. */
  readonly isGiven: boolean;
}

/**
 * A memory, embedded or external. Spaces are strictly separate. Every method rejects with a GatewayError
 * if the memory fails.
 */
export interface Memory {
  /** The best matches, best first; none for an unknown space. */
  recall(space: string, query: RecallQuery): Promise<readonly RecalledEvent[]>;
  /**
   * Stores events in the background: resolves when they are accepted. Duplicates are left out.
   * @param began when their turn began, as of `instant`: a space that was erased since then stores none
   * @param key whose they are, by its id; its share is counted
   */
  capture(
    space: string,
    events: readonly NewMemoryEvent[],
    began?: number,
    turn?: CapturedTurn,
    key?: string,
  ): Promise<void>;
  /** Removes events by their ids; the number of those that were there. */
  forget(space: string, ids: readonly string[]): Promise<number>;
}
