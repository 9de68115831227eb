/** Reads a recorded body through the codec of its protocol: a request as a conversation, an answer as a reply. */

import type { StreamDecoder, UpstreamContext } from '../../codecs/codec.ts';
import { asGatewayError, type GatewayError } from '../../conversation/errors.ts';
import type { Reply, StreamEvent } from '../../conversation/events.ts';
import { Notes } from '../../conversation/notes.ts';
import { ReplyBuilder } from '../../conversation/reply-builder.ts';
import { NO_PROFILE } from '../../conversation/target.ts';
import type { Conversation } from '../../conversation/types.ts';
import { type SseFrame, SseParser } from '../../lib/bytes/sse.ts';
import { parseJson } from '../../lib/json/json.ts';
import type { SampleError, SampleMeta, SampleStore } from '../../samples/sample.ts';
import { type Body, readableBody } from './bodies.ts';
import type { UiParts } from './parts.ts';

export type ReadingParts = Pick<UiParts, 'protocols' | 'mend'>;

const EMPTY: Conversation = {
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

const words = ({ kind, message, status, code }: GatewayError): SampleError => ({
  kind,
  message,
  status,
  ...(code !== undefined && { code }),
});

const textOf = ({ bytes }: Body) => new TextDecoder().decode(bytes);

/** A history that its decoder refuses is mended first, as it is on its way to a vendor; the refusal is told. */
export function readRequest(body: Body, { protocols, mend }: ReadingParts): ReadRequest {
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
    const problem = words(asGatewayError(thrown));
    try {
      const mended = mend(value, body.protocol, new Notes());
      return { conversation: protocol.decodeRequest(mended), value: mended, problem };
    } catch {
      return { conversation: EMPTY, value, problem };
    }
  }
}

/** What a decoder of answers must know: the request that it answers. */
export function contextOf(
  book: SampleStore,
  meta: SampleMeta,
  body: Body,
  parts: ReadingParts,
): UpstreamContext {
  const stage = body.edge.stage.replace(/(response|error)$/, 'request');
  const asked = meta.edges.some((edge) => edge.stage === stage);
  const sent = asked ? readRequest(readableBody(book, meta, stage), parts).conversation : EMPTY;
  const target = {
    provider: (body.edge.target ?? meta.target ?? '').split('/')[0] ?? '',
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

/** The events of a frame; what the decoder refuses comes as an error in words. */
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

/** An answer, streamed or not, as far as it can be read. */
export function readReply(body: Body, context: UpstreamContext, parts: ReadingParts): ReadReply {
  const protocol = parts.protocols[body.protocol];
  const { edge } = body;
  const nothing: ReadReply = {
    reply: new ReplyBuilder().reply,
    complete: false,
    problem: undefined,
  };
  if (edge.made === true) return { ...nothing, problem: edge.error };
  if ((edge.status ?? 200) >= 400 || edge.stage.endsWith('error')) {
    const error = protocol.decodeError(edge.status ?? 500, textOf(body), new Headers());
    return { ...nothing, problem: words(error) };
  }
  if (body.sse) return foldStream(body, context, parts);
  try {
    const reply = protocol.decodeReply(parseJson(textOf(body)), context);
    return { reply, complete: edge.cut !== true, problem: undefined };
  } catch (thrown) {
    const problem =
      thrown instanceof SyntaxError
        ? { kind: 'upstream', message: 'The body is not valid JSON.' }
        : words(asGatewayError(thrown));
    return { ...nothing, problem };
  }
}

function foldStream(body: Body, context: UpstreamContext, parts: ReadingParts): ReadReply {
  const decoder = parts.protocols[body.protocol].decodeStream(context);
  const fold = new ReplyBuilder();
  let open: number | undefined;
  let problem: SampleError | undefined;
  for (const frame of [...framesOf(body.bytes), undefined]) {
    const events = eventsOf(decoder, frame);
    if (!Array.isArray(events)) {
      problem ??= words(events as GatewayError);
      break;
    }
    for (const event of events as readonly StreamEvent[]) {
      if (event.type === 'error') problem ??= words(event.error);
      if (event.type === 'block-start') open = event.index;
      if (event.type === 'block-stop') open = undefined;
      fold.push(event);
    }
  }
  // A stream that was cut stopped in the middle of a block: what there is of it is shown.
  if (open !== undefined) fold.push({ type: 'block-stop', index: open });
  return { reply: fold.reply, complete: fold.complete, problem };
}
