/** A body as a conversation (`…/conversation`), as the frames of a stream (`…/events`), and its bytes. */

import { type Static, Type } from '@sinclair/typebox';
import { GatewayError } from '../../../conversation/errors.ts';
import type { FinishReason, StreamEvent } from '../../../conversation/events.ts';
import type { ProtocolName } from '../../../conversation/types.ts';
import { totalInput, totalOutput, type Usage } from '../../../conversation/usage.ts';
import type { JsonObject } from '../../../lib/json/json.ts';
import { pointersIn } from '../../../lib/json/pointer.ts';
import type { Steps } from '../../../lib/loop/steps.ts';
import {
  contextOf,
  eventsOf,
  framesOf,
  readableBody,
  readReply,
  readRequest,
  requireStage,
  stageBytes,
} from '../../../samples/decode/decode-body.ts';
import type { SampleError } from '../../../samples/sample.ts';
import { plain } from '../answers.ts';
import { offset, wholeNumber } from '../parameters.ts';
import {
  type BlockView,
  blockViews,
  settingsView,
  type ToolView,
  type TurnView,
  textView,
  toolViews,
  turnViews,
} from './conversation-view.ts';
import type { Recorded } from './said.ts';

/** Greatest depth of a block: message, content, tool result, its content. */
const MAX_DEPTH = 12;

/** Most characters of a frame's data, and of what it says. */
const MAX_DATA = 20_000;
const MAX_TEXT = 2000;

/** A body decoded by its codec. */
export interface ConversationView {
  readonly kind: 'request' | 'reply';
  readonly protocol: ProtocolName;
  readonly model: string;
  /** Instructions that stand apart from the turns. */
  readonly system: readonly BlockView[];
  /** A reply is one turn of the assistant. */
  readonly turns: readonly TurnView[];
  readonly tools: readonly ToolView[];
  /** Parameters besides model, prompt and tools, named as in the conversation model. */
  readonly settings: JsonObject;
  /** Only replies have it. */
  readonly finish: FinishReason | null;
  readonly usage: Usage | null;
  /** False for a stream that was cut. */
  readonly complete: boolean;
  /** The body is an error answer, or cannot be decoded completely. */
  readonly problem: SampleError | null;
}

export const CONVERSATION_QUERY = Type.Object({
  text: wholeNumber('text', { least: 1, most: 10_000_000, fallback: 20_000 }),
});

export function* conversationOf(
  { store, meta, parts }: Recorded,
  stage: string,
  { text: most }: Static<typeof CONVERSATION_QUERY>,
): Steps<ConversationView> {
  const body = readableBody(store, meta, stage);
  const { protocol } = body;
  const common = { protocol, finish: null, usage: null, complete: body.stageInfo.cut !== true };
  if (stage.endsWith('request')) {
    const { conversation, value, problem } = yield* readRequest(body, parts);
    const options = {
      most,
      places: value === undefined ? new Map() : yield* pointersIn(value, MAX_DEPTH),
    };
    return {
      ...common,
      kind: 'request',
      model: conversation.model,
      system: blockViews(conversation.system, options),
      turns: yield* turnViews(conversation.turns, options),
      tools: toolViews(conversation.tools),
      settings: settingsView(conversation),
      problem: problem ?? null,
    };
  }
  const context = yield* contextOf(store, meta, body, parts);
  const { reply, complete, problem } = yield* readReply(body, context, parts);
  const blocks = blockViews(reply.blocks, { most, places: new Map() });
  return {
    ...common,
    kind: 'reply',
    model: reply.model,
    system: [],
    turns: blocks.length === 0 ? [] : [{ role: 'assistant', blocks }],
    tools: [],
    settings: {},
    // A cut answer has no known finish reason.
    finish: complete ? reply.finish : null,
    usage: reply.usage ?? null,
    complete,
    problem: problem ?? null,
  };
}

export const EVENTS_QUERY = Type.Object({
  limit: wholeNumber('limit', { least: 1, most: 2000, fallback: 500 }),
});

export function* eventsView(
  { store, meta, parts }: Recorded,
  stage: string,
  { limit }: Static<typeof EVENTS_QUERY>,
) {
  const body = readableBody(store, meta, stage);
  // None where the body is no event stream.
  if (!body.sse) return { total: 0, events: [] };
  const context = yield* contextOf(store, meta, body, parts);
  const decoder = parts.protocols[body.protocol].decodeStream(context);
  const frames = yield* framesOf(body.bytes);
  const at = clockOf(body.stageInfo.pace ?? '');
  const events = [];
  let end = 0;
  for (const frame of frames.slice(0, limit)) {
    yield;
    end += frame.to - frame.from;
    const bytes = frame.bytes.subarray(frame.from, frame.to);
    const data = frame.data ?? new TextDecoder().decode(bytes);
    const said = meaningOf(eventsOf(decoder, frame), frame.event);
    // `at`: when it came, or went to a client.
    events.push({ ...said, data: textView(data, MAX_DATA).text, at: at(end - 1) });
  }
  return { total: frames.length, events };
}

/** The time at which the byte at an offset arrived, as recorded; undefined where no times were recorded. */
function clockOf(pace: string): (offset: number) => number | undefined {
  const marks = pace
    .split(' ')
    .filter((mark) => mark !== '')
    .map((mark) => mark.split(':').map(Number) as [ms: number, byte: number]);
  // Offsets only rise.
  let i = 0;
  return (offset) => {
    while (i + 1 < marks.length && marks[i + 1]![1] <= offset) i++;
    return marks[i]?.[0];
  };
}

/** The name of a frame and what it says, in the words of the conversation model. @param own the frame's name; '' where it has none */
function meaningOf(meant: readonly StreamEvent[] | GatewayError, own: string) {
  const events =
    meant instanceof GatewayError
      ? [{ type: 'broken', words: meant.message }]
      : meant.map((event) => ({ type: event.type, words: wordsOf(event) }));
  const name = own || (events[0]?.type ?? 'data');
  const texts = events.map(({ type, words }) =>
    type === 'delta' || type === name ? words : `${type} ${words}`.trim(),
  );
  return { name, says: textView(texts.join(' · '), MAX_TEXT).text };
}

function wordsOf(event: StreamEvent): string {
  switch (event.type) {
    case 'start':
      return event.model;
    case 'block-start': {
      const { head } = event;
      if (head.type === 'tool-call') return `${head.type} ${head.name}`;
      return head.type === 'whole' ? head.block.type : head.type;
    }
    case 'delta':
      return event.text;
    case 'sealed':
      return event.sealed.kind;
    case 'citation':
      return event.citation.title ?? event.citation.url ?? '';
    case 'usage':
      return `${totalInput(event.usage)} → ${totalOutput(event.usage)}`;
    case 'finish':
      return event.reason;
    case 'error':
      return event.error.message;
    case 'opaque':
    case 'tool-event':
      return event.name;
    default:
      return '';
  }
}

/** Most bytes of a body in one response. */
const SLICE = 4 * 2 ** 20;

export const RAW_QUERY = Type.Object({
  from: offset('from'),
  bytes: wholeNumber('bytes', { least: 1, most: SLICE, fallback: SLICE }),
});

/** `…/edges/:stage`: the raw body, or a part of it. */
export function rawBody(
  { store, meta }: Recorded,
  stage: string,
  { from, bytes: count }: Static<typeof RAW_QUERY>,
): Response {
  const stageInfo = requireStage(meta, stage);
  const bytes = stageBytes(store, meta, stageInfo.stage);
  return plain(bytes.subarray(from, from + count), {
    'x-hopgate-bytes': String(bytes.length),
    'content-disposition': `inline; filename="${stageInfo.file}.txt"`,
  });
}
