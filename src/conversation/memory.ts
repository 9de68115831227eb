/** What is remembered of a conversation: events of a space, and how a memory is asked. */

/** Importance from 0 (trivial) to 1 (must not be forgotten). */
export interface MemoryEvent {
  /** `mem_…` */
  readonly id: string;
  /** Milliseconds since 1970: when it happened. */
  readonly time: number;
  readonly text: string;
  /** Who said it or where it comes from. */
  readonly source?: string;
  readonly tags: readonly string[];
  readonly importance: number;
}

export interface RecalledEvent extends MemoryEvent {
  /** Higher is nearer to what was asked; comparable within one recall only. */
  readonly score: number;
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
  /** At most so many events. */
  readonly limit?: number;
  /** As whom the model speaks: what it said itself counts for less than what others said. */
  readonly speaker?: string;
  readonly signal?: AbortSignal;
}

/**
 * What conversations need of a memory, embedded or elsewhere. Spaces are strictly apart.
 * Everything rejects with a GatewayError when the memory cannot do it.
 */
export interface Memory {
  /** The events that fit best, best first; of an unknown space none. */
  recall(space: string, query: RecallQuery): Promise<readonly RecalledEvent[]>;
  /**
   * Takes events over, off the hot path: resolves when they are accepted, duplicates left out.
   * @param began when the turn began that says them, as of `instant`: a space that was erased since keeps none
   */
  capture(space: string, events: readonly NewMemoryEvent[], began?: number): Promise<void>;
}
