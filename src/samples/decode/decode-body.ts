/** Decodes a recorded body with the codec of its protocol: a request as a conversation, an answer as a reply. */

import type { StreamDecoder, UpstreamContext } from '../../codecs/codec.ts';
import { asGatewayError, GatewayError, invalid } from '../../conversation/errors.ts';
import type { Reply, StreamEvent } from '../../conversation/events.ts';
import { protocolOf } from '../../conversation/models/endpoint-names.ts';
import { Notes } from '../../conversation/notes.ts';
import { NO_PROFILE } from '../../conversation/profile-facts.ts';
import { ReplyBuilder } from '../../conversation/reply-builder.ts';
import type { Conversation, ProtocolName } from '../../conversation/types.ts';
import { type SseFrame, SseParser } from '../../lib/bytes/sse.ts';
import { bodyPieces } from '../../lib/json/body-pieces.ts';
import { type Json, parseJson } from '../../lib/json/json.ts';
import type { Steps } from '../../lib/loop/steps.ts';
import type { SampleServices } from '../in-process-gateway.ts';
import type { SampleError, SampleMeta, SampleStage, SampleStore } from '../sample.ts';

export interface ReadingParts extends Pick<SampleServices, 'protocols'> {
  /** Repairs a raw body so that the decoder of its protocol accepts it. */
  mend(body: Json, protocol: ProtocolName, notes: Notes): Json;
}

export const EMPTY: Conversation = {
  model: '',
  system: [],
  turns: [],
  tools: [],
  settings: { stream: false },
};

export interface ReadRequest {
  readonly conversation: Conversation;
  /** The value that it was decoded from. */
  readonly value: Json | undefined;
  readonly problem: SampleError | undefined;
}

export interface ReadReply {
  readonly reply: Reply;
  readonly complete: boolean;
  readonly problem: SampleError | undefined;
}

const sampleProblem = ({ kind, message, status, code }: GatewayError): SampleError => ({
  kind,
  message,
  status,
  ...(code !== undefined && { code }),
});

const textOf = ({ bytes }: ReadableBody) => new TextDecoder().decode(bytes);

/** A smaller body is parsed in one. */
const LARGE = 256 * 1024;

/** The JSON of a body, a large one piece by piece. @throws SyntaxError */
export function* jsonSteps(bytes: Uint8Array): Steps<Json> {
  if (bytes.length > LARGE) {
    try {
      const pieces = yield* bodyPieces(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length));
      if (pieces !== undefined) return yield* pieces.valueSteps();
    } catch {
      // The whole says what is wrong with it.
    }
  }
  const text = new TextDecoder().decode(bytes);
  yield;
  return parseJson(text);
}

/** Decodes a request. A history that the decoder refuses is repaired first, and the refusal is returned as the problem. */
export function* readRequest(
  body: ReadableBody,
  { protocols, mend }: ReadingParts,
): Steps<ReadRequest> {
  const protocol = protocols[body.protocol];
  let value: Json;
  try {
    value = yield* jsonSteps(body.bytes);
  } catch {
    const problem = { kind: 'invalid_request', message: 'The body is not valid JSON.' };
    return { conversation: EMPTY, value: undefined, problem };
  }
  yield;
  try {
    return { conversation: protocol.decodeRequest(value), value, problem: undefined };
  } catch (thrown) {
    const problem = sampleProblem(asGatewayError(thrown));
    yield;
    try {
      const mended = mend(value, body.protocol, new Notes());
      return { conversation: protocol.decodeRequest(mended), value: mended, problem };
    } catch {
      return { conversation: EMPTY, value, problem };
    }
  }
}

/** The context of an answer's decoder: the request that was answered. */
export function* contextOf(
  store: SampleStore,
  meta: SampleMeta,
  body: ReadableBody,
  parts: ReadingParts,
): Steps<UpstreamContext> {
  const stage = body.stageInfo.stage.replace(/(response|error)$/, 'request');
  const hasRequest = meta.edges.some((stageInfo) => stageInfo.stage === stage);
  const sent = hasRequest
    ? (yield* readRequest(readableBody(store, meta, stage), parts)).conversation
    : EMPTY;
  return contextFor(sent, meta, body);
}

/** The same with the request decoded already. */
export function contextFor(
  sent: Conversation,
  meta: SampleMeta,
  body: ReadableBody,
): UpstreamContext {
  const target = {
    provider: (body.stageInfo.target ?? meta.target ?? '').split('/')[0] ?? '',
    model: sent.model,
    protocol: body.protocol,
    profile: NO_PROFILE,
  };
  return { sent, target, notes: new Notes() };
}

/** Bytes of a stream between two yields. */
const STREAM_STEP = 64 * 1024;

/** The frames of a stream. */
export function* framesOf(bytes: Uint8Array): Steps<readonly SseFrame[]> {
  const parser = new SseParser();
  const frames: SseFrame[] = [];
  for (let at = 0; at < bytes.length; at += STREAM_STEP) {
    for (const frame of parser.push(bytes.subarray(at, at + STREAM_STEP))) frames.push(frame);
    yield;
  }
  return [...frames, ...parser.end()];
}

/** The events of a frame, or the error with which the decoder refuses it. */
export function eventsOf(
  decoder: StreamDecoder,
  frame: SseFrame | undefined,
): readonly StreamEvent[] | GatewayError {
  try {
    return frame === undefined ? decoder.end() : decoder.push(frame);
  } catch (thrown) {
    return asGatewayError(thrown);
  }
}

/** Decodes an answer, streamed or not, as far as possible. */
export function* readReply(
  body: ReadableBody,
  context: UpstreamContext,
  parts: ReadingParts,
): Steps<ReadReply> {
  const protocol = parts.protocols[body.protocol];
  const { stageInfo } = body;
  const nothing: ReadReply = {
    reply: new ReplyBuilder().reply,
    complete: false,
    problem: undefined,
  };
  if (stageInfo.made === true) return { ...nothing, problem: stageInfo.error };
  if ((stageInfo.status ?? 200) >= 400 || stageInfo.stage.endsWith('error')) {
    const error = protocol.decodeError(stageInfo.status ?? 500, textOf(body), new Headers());
    return { ...nothing, problem: sampleProblem(error) };
  }
  if (body.sse) return yield* foldStream(body, context, parts);
  try {
    const value = yield* jsonSteps(body.bytes);
    yield;
    const reply = protocol.decodeReply(value, context);
    return { reply, complete: stageInfo.cut !== true, problem: undefined };
  } catch (thrown) {
    const problem =
      thrown instanceof SyntaxError
        ? { kind: 'upstream', message: 'The body is not valid JSON.' }
        : sampleProblem(asGatewayError(thrown));
    return { ...nothing, problem };
  }
}

function* foldStream(
  body: ReadableBody,
  context: UpstreamContext,
  parts: ReadingParts,
): Steps<ReadReply> {
  const decoder = parts.protocols[body.protocol].decodeStream(context);
  const fold = new ReplyBuilder();
  let open: number | undefined;
  let problem: SampleError | undefined;
  const frames = yield* framesOf(body.bytes);
  for (const frame of [...frames, undefined]) {
    yield;
    const events = eventsOf(decoder, frame);
    if (!Array.isArray(events)) {
      problem ??= sampleProblem(events as GatewayError);
      break;
    }
    for (const event of events as readonly StreamEvent[]) {
      if (event.type === 'error') problem ??= sampleProblem(event.error);
      if (event.type === 'block-start') open = event.index;
      if (event.type === 'block-stop') open = undefined;
      fold.push(event);
    }
  }
  // A cut stream may stop inside a block: its text so far is shown.
  if (open !== undefined) fold.push({ type: 'block-stop', index: open });
  return { reply: fold.reply, complete: fold.complete, problem };
}

/** Largest body that is decoded; larger ones can only be shown raw. */
const READABLE = 8 * 2 ** 20;

export interface ReadableBody {
  readonly stageInfo: SampleStage;
  readonly bytes: Uint8Array;
  readonly protocol: ProtocolName;
  readonly sse: boolean;
}

/** @throws GatewayError not_found for an unknown stage */
export function requireStage(meta: SampleMeta, stage: string): SampleStage {
  const stageInfo = meta.edges.find((one) => one.stage === stage);
  if (stageInfo !== undefined) return stageInfo;
  throw new GatewayError('not_found', `${meta.id} has no stage "${stage.slice(0, 100)}".`);
}

/** A body to decode. @throws GatewayError not_found, too_large */
export function readableBody(store: SampleStore, meta: SampleMeta, stage: string): ReadableBody {
  const stageInfo = requireStage(meta, stage);
  if (stageInfo.bytes > READABLE) {
    throw new GatewayError(
      'too_large',
      `This body of ${stageInfo.bytes} bytes is too large to decode: it can only be shown raw.`,
    );
  }
  const atClient = stage.startsWith('client-');
  const entry = protocolOf(meta.entry);
  const protocol = atClient ? entry : (stageInfo.protocol ?? meta.provider_protocol ?? entry);
  if (protocol === undefined) {
    throw invalid(`A body of the endpoint ${meta.entry} can only be shown raw.`);
  }
  return {
    stageInfo,
    bytes: stageBytes(store, meta, stage),
    protocol,
    sse: stageInfo.file.endsWith('.sse'),
  };
}

/** The body of a stage. @throws GatewayError not_found */
export function stageBytes(store: SampleStore, meta: SampleMeta, stage: string): Uint8Array {
  const bytes = store.read(meta, stage);
  if (bytes === undefined) {
    if (meta.state === 'open' && meta.edges.some((one) => one.stage === stage)) {
      throw new GatewayError('not_found', 'This body can be read once the exchange is over.');
    }
    const names = meta.edges.map((stageInfo) => stageInfo.stage).join(', ');
    throw new GatewayError('not_found', `${meta.id} has no stage "${stage}". It has: ${names}.`);
  }
  return bytes;
}
