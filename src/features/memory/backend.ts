/** The interface of a memory backend: the embedded database, one that all replicas share, or an external service. */

import type { Memory, MemoryEvent, NewMemoryEvent } from '../../conversation/memory.ts';
import type { EventPage, ListQuery } from './store/event-pages.ts';

/** The fate of captured events. */
export type CaptureOutcome = 'stored' | 'duplicate' | 'dropped' | 'full' | 'erased';

/** The ranking of a recall: by terms, by terms and vectors, by terms since vectors failed, or externally. */
export type RecallKind = 'text' | 'hybrid' | 'fallback' | 'external' | 'failed';

/** Gets counts and problems for logs and metrics. Its methods return at once and never throw. */
export interface MemoryObserver {
  captured(outcome: CaptureOutcome, count: number): void;
  /** Milliseconds. */
  recalled(kind: RecallKind, ms: number): void;
  /** A problem that the operator should know about, as a message. */
  problem(message: string): void;
  /** The embeddings endpoint failed: recalls use terms alone. */
  embeddingsFailed(message: string): void;
}

export type EventChange = Partial<
  Pick<MemoryEvent, 'text' | 'time' | 'source' | 'tags' | 'importance'>
>;

export interface SpaceCount {
  readonly space: string;
  readonly events: number;
  /** Events that have no vector yet; left out where none are made. */
  readonly waiting?: number;
}

/** The making of vectors in this process. */
export interface VectorsStatus {
  /** Texts that the endpoint refused since the start; words alone find them. */
  readonly refused: number;
  /** The last failure, while the work waits for its next try. */
  readonly failure: { readonly time: string; readonly message: string } | null;
}

/**
 * Returns the events in order, each with true where it is new and false where its id was known.
 * @param paramOf the client's name for the event at an index: `events[3]`; '' for a single event
 * @param key the id of the key that puts them in
 * @throws GatewayError that names the field or the limit
 */
type AddEvents = (
  space: string,
  events: readonly (NewMemoryEvent & { readonly id?: string })[],
  paramOf: (place: number) => string,
  key?: string,
) => Promise<readonly (readonly [MemoryEvent, boolean])[]>;

/** Access to single events, which an external service does not give. Every method rejects with a GatewayError. */
export interface EventStore {
  /** Adds all events or none. */
  add: AddEvents;
  /**
   * The same in steps that let other work run, since long texts take a while. Where a later step fails,
   * the events added before are removed.
   */
  addInSteps: AddEvents;
  /**
   * Changes some fields of an event; undefined where the space has no event of this id.
   * @throws GatewayError that names the field or the limit
   */
  change(
    space: string,
    id: string,
    fields: EventChange,
    key?: string,
  ): Promise<MemoryEvent | undefined>;
  /** Resolves when everything captured so far is stored. */
  settled(): Promise<void>;
  /** Spaces that have events, sorted by name, after the name `after`. */
  spaces(after: string, limit: number): Promise<readonly SpaceCount[]>;
  get(space: string, id: string): Promise<MemoryEvent | undefined>;
  list(space: string, query: ListQuery): Promise<EventPage>;
  remove(space: string, id: string): Promise<boolean>;
}

export interface MemoryBackend extends Omit<Memory, 'forget'> {
  /** Undefined: the events are stored by an external service. */
  readonly eventStore: EventStore | undefined;
  /** Removes a space with its queued events; the number of events, where it is known. */
  erase(space: string): Promise<number | undefined>;
  /** Undefined where no vectors are made. */
  vectors?(): VectorsStatus | undefined;
  /** Writes what is queued. */
  close(): Promise<void>;
}
