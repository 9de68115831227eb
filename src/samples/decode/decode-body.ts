/** Decodes a recorded body with the codec of its protocol: a request as a conversation, an answer as a reply. */

import type { StreamDecoder, UpstreamContext } from '../../codecs/codec.ts';
import { asGatewayError, type GatewayError } from '../../conversation/errors.ts';
import type { Reply, StreamEvent } from '../../conversation/events.ts';
import { Notes } from '../../conversation/notes.ts';
import { ReplyBuilder } from '../../conversation/reply-builder.ts';
import { NO_PROFILE } from '../../conversation/target.ts';
import type { Conversation, ProtocolName } from '../../conversation/types.ts';
import { type SseFrame, SseParser } from '../../lib/bytes/sse.ts';
import { type Json, parseJson } from '../../lib/json/json.ts';
import type { SampleServices } from '../in-process-gateway.ts';
import type { SampleError, SampleMeta, SampleStore } from '../sample.ts';
import { type ReadableBody, readableBody } from './readable-body.ts';

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
  readonly value: ReturnType<typeof parseJson> | undefined;
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

/** Decodes a request. A history that the decoder refuses is repaired first, and the refusal is returned as the problem. */
export function readRequest(body: ReadableBody, { protocols, mend }: ReadingParts): ReadRequest {
  const protocol = protocols[body.protocol];
  let value: ReturnType<typeof parseJson>;
  try {
    value = parseJson(textOf(body));
  } catch {
    const problem = { kind: 'invalid_request', message: 'The body is not valid JSON.' };
    return { conversation: EMPTY, value: undefined, problem };
  }
  try {
    return { conversation: protocol.decodeRequest(value), value, problem: undefined };
  } catch (thrown) {
    const problem = sampleProblem(asGatewayError(thrown));
    try {
      const mended = mend(value, body.protocol, new Notes());
      return { conversation: protocol.decodeRequest(mended), value: mended, problem };
    } catch {
      return { conversation: EMPTY, value, problem };
    }
  }
}

/** The context of an answer's decoder: the request that was answered. */
export function contextOf(
  store: SampleStore,
  meta: SampleMeta,
  body: ReadableBody,
  parts: ReadingParts,
): UpstreamContext {
  const stage = body.stageInfo.stage.replace(/(response|error)$/, 'request');
  const hasRequest = meta.edges.some((stageInfo) => stageInfo.stage === stage);
  const sent = hasRequest
    ? readRequest(readableBody(store, meta, stage), parts).conversation
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

export const framesOf = (bytes: Uint8Array): readonly SseFrame[] => {
  const parser = new SseParser();
  return [...parser.push(bytes), ...parser.end()];
};

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
export function readReply(
  body: ReadableBody,
  context: UpstreamContext,
  parts: ReadingParts,
): ReadReply {
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
  if (body.sse) return foldStream(body, context, parts);
  try {
    const reply = protocol.decodeReply(parseJson(textOf(body)), context);
    return { reply, complete: stageInfo.cut !== true, problem: undefined };
  } catch (thrown) {
    const problem =
      thrown instanceof SyntaxError
        ? { kind: 'upstream', message: 'The body is not valid JSON.' }
        : sampleProblem(asGatewayError(thrown));
    return { ...nothing, problem };
  }
}

function foldStream(body: ReadableBody, context: UpstreamContext, parts: ReadingParts): ReadReply {
  const decoder = parts.protocols[body.protocol].decodeStream(context);
  const fold = new ReplyBuilder();
  let open: number | undefined;
  let problem: SampleError | undefined;
  for (const frame of [...framesOf(body.bytes), undefined]) {
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
