/** A body as a conversation (`…/conversation`), as the frames of a stream (`…/events`), and its bytes. */

import { type Static, Type } from '@sinclair/typebox';
import { GatewayError } from '../../../conversation/errors.ts';
import type { StreamEvent } from '../../../conversation/events.ts';
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
import { plain } from '../answers.ts';
import { offset, wholeNumber } from '../parameters.ts';
import type { ConversationView, EventPart, EventsView, EventView } from './api-body.ts';
import { blockViews, settingsView, textView, toolViews, turnViews } from './conversation-view.ts';
import type { Recorded } from './said.ts';

/** Greatest depth of a block: message, content, tool result, its content. */
const MAX_DEPTH = 12;

/** Most characters of a frame's data, and of the text of its events. */
const MAX_RAW = 20_000;
const MAX_TEXT = 2000;

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
  from: offset('from'),
  limit: wholeNumber('limit', { least: 1, most: 2000, fallback: 500 }),
});

export function* eventsView(
  { store, meta, parts }: Recorded,
  stage: string,
  { from, limit }: Static<typeof EVENTS_QUERY>,
): Steps<EventsView> {
  const body = readableBody(store, meta, stage);
  const { protocol } = body;
  const none = { protocol, stream: false, total: 0, events: [] };
  if (!body.sse) return none;
  const context = yield* contextOf(store, meta, body, parts);
  const decoder = parts.protocols[protocol].decodeStream(context);
  const frames = yield* framesOf(body.bytes);
  const at = clockOf(body.stageInfo.pace ?? '');
  const events: EventView[] = [];
  const open: OpenBlock = {};
  let end = 0;
  // A decoder has state: it must see all frames before the requested ones.
  for (const [n, frame] of frames.slice(0, from + limit).entries()) {
    yield;
    const decoded = eventsOf(decoder, frame);
    const says =
      decoded instanceof GatewayError
        ? [{ type: 'broken' as const, ...short(decoded.message) }]
        : decoded.map((one) => eventPart(one, open));
    end += frame.to - frame.from;
    if (n < from) continue;
    events.push({
      n,
      name: frame.event,
      raw: textView(
        frame.data ?? new TextDecoder().decode(frame.bytes.subarray(frame.from, frame.to)),
        MAX_RAW,
      ),
      at: at(end - 1),
      says,
    });
  }
  return { protocol, stream: true, total: frames.length, events };
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

const short = (text: string) => ({ text: textView(text, MAX_TEXT).text });

/** The kind of the open block. */
interface OpenBlock {
  of?: string;
}

/** Events of a block: the page shows its kind beside them. */
const WITH_KIND = new Set(['block-start', 'delta', 'sealed', 'block-stop']);

function eventPart(event: StreamEvent, open: OpenBlock): EventPart {
  const type = event.type === 'tool-event' ? 'opaque' : event.type;
  if (event.type === 'block-start') {
    open.of = event.head.type === 'whole' ? event.head.block.type : event.head.type;
  }
  const text = textOf(event);
  return {
    type,
    ...('index' in event && { block: event.index }),
    ...(WITH_KIND.has(type) && { of: open.of }),
    ...(text !== undefined && short(text)),
    ...('usage' in event && { usage: event.usage }),
  };
}

function textOf(event: StreamEvent): string | undefined {
  switch (event.type) {
    case 'start':
      return event.model;
    case 'block-start':
      return event.head.type === 'tool-call' ? event.head.name : undefined;
    case 'delta':
      return event.text;
    case 'sealed':
      return event.sealed.kind;
    case 'citation':
      return event.citation.title ?? event.citation.url ?? '';
    case 'finish':
      return event.reason;
    case 'error':
      return event.error.message;
    case 'opaque':
    case 'tool-event':
      return event.name;
    default:
      return undefined;
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
