/** Values that the steps of an exchange hand to each other: the exchange, its hops, attempts and outcomes. */

import type { AskedUsage, ClientContext, Codec, Digest, UpstreamContext } from '../codecs/codec.ts';
import type { GatewayError } from '../conversation/errors.ts';
import type { FinishReason, StreamEvent } from '../conversation/events.ts';
import type { Notes } from '../conversation/notes.ts';
import type { Target } from '../conversation/target.ts';
import type { Conversation } from '../conversation/types.ts';
import type { AnswerWatch, Continuation, Feature, Interceptor } from '../features/feature.ts';
import type { ReadonlyHeaders } from '../lib/http/headers.ts';
import type { RoutedTarget, RouteRequest } from '../routing/index.ts';
import type { ExchangeOutcome, Recording, SentRequest } from '../samples/recording.ts';
import type { Remedy } from '../upstream/target-error.ts';
import type { ClientRequest } from './client-request.ts';
import type { Exchange, Payer, Spent, TryAccount } from './exchange.ts';
import type { ClientSide, FinalAnswer, Output, StreamPipeline } from './stream/pipeline.ts';
import type { UpstreamBody } from './stream/upstream-body.ts';
import type { AttemptPlace } from './tries/attempt-place.ts';

export type { Account, Exchange, FormSource, Gateway } from './exchange.ts';
export type { Spent };

/** What acts on one exchange. */
export interface ExchangeFeatures {
  readonly features: readonly Feature[];
  /**
   * The whole answer, when it came to its true end; for a client's JSON reply its text. Called before the client gets
   * the end, which waits for what this gives: the client's next request may come at once.
   */
  readonly onAnswer?: (
    answer: FinalAnswer | { readonly kind: 'json'; readonly text: string },
    spent: Spent | undefined,
  ) => void | Promise<void>;
  /** The part of a stream that went out before it was cut, or before the client left. */
  readonly onPartialAnswer?: (answer: FinalAnswer, spent: Spent | undefined) => void;
  /**
   * Asked before the end of an answer that interceptors have seen goes to the client: what its next request needs may
   * be on its way to where other replicas find it. Never rejects, and takes a moment at most. Undefined: nothing has
   * to be waited for.
   */
  readonly beforeEnd?: () => Promise<void> | undefined;
}

/** The part of a request that the summary needs. Requests to other endpoints have no settings. */
export type SummarizedRequest = Pick<ClientRequest, 'model' | 'stream'> &
  Partial<Pick<ClientRequest, 'settings' | 'conversation'>>;

/** What happened in an exchange; made once, when it is over. */
export interface Summary extends ExchangeOutcome {
  readonly exchange: Exchange;
  /** Milliseconds until its turn came. */
  readonly queue: number | undefined;
  /** Undefined: the body could not be read. */
  readonly request: SummarizedRequest | undefined;
  /** Prompt tokens that the vendor's cache should have held and did not. */
  readonly lost?: { readonly tokens: number; readonly nanoUsd: number } | undefined;
  /** How the answer ended, where its protocol's ending came. */
  readonly finish: FinishReason | undefined;
}

/** Which request of the exchange this is, and what the ones before it left. */
export interface Hop {
  /** 1: the client's own request. */
  readonly number: number;
  /** What is sent instead of the client's request; undefined on the first hop. */
  readonly conversation?: Conversation;
  /** Who answered the hop before. */
  readonly after?: Target;
  /** The client's open stream. */
  readonly client?: ClientSide;
  /** For a client that wants no stream: the events of the hops before. */
  readonly events?: readonly StreamEvent[];
}

/** One attempt of a hop at one target. */
export interface Attempt extends AttemptPlace {
  readonly exchange: Exchange;
  readonly request: ClientRequest;
  /** The codec of the target. */
  readonly protocol: Codec;
  readonly features: readonly Feature[];
  readonly hop: Hop;
  /** Counts the attempts of this hop, from 1. */
  readonly number: number;
  /** What this target said of the request on the attempts before; features act on it. */
  readonly refusals: readonly GatewayError[] | undefined;
  /** The route that chose the target. */
  readonly routeName: string | undefined;
  /** The older model whose facts stand in for those of the target's model. */
  readonly standIn?: string | undefined;
  /** The target speaks Chat, and takes this request over Responses alone. */
  readonly overResponses?: boolean;
  /** The model name to show in the answer; undefined: the vendor's. */
  readonly shownModel?: string | undefined;
  readonly recording: Recording | undefined;
  /** The whole answer is needed when it is over. */
  readonly wantsAnswer: boolean;
  /** What no client may get to see, in every spelling. */
  readonly secrets?: readonly string[];
  readonly events?: AttemptEvents;
  /** Pays for it; undefined: nothing is counted. */
  readonly payer?: Payer | undefined;
  /** On whose account features ask other models. */
  readonly sidePayer?: Payer | undefined;
  /** The facts by which the request was routed: its prompt is estimated there. */
  readonly facts: RouteRequest;
}

/** What is reported of an attempt while it runs. */
export interface AttemptEvents {
  /** The request goes out: its turn has come. */
  onSend(): void;
  /** The vendor refused this key; `key` is its name, `key-` and six digits. */
  onKeyRefused(provider: string, key: string, status: number): void;
}

/** A request as it is sent, and what is needed to read its answer. */
export interface Prepared {
  /** A flag of `anthropic-beta` that a field of the body needs. */
  readonly beta?: string | undefined;
  readonly body: SentRequest['body'];
  /** Is a stream asked for? Left out: as the client did. */
  readonly stream?: boolean;
  readonly interceptors: readonly Interceptor[];
  readonly watch?: AnswerWatch | undefined;
  readonly context: UpstreamContext;
  /** The query in place of the client's. */
  readonly search?: string;
  /** Usage that this gateway asked for and the client did not. */
  readonly hides?: AskedUsage;
  /** The earlier response that the client named and the target did not get: the answer names it all the same. */
  readonly previous?: string | undefined;
}

/** A change to the JSON of every answer that a client gets. */
export interface EditAnswer {
  /** The same text: it stays as it came; '': a frame that holds nothing else. */
  json(json: string, of: 'answer' | 'frame'): string;
  /** The member that it takes out. */
  readonly hidden?: string | undefined;
}

/** An answer whose head has come: what the two readers of an answer need. */
export interface Reading {
  readonly attempt: Attempt;
  readonly prepared: Prepared;
  readonly source: UpstreamBody;
  readonly client: ClientContext;
  readonly common: AnswerHead;
  /** Undefined: nothing is counted. */
  readonly account: TryAccount | undefined;
}

export interface AnswerHead {
  readonly target: RoutedTarget['target'];
  readonly notes: Notes;
  /** The upstream's, as it sent them. */
  readonly headers: ReadonlyHeaders;
  /** The upstream speaks the client's protocol: its headers are the client's to see. */
  readonly same: boolean;
}

/** A stream whose answer has begun: from here on there is no other attempt. */
export interface StreamOutcome extends AnswerHead {
  readonly kind: 'stream';
  readonly pipeline: StreamPipeline;
  /** What the client gets first. */
  readonly first: readonly Output[];
  /** The rest; undefined when `first` is all there is. */
  readonly source: UpstreamBody | undefined;
  /** The account of the try, until the stream ends; undefined: it has ended, or nothing is counted. */
  readonly account?: TryAccount | undefined;
  /** Bytes so far, from the content on. */
  readonly bytes?: number;
}

export interface WholeOutcome extends AnswerHead {
  readonly kind: 'whole';
  readonly status: number;
  readonly body: Output;
  readonly digest: Digest;
  /** The answer goes on with another hop; `events` are what the client is to get of all so far. */
  readonly continuation?: {
    readonly next: Continuation;
    readonly events: readonly StreamEvent[];
    /** The reply that these events amount to, when no hop follows (`next.last`). */
    readonly finish: (events: readonly StreamEvent[]) => WholeOutcome;
  };
}

export interface FailedOutcome {
  readonly kind: 'failed';
  readonly error: GatewayError;
  readonly remedy: Remedy;
  readonly target: RoutedTarget['target'] | undefined;
  readonly notes: Notes | undefined;
  /** Seconds until the vendor's limits are reset, as its headers say. */
  readonly resetAfter?: number | undefined;
  /** The vendor may only repeat what the request says: nothing is known of the key or the model. */
  readonly repeats?: boolean;
  /** The vendor's own error answer, when it is in the client's protocol and can go out as it is. */
  readonly raw?: {
    readonly status: number;
    readonly headers: ReadonlyHeaders;
    readonly body: Uint8Array;
  };
}

/** What any answer is, of a protocol or of another endpoint: not a failure. */
export interface Succeeded {
  readonly kind: 'stream' | 'whole' | 'answer';
}

/** What an attempt can end in. */
export type Outcome = StreamOutcome | WholeOutcome | FailedOutcome;
