/** The events of a Responses stream as the conversation's, one block at a time whatever the vendor interleaves. */

import { GatewayError } from '../../../conversation/errors.ts';
import type { StreamEvent } from '../../../conversation/events.ts';
import type { SseFrame } from '../../../lib/bytes/sse.ts';
import { isObject, type JsonObject } from '../../../lib/json/json.ts';
import type { StreamDecoder, UpstreamContext } from '../../codec.ts';
import { restOf } from '../reply/decode-reply.ts';
import { decodeErrorEvent } from '../reply/errors.ts';
import { decodeFinish, failureOf, isClientCall } from '../reply/finish-reason.ts';
import { decodeUsage } from '../reply/usage.ts';
import { number, object, objects, text, wireOf } from '../wire.ts';
import { ItemDecoder } from './decode-stream-item.ts';

/** An item of the output: the live one speaks, the others wait with what they have said so far. */
interface OutputItem {
  readonly index: number;
  readonly item: ItemDecoder;
  readonly held: JsonObject[];
}

const TERMINAL = new Set(['response.completed', 'response.incomplete', 'response.failed']);
const SILENT = new Set([
  'response.created',
  'response.in_progress',
  'response.queued',
  'keepalive',
]);

/** Items are told apart by `output_index`; some vendors change item ids on the way. */
export function decodeStream(context: UpstreamContext): StreamDecoder {
  let started = false;
  let over = false;
  let done = false;
  let called = false;
  let refused = false;
  let block = 0;
  let lanes: OutputItem[] = [];
  let next = 0;
  const seen = new Set<number | string>();
  /** The first of the lanes by index, and by the item's id. */
  const byIndex = new Map<number, OutputItem>();
  const byId = new Map<string, OutputItem>();

  const events: StreamEvent[] = [];
  const out = {
    /** The index of the block that opens now. */
    open: () => block++,
    emit: (event: StreamEvent) => {
      events.push(event);
    },
    refusal: () => {
      refused = true;
    },
  };

  function start(response: JsonObject | undefined): void {
    if (started) return;
    started = true;
    const created = response === undefined ? undefined : number(response, 'created_at');
    events.push({
      type: 'start',
      id: (response && text(response, 'id')) ?? '',
      model: (response && text(response, 'model')) ?? context.target.model,
      ...(created === undefined ? {} : { created }),
      ...(response === undefined ? {} : { rest: restOf(response) }),
    });
  }

  function add(index: number, item: JsonObject): OutputItem {
    const lane: OutputItem = { index, item: new ItemDecoder(item, context, out), held: [] };
    lanes.push(lane);
    if (!byIndex.has(index)) byIndex.set(index, lane);
    if (lane.item.id !== '' && !byId.has(lane.item.id)) byId.set(lane.item.id, lane);
    remember(index, item);
    next = Math.max(next, index + 1);
    if (isClientCall(item)) called = true;
    return lane;
  }

  function remember(index: number, item: JsonObject): void {
    seen.add(index);
    if (typeof item.id === 'string' && item.id !== '') seen.add(item.id);
  }

  /** The live item has ended: those behind it say what they held. */
  function advance(): void {
    while (lanes.length > 0 && lanes[0]!.item.ended) {
      const over = lanes.shift()!;
      if (byIndex.get(over.index) === over) byIndex.delete(over.index);
      if (byId.get(over.item.id) === over) byId.delete(over.item.id);
      const lane = lanes[0];
      if (lane === undefined) return;
      for (const data of lane.held) lane.item.push(data);
      lane.held.length = 0;
    }
  }

  function finishAll(response: JsonObject): void {
    const output = objects(response.output);
    for (const lane of lanes) {
      lane.held.push({ type: 'response.output_item.done', item: output[lane.index] ?? {} });
    }
    const live = lanes[0];
    if (live !== undefined) {
      for (const data of live.held) live.item.push(data);
      live.held.length = 0;
      advance();
    }
    output.forEach((item, index) => {
      // What stands only in the last event of a minimal stream is not lost.
      if (seen.has(index) || (typeof item.id === 'string' && seen.has(item.id))) return;
      add(index, item).item.push({ type: 'response.output_item.done', item });
      advance();
    });
  }

  function terminal(response: JsonObject): void {
    finishAll(response);
    over = true;
    const usage = decodeUsage(response.usage);
    if (usage !== undefined) events.push({ type: 'usage', usage });
    const failure = failureOf(response);
    if (failure !== undefined) events.push({ type: 'error', error: failure });
    else {
      events.push(
        { type: 'finish', reason: decodeFinish(response, called, refused) },
        { type: 'end' },
      );
    }
  }

  function ofItem(data: JsonObject, type: string): void {
    const index = number(data, 'output_index');
    if (type === 'response.output_item.added') {
      add(index ?? next, object(data, 'item') ?? {});
      return;
    }
    const ends = type === 'response.output_item.done';
    let lane =
      index === undefined
        ? (byId.get(itemId(data) ?? '') ?? (ends ? undefined : lanes.at(-1)))
        : byIndex.get(index);
    if (lane === undefined) {
      const item = object(data, 'item');
      // Done without added: a minimal stream. Anything else speaks of nothing.
      if (!ends || item === undefined || (index !== undefined && seen.has(index))) return;
      lane = add(index ?? next, item);
    }
    if (ends) {
      const item = object(data, 'item');
      if (item !== undefined) remember(lane.index, item);
    }
    if (lane === lanes[0]) lane.item.push(data);
    else lane.held.push(data);
    if (ends) advance();
  }

  function push(frame: SseFrame): readonly StreamEvent[] {
    const raw = frame.data;
    if (raw === undefined || over || raw === '') return NONE;
    if (raw === '[DONE]') {
      done = true;
      return NONE;
    }
    const data = parse(raw);
    const type = text(data, 'type') ?? frame.event;
    if (type === 'error' || (type === '' && data.error !== undefined)) {
      start(undefined);
      over = true;
      events.push({ type: 'error', error: decodeErrorEvent(data) });
    } else if (TERMINAL.has(type)) {
      const response = object(data, 'response') ?? {};
      start(response);
      terminal(response.status === undefined ? { ...response, status: type.slice(9) } : response);
    } else if (type === 'response.created' || type === 'response.in_progress') {
      start(object(data, 'response'));
    } else if (data.output_index !== undefined || ITEM_EVENT.test(type)) {
      start(undefined);
      ofItem(data, type);
    } else if (!SILENT.has(type) && started) {
      events.push({ type: 'opaque', name: type, wire: wireOf(data) });
    }
    return take();
  }

  function take(): readonly StreamEvent[] {
    return events.length === 0 ? NONE : events.splice(0);
  }

  function end(): readonly StreamEvent[] {
    if (over || !started) return NONE;
    over = true;
    const open = lanes.some((lane) => !lane.item.ended);
    lanes[0]?.item.cancel();
    lanes = [];
    // `[DONE]` alone ends the stream of a relay that lost the last event, if nothing was left open.
    if (done && !open && block > 0) {
      events.push({ type: 'finish', reason: decodeFinish({}, called, refused) }, { type: 'end' });
    }
    return take();
  }

  return { push, end };
}

const NONE: readonly StreamEvent[] = [];

// Events of items whose server left out `output_index`.
const ITEM_EVENT =
  /^response\.(output_item|content_part|output_text|refusal|reasoning|function_call|custom_tool_call)/;

const itemId = (data: JsonObject): string | undefined =>
  text(data, 'item_id') ?? text(object(data, 'item') ?? {}, 'id');

function parse(raw: string): JsonObject {
  try {
    const value: unknown = JSON.parse(raw);
    if (isObject(value)) return value;
  } catch {
    // Told below in the same words as JSON of the wrong kind.
  }
  throw new GatewayError(
    'upstream',
    'The upstream sent a stream event that is not a JSON object.',
    {
      fromUpstream: true,
    },
  );
}
