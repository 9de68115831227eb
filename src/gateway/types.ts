/** What the steps of an exchange hand to each other: the hop, the try, the open answer. */

import type { ClientContext, Codec, UpstreamContext } from '../codecs/codec.ts';
import type { GatewayError } from '../conversation/errors.ts';
import type { StreamEvent } from '../conversation/events.ts';
import type { Notes } from '../conversation/notes.ts';
import type { Conversation } from '../conversation/types.ts';
import type { Feature, Interceptor } from '../features/feature.ts';
import type { ReadonlyHeaders } from '../lib/http/headers.ts';
import type { RoutedTarget } from '../routing/request.ts';
import type { Recording } from '../samples/recording.ts';
import type { Upstream } from '../upstream/upstream.ts';
import type { ClientRequest } from './client-request.ts';
import type { Exchange } from './exchange.ts';
import type { Outcome, StreamOutcome } from './outcome.ts';
import type { ClientSide } from './stream/pipeline.ts';
import type { UpstreamBody } from './stream/upstream-body.ts';

/** Which request of the exchange this is, and what the ones before it left. */
export interface Hop {
  /** 1: the client's own request. */
  readonly number: number;
  /** What is sent instead of what was asked; undefined on the first hop. */
  readonly conversation?: Conversation;
  /** The client's open stream. */
  readonly client?: ClientSide;
  /** For a client that wants no stream: the events of the hops before. */
  readonly events?: readonly StreamEvent[];
}

export interface Attempt {
  readonly exchange: Exchange;
  readonly ask: ClientRequest;
  readonly routed: RoutedTarget;
  readonly protocol: Codec;
  readonly upstream: Upstream;
  readonly features: readonly Feature[];
  readonly hop: Hop;
  /** Counts the tries of this hop, from 1. */
  readonly number: number;
  /** What this target said of the history on the try before; features act on it. */
  readonly refusal: GatewayError | undefined;
  /** The name of the rule that chose the target. */
  readonly rule: string | undefined;
  readonly recording: Recording | undefined;
  /** Somebody wants the whole answer when it is over. */
  readonly keepsAnswer: boolean;
  /** What no client may be told, in every spelling. */
  readonly secrets?: readonly string[];
  readonly events?: AttemptEvents;
}

/** What is told of a try while it runs. */
export interface AttemptEvents {
  /** The request goes out: its turn has come. */
  onAsked(): void;
  /** The vendor says that this key will not do; `key` is its name, `key-` and six digits. */
  onKeyRefused(provider: string, key: string, status: number): void;
}

/** What the two readers of an answer need. */
export interface Reading {
  readonly attempt: Attempt;
  readonly prepared: Prepared;
  readonly source: UpstreamBody;
  readonly client: ClientContext;
  readonly common: {
    readonly target: RoutedTarget['target'];
    readonly notes: Notes;
    readonly headers: ReadonlyHeaders;
    readonly same: boolean;
  };
}

export interface Prepared {
  readonly body: Uint8Array;
  readonly interceptors: readonly Interceptor[];
  readonly context: UpstreamContext;
  /** The earlier response that the client named and the target was not told of: the answer names it all the same. */
  readonly previous?: string | undefined;
}

/** The hop that follows on an open stream; an error when it cannot be had. */
export type FollowUp = (
  conversation: Conversation,
  before: StreamOutcome,
) => Promise<StreamOutcome | GatewayError>;

/** One hop, from routing to an answer or the failure that says most. Never rejects. */
export type RunHop = (hop: Hop) => Promise<Outcome>;
