/** What stands behind the memory API: the embedded database, or a store elsewhere. */

import type { Memory, MemoryEvent, NewMemoryEvent } from '../../conversation/memory.ts';
import type { ListQuery, Page } from './store/page-store.ts';

/** What became of captured events. */
export type CaptureOutcome = 'stored' | 'duplicate' | 'dropped' | 'full' | 'erased';

/** How a recall was ranked: by words, by words and vectors, by words since vectors failed, elsewhere. */
export type RecallKind = 'text' | 'hybrid' | 'fallback' | 'external' | 'failed';

/** Who is told of what happens; calls return at once and never throw. */
export interface MemoryWatch {
  captured(outcome: CaptureOutcome, count: number): void;
  /** Milliseconds. */
  recalled(kind: RecallKind, ms: number): void;
  /** Trouble that an operator should know of, in words. */
  problem(message: string): void;
  /** The embeddings endpoint failed: words alone decide. */
  embeddingsFailed(message: string): void;
}

export type EventChange = Partial<
  Pick<MemoryEvent, 'text' | 'time' | 'source' | 'tags' | 'importance'>
>;

export interface SpaceCount {
  readonly space: string;
  readonly events: number;
}

/** Events one by one: only where they are kept here. */
export interface EventBook {
  /**
   * All of them or none, in the order given; true: made now, false: its id was known.
   * @throws GatewayError that names the field or the limit
   */
  add(
    space: string,
    events: readonly (NewMemoryEvent & { readonly id?: string })[],
    /** How the client calls an event of them by its place: `events[3]`; '' for one alone. */
    called: (place: number) => string,
  ): readonly (readonly [MemoryEvent, boolean])[];
  /**
   * The same in steps, between which others have their turn: long texts take a while. What was added is
   * taken back where a later step fails.
   */
  addInSteps(
    space: string,
    events: readonly (NewMemoryEvent & { readonly id?: string })[],
    called: (place: number) => string,
  ): Promise<readonly (readonly [MemoryEvent, boolean])[]>;
  /**
   * An event with some of its fields changed; undefined where the space has none of this id.
   * @throws GatewayError that names the field or the limit
   */
  change(space: string, id: string, fields: EventChange): MemoryEvent | undefined;
  /** Resolves when what was captured so far is in. */
  settled(): Promise<void>;
  /** Spaces that have events, by name, behind `after`. */
  spaces(after: string, limit: number): readonly SpaceCount[];
  get(space: string, id: string): MemoryEvent | undefined;
  list(space: string, query: ListQuery): Page;
  remove(space: string, id: string): boolean;
}

export interface MemoryBase extends Memory {
  /** Undefined: kept elsewhere. */
  readonly book: EventBook | undefined;
  /** Removes all that is kept of a space, what waits included; how many events, where that is known. */
  erase(space: string): Promise<number | undefined>;
  /** Writes what waits. */
  close(): Promise<void>;
}
