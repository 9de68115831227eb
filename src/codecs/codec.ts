/** The interface of a protocol codec. A codec is sans-io: it turns bytes into events and back, and never fetches. */

import type { GatewayError } from '../conversation/errors.ts';
import type { FinishReason, Reply, StreamEvent } from '../conversation/events.ts';
import type { FastDecoder, FastEncoder } from '../conversation/fast-text.ts';
import type { ModelEntry } from '../conversation/models/model-entry.ts';
import type { Notes } from '../conversation/notes.ts';
import type { KnownNodes } from '../conversation/session/known-nodes.ts';
import type { Target } from '../conversation/target.ts';
import type { Conversation, ProtocolName } from '../conversation/types.ts';
import type { Usage } from '../conversation/usage.ts';
import type { ByteList } from '../lib/bytes/byte-list.ts';
import type { SseFrame } from '../lib/bytes/sse.ts';
import type { ReadonlyHeaders } from '../lib/http/headers.ts';
import type { Json, JsonObject } from '../lib/json/json.ts';

/** What a codec needs to decode an upstream's answer: what was sent, and to which target. */
export interface UpstreamContext {
  /** The conversation as it was encoded for the upstream. */
  readonly sent: Conversation;
  readonly target: Target;
  readonly notes: Notes;
}

/** What a codec needs to encode an answer for a client. */
export interface ClientContext {
  /** The client's request as it was decoded. */
  readonly request: Conversation;
  /** `req_…`; the source of ids that the client's protocol needs and the upstream did not send. */
  readonly requestId: string;
  /** The provider that answers, recorded in seal envelopes; '' before a provider is chosen. */
  readonly provider: string;
  readonly notes: Notes;
  /** An estimate of the prompt's tokens, for answers that must tell them where the vendor does not. Left out: none. */
  readonly promptTokens?: number;
}

export interface StreamDecoder {
  /**
   * The events of one frame; none for a frame without meaning.
   * @throws GatewayError upstream for a broken frame
   */
  push(frame: SseFrame): readonly StreamEvent[];
  /**
   * The upstream closed the stream. Closes an open block. Returns `finish` and `end` only if the
   * protocol's own ending was seen, or its decisive part; never invents one.
   */
  end(): readonly StreamEvent[];
  /**
   * Something of the frames so far waits for its turn and has not come out as events: the second of two calls whose
   * arguments come interleaved. Left out: never.
   */
  readonly holds?: boolean;
  /**
   * The decisive part of the protocol's ending was seen: only its formal rest, or usage, may follow. Left out: such a
   * part is the `end` event itself.
   */
  readonly isFinished?: boolean;
  /** Shortcuts for plain text; left out: every frame goes through `push`. */
  readonly fast?: FastDecoder;
}

export interface StreamEncoder {
  /** SSE text for one event; '' if there is nothing to write yet. Accepts every event order that events.ts allows. */
  event(event: StreamEvent): string;
  /** A keep-alive that every client skips. It may be sent at any time, even before the start. */
  ping(): string;
  /** The protocol's error event, with the terminal event where a failed stream has one. Nothing may follow it. */
  fail(error: GatewayError): string;
  /** These frames, the vendor's own, have gone out: what follows is numbered behind them. Left out: nothing is numbered. */
  follow?(frames: readonly SseFrame[]): void;
  /** All so far has left as the vendor's bytes, which close what has ended. Left out: nothing is closed late. */
  leave?(): void;
  /** Shortcuts for plain text; left out: every event goes through `event`. */
  readonly fast?: FastEncoder;
}

/** Facts about an answer that need no conversion. */
export interface Digest {
  /** The protocol's own ending was seen. */
  readonly complete: boolean;
  /** The answer holds something that a user would miss: text, reasoning or a call. */
  readonly semantic: boolean;
  /** The answer holds more than reasoning: text, a refusal or a call. Default: the same as `semantic`. */
  readonly answered?: boolean;
  /** The non-empty texts of a whole reply that holds plain text only, block by block. Otherwise left out. */
  readonly texts?: readonly string[];
  readonly usage?: Usage;
  /** The vendor's own count, where `usage` may hold earlier hops as well. */
  readonly reported?: Usage;
  /** The model that answered, as the vendor names it; left out, or '': it does not say. */
  readonly model?: string | undefined;
  /** `usage` counts the whole answer even if that has failed; it came with the failure or behind the content. */
  readonly counted?: boolean;
  readonly finish?: FinishReason;
  /** The vendor's own reason for an unusual end. */
  readonly explanation?: string | undefined;
  /**
   * The vendor accepted the request as a job whose answer must be fetched later. `background`: the request
   * asked for that.
   */
  readonly pending?: 'background' | 'unasked';
  /** The upstream's own error event. */
  readonly error?: GatewayError;
  /** The error is in a form that clients of this protocol do not take for one. */
  readonly unsaid?: boolean;
}

export type { ModelEntry };

/** The methods of Google's models that make vectors. */
export type EmbedMethod = 'batchEmbedContents' | 'embedContent' | 'predict';

/** A request whose model and method are in its URL: the address, and the body as the API takes it. */
export interface AddressedRequest {
  readonly path: string;
  /** What the protocol itself puts into the query, without `?`; '' for nothing. */
  readonly query: string;
  readonly body: Uint8Array | ByteList;
}

/** How an answer comes to say what it used, in protocols where the request decides that. */
export interface AskedUsage {
  /** Of an answer or a frame: its usage. */
  readonly member: string;
  /** The parameter of a stream and the flag in it that ask for usage. */
  readonly option?: readonly [name: string, flag: string];
  /** Parameters of the query that select parts of an answer. */
  readonly masks?: readonly string[];
  /** The list that is empty in a frame that holds usage alone. */
  readonly alone?: string;
}

export interface HttpError {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: JsonObject;
}

export interface Codec {
  readonly name: ProtocolName;
  /** Appended to the provider's base URL: `/chat/completions`, `/responses`, `/v1/messages`. */
  readonly upstreamPath: string;
  /**
   * For protocols whose requests name their model in the URL: the request for a body that says its `model` and
   * `stream` itself, as all bodies do inside the gateway. `kind`: which answer is wanted. Left out: the body goes
   * to `upstreamPath` as it is.
   */
  addressed?(
    body: Uint8Array | ByteList,
    model: string,
    kind: 'whole' | 'stream' | 'count' | EmbedMethod,
  ): AddressedRequest;

  /**
   * @param known what was decoded from these very values before; left out: nothing was
   * @throws GatewayError invalid_request with `param` naming the field
   */
  decodeRequest(body: Json, known?: KnownNodes): Conversation;
  /**
   * The wire body for this target. Unchanged parts of the same protocol go out as they came. Content that
   * the target's protocol cannot express becomes a note. Never throws because of content.
   * @param known what was made of these very nodes before
   */
  encodeRequest(
    conversation: Conversation,
    target: Target,
    notes: Notes,
    known?: KnownNodes,
  ): JsonObject;
  /**
   * The request body without message fields that the API does not know, with a note for each kind of field;
   * the same object if there are none. Left out: the API ignores unknown fields.
   * @param which `leftovers`: only fields that cannot be new fields of the API; `all`: every unknown field
   */
  withoutUnknownFields?(body: JsonObject, which: 'leftovers' | 'all', notes: Notes): JsonObject;

  decodeReply(body: Json, context: UpstreamContext): Reply;
  encodeReply(reply: Reply, context: ClientContext): JsonObject;
  /** The JSON text of {@link encodeReply}, where a codec has it cheaper. */
  encodeReplyText?(reply: Reply, context: ClientContext): string;

  decodeStream(context: UpstreamContext): StreamDecoder;
  encodeStream(context: ClientContext): StreamEncoder;

  /** An upstream's error answer as a typed error. `body` is the raw text, JSON or not. */
  decodeError(status: number, body: string, headers: ReadonlyHeaders): GatewayError;
  encodeError(error: GatewayError, requestId: string): HttpError;

  digestReply(body: Json): Digest;
  /** Digests the first and last frames of a stream that was forwarded unchanged. */
  digestStream(frames: readonly SseFrame[]): Digest;
  /**
   * Prefixes of terminal events that may be too large for a tail buffer of fixed size (in Responses they
   * hold the whole answer). From the first such prefix on, the digest gets everything.
   */
  readonly terminalPrefixes: readonly Buffer[];
  /**
   * Does a frame carry ids of the answer or of its items that a later request may refer to? Left out:
   * the protocol has no such ids.
   */
  carriesItemIds?(this: void, frame: Pick<SseFrame, 'event' | 'data'>): boolean;

  /**
   * The JSON of an answer or a frame, with `id` as the response object's previous response id and
   * everything else unchanged; the same text if there is no response object. Left out: answers have no such field.
   */
  withPreviousResponseId?(this: void, json: string, id: string, of: 'answer' | 'frame'): string;

  /**
   * For one stream that stays in this protocol: the JSON of each frame as clients can use it, behind events that the vendor
   * left out; the same text where nothing is wrong. Left out: clients need no more than what vendors send.
   */
  soundFrames?(this: void, notes: Notes): (json: string) => readonly string[];

  /** Clients throw at every line of a stream that is no event, so that each stream is read. */
  readonly refusesOtherLines?: true;

  /** Members that hold the model's name in answers and frames. */
  readonly modelAt: Readonly<Record<'answer' | 'frame', readonly string[]>>;

  /** Left out: answers say it in any case. */
  readonly usageIsAsked?: AskedUsage;

  /** The answer to a request that counts tokens. Left out: `{input_tokens}`. */
  encodeCount?(this: void, tokens: number): JsonObject;

  /** The list of models in this protocol. */
  encodeModels(models: readonly ModelEntry[]): JsonObject;
}
