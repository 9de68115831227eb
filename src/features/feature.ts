/** A feature: a pure pass over the conversation, and an interceptor of the events that come back. */

import type { Payer } from '../conversation/account/payer.ts';
import type { GatewayError } from '../conversation/errors.ts';
import type { DeltaEvent, StreamEvent } from '../conversation/events.ts';
import type { FastInterceptor } from '../conversation/fast-text.ts';
import type { Notes } from '../conversation/notes.ts';
import type { Target } from '../conversation/target.ts';
import type { Conversation, ProtocolName, Turn } from '../conversation/types.ts';
import type { Steps } from '../lib/loop/steps.ts';
import type { Prefetch } from '../state/key-value/room.ts';

export interface FeatureContext {
  readonly target: Target;
  readonly client: ProtocolName;
  /** The principal's id. Left out: all requests count as one owner's. */
  readonly owner?: string | undefined;
  readonly notes: Notes;
  /** 1 for the client's own request, 2 and more for the hops that follow it. */
  readonly hop: number;
  /** This target's errors about the request, each of which the attempts that follow it act on; left out: none. */
  readonly refusals?: readonly GatewayError[];
  /** On whose account the calls of a feature to other models go. */
  readonly payer?: Payer | undefined;
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
  /**
   * Asked once, behind `end` of a hop that came to its true end: what must happen before the client's
   * stream may end. Undefined (or no such method): nothing, the stream is over. An interceptor that answers has
   * held back this hop's `finish` and `end`, and on the hops that follow keeps back their `start` and
   * continues the count of blocks: the client sees one stream.
   */
  continuation?(): Continuation | undefined;
  /** Shortcuts for plain text; left out: every event goes through `event`. */
  readonly fast?: FastInterceptor;
}

/** Work between two hops: tools to run, and the conversation with which to go on. */
export interface Continuation {
  /**
   * No hop follows: what `run` emits holds this hop's `finish` and `end`, and the conversation it gives
   * is not sent (a turn in which the client's own calls stand beside calls that were run here).
   */
  readonly last?: boolean;
  /**
   * Runs it. The events given to `emit` reach the client at once, in stream order. The conversation
   * that comes back is routed, passed and sent like a request of its own; its answer goes through
   * fresh interceptors of every feature and on into the client's open stream.
   * @throws GatewayError what the client gets instead of an answer
   */
  run(signal: AbortSignal, emit: (events: readonly StreamEvent[]) => void): Promise<Conversation>;
}

/** Sees the bytes of one answer of a target as it came, decompressed, before anything else does. Its calls never throw. */
export interface AnswerWatch {
  chunk(bytes: Uint8Array): void;
  /** The answer is over, or broke off. */
  end(): void;
}

export interface Feature {
  readonly name: string;
  /**
   * A look at the raw body (native searches only, microseconds): false means that `request` would
   * return the conversation as it is, so that a body that no feature needs is never parsed. Left
   * out: always look.
   */
  mayApply?(body: Buffer, context: FeatureContext): boolean;
  /**
   * What `request` needs to know beforehand and must wait for (an image described by another model).
   * Called before the request passes of an attempt, only if `mayApply` was true, with the
   * conversation as it was asked. Never rejects but when `signal` fires: what could not be had is
   * `request`'s to live without. Undefined: there is nothing to wait for.
   */
  prepare?(
    conversation: Conversation,
    context: FeatureContext,
    signal: AbortSignal,
  ): Promise<void> | undefined;
  /**
   * Would this pass, given this refusal of a target's (`context.refusals`), change the request so that it may be
   * taken? Then it is sent once more. Left out: no. Refusals of the history always lead to another try.
   */
  repairsRefusal?(refusal: GatewayError): boolean;
  /** Pure and idempotent; the same reference when there is nothing to do. */
  request?(conversation: Conversation, context: FeatureContext): Conversation;
  /** `request` in steps, for a pass that can take long: large requests run it between other work. */
  requestSteps?(conversation: Conversation, context: FeatureContext): Steps<Conversation>;
  /** An interceptor for this hop, or undefined when nothing in it can concern the feature. */
  intercept?(sent: Conversation, context: FeatureContext): Interceptor | undefined;
  /** For what no event says. Undefined (or no such method): nothing in this answer can concern the feature. */
  watch?(sent: Conversation, context: FeatureContext): AnswerWatch | undefined;
}

/** For a feature whose store is elsewhere: reads what its pass is going to look up. */
export interface ReadAhead {
  readonly prefetch: Prefetch;
  /**
   * The turns as the features before this one restore them for a request; undefined: as they were asked. Asked
   * in the same turn of the event loop as the `prepare` of those features, behind it.
   */
  readonly restored?:
    | ((
        conversation: Conversation,
        context: FeatureContext,
      ) => Promise<readonly Turn[]> | undefined)
    | undefined;
}

/** Two trips where a restored history holds more than what was asked, else one; undefined: none. */
export function readAhead(
  { prefetch, restored }: ReadAhead,
  conversation: Conversation,
  context: FeatureContext,
  keysOf: (turns: readonly Turn[]) => readonly string[],
): Promise<void> | undefined {
  const { turns } = conversation;
  const first = prefetch(keysOf(turns));
  const history = restored?.(conversation, context);
  if (history === undefined) return first;
  return Promise.all([history, first]).then(([all]) =>
    all === turns ? undefined : prefetch(keysOf(all)),
  );
}

/**
 * An interceptor that is made with its first event. A whole reply that `ignoresTexts` says it ignores
 * (as {@link FastInterceptor.ignoresTexts}) never makes it.
 */
export const lazyInterceptor = (
  ignoresTexts: (texts: readonly string[]) => boolean,
  make: () => Interceptor,
): Interceptor => new LazyInterceptor(ignoresTexts, make);

class LazyInterceptor implements Interceptor, FastInterceptor {
  #made: Interceptor | undefined;

  constructor(
    readonly ignoresTexts: (texts: readonly string[]) => boolean,
    private readonly make: () => Interceptor,
  ) {}

  get #interceptor(): Interceptor {
    this.#made ??= this.make();
    return this.#made;
  }

  event(event: StreamEvent): StreamEvent | readonly StreamEvent[] {
    return this.#interceptor.event(event);
  }

  end(): readonly StreamEvent[] {
    return this.#interceptor.end();
  }

  continuation(): Continuation | undefined {
    return this.#interceptor.continuation?.();
  }

  get fast(): FastInterceptor {
    return this;
  }

  passesText(event: DeltaEvent): boolean {
    return this.#interceptor.fast?.passesText?.(event) === true;
  }

  watchedCharacters(): string | undefined {
    return this.#interceptor.fast?.watchedCharacters?.();
  }
}
