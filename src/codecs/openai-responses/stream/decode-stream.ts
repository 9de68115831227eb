/** Decodes a Responses stream into events, one block at a time, even if the vendor interleaves items. */

import { brokenAnswer } from '../../../conversation/errors.ts';
import type { StreamEvent } from '../../../conversation/events.ts';
import { ERROR_LINE, isKeepAlive, type SseFrame } from '../../../lib/bytes/sse.ts';
import { isObject, type JsonObject } from '../../../lib/json/json.ts';
import type { StreamDecoder, UpstreamContext } from '../../codec.ts';
import { restOf } from '../reply/decode-reply.ts';
import { decodeErrorEvent } from '../reply/errors.ts';
import { decodeFinish, failureOf, isClientCall } from '../reply/finish-reason.ts';
import { usageOf } from '../reply/usage.ts';
import { number, object, objects, text, wireOf } from '../wire.ts';
import { type EventSink, ItemDecoder } from './decode-stream-item.ts';

/** An item of the output. The first one is live; the events of the others are held. */
interface OutputItem {
  readonly index: number;
  readonly decoder: ItemDecoder;
  readonly held: JsonObject[];
}

const NONE: readonly StreamEvent[] = [];
/** The last events, with the status that each means. Some relays end with `response.done`. */
const TERMINAL = new Map([
  ['response.completed', 'completed'],
  ['response.incomplete', 'incomplete'],
  ['response.failed', 'failed'],
  ['response.done', 'completed'],
]);
/** Events without a meaning for the conversation. */
const IGNORED = new Set([
  'response.created',
  'response.in_progress',
  'response.queued',
  'keepalive',
]);

/** Decodes one stream. Frames after its end are skipped. */
export function decodeStream(context: UpstreamContext): StreamDecoder {
  return new ResponsesStreamDecoder(context);
}

/** Items are identified by `output_index`, because some vendors change item ids within a stream. */
class ResponsesStreamDecoder implements StreamDecoder {
  readonly #sink: EventSink;
  #events: StreamEvent[] = [];
  #started = false;
  #over = false;
  /** `[DONE]` was seen. */
  #done = false;
  #hasCalls = false;
  #refused = false;
  /** How many blocks were opened, and how many messages of text. */
  #blocks = 0;
  #messages = 0;
  #items: OutputItem[] = [];
  /** The output index of an item without one. */
  #nextIndex = 0;
  /** The indexes and ids of all items so far. */
  readonly #seen = new Set<number | string>();
  /** The first open item of each index, and of each id. */
  readonly #byIndex = new Map<number, OutputItem>();
  readonly #byId = new Map<string, OutputItem>();

  constructor(private readonly context: UpstreamContext) {
    this.#sink = {
      open: () => this.#blocks++,
      emit: (event) => {
        this.#events.push(event);
      },
      refusal: () => {
        this.#refused = true;
      },
      message: () => this.#messages++ > 0,
    };
  }

  push(frame: SseFrame): readonly StreamEvent[] {
    const raw = frame.data;
    if (raw === undefined || this.#over || raw === '') return NONE;
    if (raw === '[DONE]') {
      this.#done = true;
      return NONE;
    }
    const data = parse(raw);
    if (data === undefined) return NONE;
    const type = text(data.type) ?? frame.event;
    const untyped = (type === '' || type === ERROR_LINE) && data.error !== undefined;
    if (type === 'error' || untyped) {
      this.#start(undefined);
      this.#over = true;
      const error = decodeErrorEvent(data);
      // Codex goes by the type.
      this.#events.push({ type: 'error', error, ...(untyped ? { unsaid: true } : {}) });
    } else if (TERMINAL.has(type)) {
      const response = object(data.response) ?? {};
      this.#start(response);
      const status = response.status ?? TERMINAL.get(type);
      this.#terminal({ ...response, status });
    } else if (type === 'response.created' || type === 'response.in_progress') {
      this.#start(object(data.response));
    } else if (data.output_index !== undefined || ITEM_EVENT.test(type)) {
      this.#start(undefined);
      this.#itemEvent(data, type);
    } else if (!IGNORED.has(type) && this.#started) {
      this.#events.push({ type: 'opaque', name: type, wire: wireOf(data) });
    }
    return this.#take();
  }

  end(): readonly StreamEvent[] {
    if (this.#over || !this.#started) return NONE;
    this.#over = true;
    const open = this.#items.some(({ decoder }) => !decoder.ended);
    this.#items[0]?.decoder.cancel();
    this.#items = [];
    // A relay that lost the last event still sends `[DONE]`: enough if no item is open.
    if (this.#done && !open && this.#blocks > 0) this.#finish({});
    return this.#take();
  }

  get holds(): boolean {
    return this.#items.length > 1 || this.#items[0]?.decoder.isSilentCall === true;
  }

  #start(response: JsonObject | undefined): void {
    if (this.#started) return;
    this.#started = true;
    this.#events.push({
      type: 'start',
      id: text(response?.id) ?? '',
      model: text(response?.model) ?? this.context.target.model,
      created: number(response?.created_at),
      rest: response && restOf(response),
    });
  }

  #itemEvent(data: JsonObject, type: string): void {
    const index = number(data.output_index);
    if (type === 'response.output_item.added') {
      this.#add(index ?? this.#nextIndex, object(data.item) ?? {});
      return;
    }
    const ends = type === 'response.output_item.done';
    const whole = ends ? object(data.item) : undefined;
    const byId = this.#byId.get(itemId(data) ?? '');
    let item =
      index === undefined ? (byId ?? this.#lastOpen(whole)) : (this.#byIndex.get(index) ?? byId);
    if (item === undefined) {
      // A minimal stream has `done` without `added`, or deltas alone. Other events of unknown items are ignored.
      const source = whole ?? begunBy(type, itemId(data));
      if (source === undefined || (index !== undefined && this.#seen.has(index))) return;
      item = this.#add(index ?? this.#nextIndex, source);
    }
    if (whole !== undefined) this.#remember(item.index, whole);
    if (item === this.#items[0]) item.decoder.push(data);
    else item.held.push(data);
    if (ends) this.#advance();
  }

  /** Where neither index nor id says which: the last item, and where it ends, the last of its type. */
  #lastOpen(whole: JsonObject | undefined): OutputItem | undefined {
    const type = text(whole?.type);
    return type === undefined
      ? this.#items.at(-1)
      : this.#items.findLast(({ decoder }) => !decoder.ended && decoder.type === type);
  }

  #add(index: number, source: JsonObject): OutputItem {
    const decoder = new ItemDecoder(source, this.context, this.#sink);
    const item: OutputItem = { index, decoder, held: [] };
    this.#items.push(item);
    if (!this.#byIndex.has(index)) this.#byIndex.set(index, item);
    if (decoder.id !== '' && !this.#byId.has(decoder.id)) this.#byId.set(decoder.id, item);
    this.#remember(index, source);
    this.#nextIndex = Math.max(this.#nextIndex, index + 1);
    if (isClientCall(source)) this.#hasCalls = true;
    return item;
  }

  #remember(index: number, item: JsonObject): void {
    this.#seen.add(index);
    if (typeof item.id === 'string' && item.id !== '') this.#seen.add(item.id);
  }

  /** Removes ended items from the front; the next item then emits its held events. */
  #advance(): void {
    while (this.#items[0]?.decoder.ended === true) {
      const ended = this.#items.shift()!;
      if (this.#byIndex.get(ended.index) === ended) this.#byIndex.delete(ended.index);
      if (this.#byId.get(ended.decoder.id) === ended) this.#byId.delete(ended.decoder.id);
      this.#emitHeld();
    }
  }

  #emitHeld(): void {
    const live = this.#items[0];
    if (live === undefined) return;
    for (const data of live.held) live.decoder.push(data);
    live.held.length = 0;
  }

  #terminal(response: JsonObject): void {
    this.#finishItems(objects(response.output));
    this.#over = true;
    const usage = usageOf(response);
    if (usage !== undefined) this.#events.push({ type: 'usage', usage });
    const failure = failureOf(response);
    if (failure === undefined) this.#finish(response);
    else this.#events.push({ type: 'error', error: failure });
  }

  /** Ends all open items with what the terminal event says of them, and adds items that only it has. */
  #finishItems(output: readonly JsonObject[]): void {
    for (const { index, held } of this.#items) {
      held.push({ type: 'response.output_item.done', item: output[index] ?? {} });
    }
    this.#emitHeld();
    this.#advance();
    output.forEach((item, index) => {
      if (this.#seen.has(index)) return;
      if (typeof item.id === 'string' && this.#seen.has(item.id)) return;
      this.#add(index, item).decoder.push({ type: 'response.output_item.done', item });
      this.#advance();
    });
  }

  #finish(response: JsonObject): void {
    const reason = decodeFinish(response, this.#hasCalls, this.#refused);
    this.#events.push({ type: 'finish', reason }, { type: 'end' });
  }

  #take(): readonly StreamEvent[] {
    if (this.#events.length === 0) return NONE;
    const events = this.#events;
    this.#events = [];
    return events;
  }
}

// Events of items whose server left out `output_index`.
const ITEM_EVENT =
  /^response\.(output_item|content_part|output_text|refusal|reasoning|function_call|custom_tool_call)/;

/** The item that a delta of an unknown one belongs to; a call cannot begin without its name. */
function begunBy(type: string, id = ''): JsonObject | undefined {
  if (/^response\.(?:output_text|refusal)\.delta$/.test(type)) {
    return { type: 'message', id, role: 'assistant', content: [] };
  }
  return /^response\.reasoning\w*\.delta$/.test(type)
    ? { type: 'reasoning', id, summary: [] }
    : undefined;
}

const itemId = (data: JsonObject): string | undefined =>
  text(data.item_id) ?? text(object(data.item)?.id);

/** Undefined for a keep-alive. */
function parse(raw: string): JsonObject | undefined {
  try {
    const value: unknown = JSON.parse(raw);
    if (isObject(value)) return value;
  } catch {
    // The error below is the same as for JSON of another kind.
  }
  if (isKeepAlive(raw)) return undefined;
  throw brokenAnswer('The upstream sent a stream event that is not a JSON object.');
}
