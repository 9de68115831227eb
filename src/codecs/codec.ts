/** What every protocol can do, without I/O: bytes and events in, bytes and events out. */

import type { GatewayError } from '../conversation/errors.ts';
import type { FinishReason, Reply, StreamEvent } from '../conversation/events.ts';
import type { FastDecoder, FastEncoder } from '../conversation/fast-text.ts';
import type { Notes } from '../conversation/notes.ts';
import type { Target } from '../conversation/target.ts';
import type { Conversation, ProtocolName } from '../conversation/types.ts';
import type { Usage } from '../conversation/usage.ts';
import type { SseFrame } from '../lib/bytes/sse.ts';
import type { ReadonlyHeaders } from '../lib/http/headers.ts';
import type { Json, JsonObject } from '../lib/json/json.ts';

/** The upstream side: what was sent where, so that names and kinds find their way back. */
export interface UpstreamContext {
  /** The conversation as it was encoded for the upstream. */
  readonly sent: Conversation;
  readonly target: Target;
  readonly notes: Notes;
}

/** The client side: what the client asked, in its own words. */
export interface ClientContext {
  readonly asked: Conversation;
  /** `req_…`; used for ids that the client's protocol wants and the upstream did not give. */
  readonly requestId: string;
  /** The provider that answers, for seals that must find their way home; '' before one is chosen. */
  readonly provider: string;
  readonly notes: Notes;
}

export interface StreamDecoder {
  /** The events of one frame. Frames without meaning give none; a broken frame throws GatewayError('upstream'). */
  push(frame: SseFrame): readonly StreamEvent[];
  /**
   * The upstream closed the stream. Closes an open block, and gives `finish`/`end` only where the
   * protocol's own ending (or its essential part) was seen; never invents one.
   */
  end(): readonly StreamEvent[];
  /** Shortcuts for plain text; left out: every frame goes through `push`. */
  readonly fast?: FastDecoder;
}

export interface StreamEncoder {
  /** SSE text for one event, '' when there is nothing to say (yet). Total: every event order of events.ts is accepted. */
  event(event: StreamEvent): string;
  /** A keep-alive that every client skips; legal at any time, before the start too. */
  ping(): string;
  /** The protocol's error event (and terminal, where failing has one). Nothing may follow it. */
  fail(error: GatewayError): string;
  /** Shortcuts for plain text; left out: every event goes through `event`. */
  readonly fast?: FastEncoder;
}

/** What can be known of an answer without converting it. */
export interface Digest {
  /** The protocol's own ending was seen. */
  readonly complete: boolean;
  /** It has text, reasoning or a call. */
  readonly semantic: boolean;
  /** Of that, something besides reasoning: text, a refusal, a call. Left out: the same as `semantic`. */
  readonly answered?: boolean;
  /** Of a whole reply that is one answer in plain words: its text, block by block, none empty. Else left out. */
  readonly texts?: readonly string[];
  readonly usage?: Usage;
  readonly finish?: FinishReason;
  /**
   * The vendor has taken the request as a job, and the answer is to be asked for later; `background`: and says
   * that this was asked for.
   */
  readonly pending?: 'background' | 'unasked';
  /** The upstream's own error event. */
  readonly error?: GatewayError;
}

export interface ModelEntry {
  readonly id: string;
  readonly provider: string;
  /** Seconds since 1970. */
  readonly created: number;
}

export interface HttpError {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: JsonObject;
}

export interface Codec {
  readonly name: ProtocolName;
  /** Appended to a provider's base URL: `/chat/completions`, `/responses`, `/v1/messages`. */
  readonly upstreamPath: string;

  /** @throws GatewayError invalid_request with `param` naming the field */
  decodeRequest(body: Json): Conversation;
  /**
   * The wire body for this target. Parts that are still what they were decoded from (same protocol)
   * go out as they came; what the target cannot say becomes a note. Never throws on content.
   */
  encodeRequest(conversation: Conversation, target: Target, notes: Notes): JsonObject;
  /**
   * A request body without fields in its messages that the API does not know, each kind with a note;
   * itself where there is none. Left out: the API passes over what it does not know.
   * @param which `leftovers`: only what is surely no new field of the API; `all`: everything unknown
   */
  withoutUnknown?(body: JsonObject, which: 'leftovers' | 'all', notes: Notes): JsonObject;

  decodeReply(body: Json, context: UpstreamContext): Reply;
  encodeReply(reply: Reply, context: ClientContext): JsonObject;

  decodeStream(context: UpstreamContext): StreamDecoder;
  encodeStream(context: ClientContext): StreamEncoder;

  /** An upstream's error answer, by meaning. `body` is the raw text, JSON or not. */
  decodeError(status: number, body: string, headers: ReadonlyHeaders): GatewayError;
  encodeError(error: GatewayError, requestId: string): HttpError;

  /** Looks at a whole reply without converting it. */
  digestReply(body: Json): Digest;
  /** Looks at the first and the last frames of a stream that was forwarded untouched. */
  digestStream(frames: readonly SseFrame[]): Digest;
  /**
   * Bytes with which a terminal event begins when it may be too large for a fixed tail (Responses
   * carries the whole answer in it); from the first such mark on, everything is kept for the digest.
   */
  readonly terminalMarks: readonly string[];
  /**
   * Does a frame hold an item of the answer, or all of it, with the ids by which a client may refer to it
   * later? Left out: this protocol has no such ids.
   */
  namesItem?(this: void, frame: Pick<SseFrame, 'event' | 'data'>): boolean;

  /**
   * The JSON of an answer, or of a frame, in which the response object names `id` as the one before it, all
   * else as it was; the same text where there is no response object. Left out: answers name none.
   */
  withPrevious?(this: void, json: string, id: string, of: 'answer' | 'frame'): string;

  /** `GET /v1/models` in this protocol's dialect. */
  encodeModels(models: readonly ModelEntry[]): JsonObject;
}
