/** What a feature is: a pure pass over the conversation, and an interceptor of the events that come back. */

import type { StreamEvent } from '../conversation/events.ts';
import type { Notes } from '../conversation/notes.ts';
import type { Target } from '../conversation/target.ts';
import type { Conversation, ProtocolName } from '../conversation/types.ts';

export interface FeatureContext {
  readonly target: Target;
  /** The protocol that the client speaks. */
  readonly client: ProtocolName;
  readonly notes: Notes;
}

/**
 * Stands between the upstream's events and the client's encoder, for one hop. It may hold events,
 * change them or add some, and keeps the order of `events.ts`. Returning the very event (or, from
 * `end`, nothing) means "untouched": on a stream of the client's own protocol its bytes stay.
 */
export interface Interceptor {
  event(event: StreamEvent): StreamEvent | readonly StreamEvent[];
  /** What was held when the upstream's stream stopped, cut or not. */
  end(): readonly StreamEvent[];
}

export interface Feature {
  readonly name: string;
  /**
   * A look at the raw body (native searches only, microseconds): false means that `request` would
   * return the conversation as it is, so that a body nobody must look into is never parsed. Left
   * out: always look.
   */
  looksAt?(body: Uint8Array, context: FeatureContext): boolean;
  /** Pure and idempotent; the same reference when there is nothing to do. */
  request?(conversation: Conversation, context: FeatureContext): Conversation;
  /** An interceptor for this hop, or undefined when nothing in it can concern the feature. */
  intercept?(sent: Conversation, context: FeatureContext): Interceptor | undefined;
}
