/**
 * Mends a Responses stream for clients of the same protocol. They put the answer together from its events, and lose or
 * refuse what has no index, no beginning, another id than before, or is missing at the end: llama.cpp leaves out indexes
 * and ids (github.com/ggml-org/llama.cpp/issues/20607), vLLM counts parts wrong (github.com/vllm-project/vllm/issues/45742)
 * and has names of its own (github.com/vllm-project/vllm/pull/24938), relays leave out parts and deltas
 * (github.com/Wei-Shaw/sub2api/pull/4468, github.com/Sophomoresty/gemini-web2api/pull/57), the output
 * (github.com/QuantumNous/new-api/issues/4362) and the name of the end (github.com/decolua/9router/pull/2142). Ids change
 * within an item at GitHub Copilot (github.com/vercel/ai/pull/18548), LiteLLM (github.com/BerriAI/litellm/pull/36375) and
 * mistral.rs (github.com/EricLBuehler/mistral.rs/issues/1944); OpenAI's own client refuses that
 * (github.com/openai/openai-node/pull/2415). A frame that is right stays the same text.
 */

import type { Notes } from '../../../conversation/notes.ts';
import { isKeepAlive } from '../../../lib/bytes/sse.ts';
import { isObject, type JsonObject, tryParse } from '../../../lib/json/json.ts';
import { memberOf } from '../../../lib/json/json-members.ts';
import { number, object, objects, text } from '../wire.ts';
import {
  BEGINNINGS,
  begun,
  ITEM_EVENT,
  type Item,
  isCall,
  itemOf,
  kindOf,
  lackingIn,
  PARTS,
  type PartKind,
  saidOf,
  textOf,
} from './items.ts';

/** No answer has as many items, or as many characters in them. What follows goes on as it came. */
const MAX_ITEMS = 500;
const MAX_CHARS = 32 * 1024 * 1024;

const TYPE = /"type":\s*"(error|response\.[\w.]+)"/;
const INDEX = /"output_index":\s*(\d+)/;
const PART = /"content_index":\s*(\d+)/;
const SUMMARY = /"summary_index":\s*(\d+)/;
const RESPONSE_ID = /"response":\s*\{[^{}[\]]*?"id":\s*"([^"\\]+)"/;
const SEQUENCE = /("sequence_number":\s*)(\d+)/;
const PLAIN_DELTA = /"delta":\s*("[^"\\]*")/;
const OUTPUT = /"output":\s*\[\s*\{/;
const FOREIGN_PING = /^\s*\{\s*(?:\}|"type":\s*"ping")/;
/** The first event that SDKs take is `response.created`. */
const SILENT = /^\s*\{\s*(?:\}|"type":\s*"(?:ping|keepalive)")/;
const UNFINISHED = /"status":\s*"(?:incomplete|failed|cancelled|in_progress)"/;
/** vLLM's names. */
const OTHER_NAMES: Readonly<Record<string, string>> = {
  'reasoning_part.added': 'content_part.added',
  'reasoning_part.done': 'content_part.done',
};
const ENDED = new Set(['completed', 'incomplete', 'failed', 'cancelled']);

/** See `Codec.soundFrames`. */
export function soundFrames(notes: Notes): (json: string) => readonly string[] {
  const frames = new SoundFrames(notes);
  return (json) => frames.read(json);
}

/** The delta of a frame; most have no escapes, and the rest is not parsed. A parsed string does not keep the frame in memory. */
function deltaOf(json: string): string | undefined {
  const plain = PLAIN_DELTA.exec(json)?.[1];
  return text(plain === undefined ? object(tryParse(json))?.delta : tryParse(plain));
}

class SoundFrames {
  readonly #items: Item[] = [];
  /** By the vendor's own index and id. */
  readonly #byIndex = new Map<number, Item>();
  readonly #byId = new Map<string, Item>();
  /** `response.created`, which repeats the request: read only where it is needed. */
  #created = '';
  #responseRead: JsonObject | undefined;
  /** The id that the response began with. */
  #id: string | undefined;
  /** Characters of the frames that finished items. */
  #chars = 0;
  /** Events to come before the one that is read. */
  #before: JsonObject[] = [];
  /** How many events were added so far. */
  #added = 0;
  #isLastDone = false;
  #isNoted = false;
  #hasBegun = false;
  /** A finished item is not as the vendor has it. */
  #hasOwnItems = false;
  #over = false;

  constructor(private readonly notes: Notes) {}

  read(json: string): readonly string[] {
    if (this.#over) return [json];
    const isFull = this.#items.length >= MAX_ITEMS || this.#chars > MAX_CHARS;
    const isSilent = json.startsWith('{')
      ? !this.#hasBegun && SILENT.test(json)
      : json === '' || isKeepAlive(json);
    if (isSilent) {
      this.#note('ping');
      return [];
    }
    this.#hasBegun = true;
    if (json === '[DONE]') return isFull ? [json] : this.#missingEnd();
    const name = TYPE.exec(json)?.[1] ?? '';
    // SDKs throw at events of other names; `keepalive` is OpenAI's own.
    if (name === 'response.keep_alive' || (name === '' && FOREIGN_PING.test(json))) {
      this.#note('ping');
      return [];
    }
    const type = name.slice('response.'.length);
    this.#before = [];
    const sound = isFull ? json : this.#sound(json, type);
    this.#isLastDone = type === 'output_item.done';
    return this.#numbered(sound);
  }

  #sound(json: string, type: string): string {
    switch (type) {
      case 'created':
        this.#begin(json);
        return json;
      case 'queued':
      case 'in_progress':
        return this.#begun(json, type);
      case 'completed':
      case 'incomplete':
      case 'failed':
      case 'done':
        this.#over = true;
        return this.#end(this.#begun(json, type), type);
      default: {
        const own = memberOf(OTHER_NAMES, type) ?? type;
        if (!ITEM_EVENT.test(own)) return json;
        this.#begun(json, type);
        return this.#isSoundDelta(json, own) ? json : this.#itemEvent(json, own);
      }
    }
  }

  #begin(created: string): void {
    this.#created = created;
    this.#responseRead = undefined;
    this.#id = RESPONSE_ID.exec(created)?.[1] ?? text(this.#response.id);
  }

  /** A frame behind `response.created`, with that one's id if it has a response. */
  #begun(json: string, type: string): string {
    const isRight = this.#id !== undefined && json.includes(`"${this.#id}"`);
    if (isRight || (ITEM_EVENT.test(type) && this.#created !== '')) return json;
    const data = tryParse(json);
    if (!isObject(data)) return json;
    const response = object(data.response);
    if (this.#created === '' && type !== 'failed') {
      const id = text(response?.id) ?? `resp_${crypto.randomUUID().replaceAll('-', '')}`;
      const created = {
        type: 'response.created',
        response: { ...response, id, object: 'response', status: 'in_progress', output: [] },
      };
      this.#before.push(created);
      this.#begin(JSON.stringify(created));
    }
    return response === undefined || this.#id === undefined
      ? json
      : this.#rewritten(json, data, { response: { ...response, id: this.#id } });
  }

  /** Most frames are deltas of what is open, and are not parsed. */
  #isSoundDelta(json: string, type: string): boolean {
    if (!type.endsWith('.delta') || this.#isNoted) return false;
    const index = INDEX.exec(json)?.[1];
    const item = index === undefined ? undefined : this.#byIndex.get(Number(index));
    if (item === undefined || item.whole !== undefined || item.index !== Number(index))
      return false;
    if (!json.includes(`"${item.id}"`) || item.type !== itemOf(type)) return false;
    const kind = memberOf(PARTS, type.slice(0, -'.delta'.length));
    const parts = item[kind?.of ?? 'content'];
    let part = 0;
    if (kind !== undefined) {
      const given = (kind.of === 'summary' ? SUMMARY : PART).exec(json)?.[1];
      part = given === undefined ? parts.count : Number(given);
      if (part >= parts.count) return false;
    }
    const delta = deltaOf(json);
    if (delta === undefined) return false;
    if (kind === undefined) item.input = this.#longer(parts.said ? item.input : '', delta);
    else this.#keep(item, kind, part, delta);
    parts.said = true;
    return true;
  }

  #itemEvent(json: string, type: string): string {
    const data = tryParse(json);
    if (!isObject(data)) return json;
    const index = number(data.output_index);
    const whole = type.startsWith('output_item.') ? (object(data.item) ?? {}) : undefined;
    const isAdded = type === 'output_item.added';
    const wanted = whole === undefined ? itemOf(type, data) : text(whole.type);
    const known = isAdded
      ? undefined
      : this.#find(index, text(data.item_id) ?? text(whole?.id), wanted);
    // A call cannot begin without its name.
    if (known === undefined && whole === undefined && isCall(type)) return json;
    // Clients have the finished item: only the place and the id of later events are put right.
    if (known?.whole !== undefined) {
      const own = whole === undefined ? {} : { item: { ...whole, id: known.id } };
      return this.#rewritten(json, data, { ...this.#place(known, data), ...own });
    }
    const source = whole ?? begun(wanted, text(data.item_id));
    const item = known ?? this.#open(source, index);
    if (known === undefined && !isAdded) this.#announce(item, source);
    const fields =
      whole === undefined
        ? this.#within(item, data, type)
        : { item: this.#whole(item, whole, isAdded, json.length) };
    return this.#rewritten(json, data, {
      type: `response.${type}`,
      ...this.#place(item, data),
      ...fields,
    });
  }

  /** Where an event belongs. */
  #place(item: Item, data: JsonObject): JsonObject {
    return { output_index: item.index, ...(data.item === undefined && { item_id: item.id }) };
  }

  #find(index: number | undefined, id: string | undefined, type: string | undefined) {
    const fits = (item: Item | undefined) =>
      type === undefined || item?.type === type ? item : undefined;
    const byId = id === undefined ? undefined : fits(this.#byId.get(id));
    if (index !== undefined) return fits(this.#byIndex.get(index)) ?? byId;
    return byId ?? this.#items.findLast((item) => !item.whole && fits(item));
  }

  #open(source: JsonObject, index: number | undefined): Item {
    const type = text(source.type) ?? '';
    const own = this.#items.length;
    const given = text(source.id) ?? '';
    const isNew = given !== '' && !this.#byId.has(given);
    const id = isNew ? given : this.#madeId(type, own);
    const item: Item = {
      index:
        index === undefined || this.#items.some((other) => other.index === index) ? own : index,
      id,
      type,
      callId: isCall(type) ? (text(source.call_id) ?? id) : undefined,
      source,
      texts: [],
      content: { count: 0, announces: false, said: false },
      summary: { count: 0, announces: false, said: false },
    };
    this.#items.push(item);
    this.#byIndex.set(index ?? item.index, item);
    if (given !== '') this.#byId.set(given, item);
    return item;
  }

  #madeId(type: string, index: number): string {
    return `${memberOf(BEGINNINGS, type)?.prefix ?? 'item'}_${this.#id ?? ''}_${index}`;
  }

  get #response(): JsonObject {
    this.#responseRead ??= object(object(tryParse(this.#created))?.response) ?? {};
    return this.#responseRead;
  }

  #announce(item: Item, source: JsonObject): void {
    const empty = memberOf(BEGINNINGS, item.type)?.empty;
    const begun = { ...source, id: item.id, status: 'in_progress', ...empty };
    this.#insert(item, 'output_item.added', { item: begun });
  }

  /** The fields of an event within an item that have to be other ones. */
  #within(item: Item, data: JsonObject, type: string): JsonObject {
    const kind = kindOf(type, data);
    if (kind === undefined) {
      const before = item.content.said ? item.input : '';
      item.input =
        text(data.arguments) ?? text(data.input) ?? this.#longer(before, data.delta) ?? item.input;
      if (type.endsWith('.delta')) item.content.said = true;
      return {};
    }
    const parts = item[kind.of];
    const given = number(data[`${kind.of}_index`]);
    const isBeginning = type === kind.begins;
    let part = given ?? Math.max(0, parts.count - (isBeginning ? 0 : 1));
    if (isBeginning) {
      parts.announces = true;
      part = Math.min(part, parts.count);
      parts.count = Math.max(parts.count, part + 1);
      parts.said = false;
    } else if (part >= parts.count) {
      if (parts.announces) part = parts.count - 1;
      else part = this.#beginPart(item, kind);
    }
    const said = text(data.text) ?? text(data.refusal);
    if (type.endsWith('.done')) this.#say(item, kind, part, said);
    if (said !== undefined) item.texts[part] = { ...kind.empty, [textOf(kind)]: said };
    else this.#keep(item, kind, part, data.delta);
    if (type.endsWith('.delta')) parts.said = true;
    return { [`${kind.of}_index`]: part };
  }

  /** Adds a delta to what the part has said so far: the end of the stream may lack it. */
  #keep(item: Item, kind: PartKind, part: number, delta: unknown): void {
    const member = textOf(kind);
    const before = item[kind.of].said ? text(item.texts[part]?.[member]) : '';
    const whole = this.#longer(before, delta);
    if (whole !== undefined) item.texts[part] = { ...kind.empty, [member]: whole };
  }

  /** @param before undefined: what came before is not known */
  #longer(before: string | undefined, delta: unknown): string | undefined {
    if (before === undefined || typeof delta !== 'string') return undefined;
    this.#chars += delta.length;
    return before + delta;
  }

  /** @returns the index of the part */
  #beginPart(item: Item, kind: PartKind): number {
    const parts = item[kind.of];
    const part = parts.count++;
    parts.said = false;
    // Thoughts are one text.
    parts.announces ||= kind.delta === 'reasoning_text';
    this.#insert(item, kind.begins, { [`${kind.of}_index`]: part, part: kind.empty });
    return part;
  }

  /** A text of which no delta came. */
  #say(item: Item, kind: PartKind, part: number, whole: string | undefined): void {
    const parts = item[kind.of];
    if (parts.said || whole === undefined || whole === '') return;
    parts.said = true;
    this.#insert(item, `${kind.delta}.delta`, { [`${kind.of}_index`]: part, delta: whole });
  }

  /** @param size characters of the frame */
  #whole(item: Item, given: JsonObject, isAdded: boolean, size: number): JsonObject {
    // Those of a tool search are an object.
    const input = isCall(item.type) ? object(given.arguments) : undefined;
    const lacking = isAdded ? {} : lackingIn(given, item);
    const whole: JsonObject = {
      ...given,
      ...lacking,
      id: item.id,
      ...(input && { arguments: JSON.stringify(input) }),
      ...(item.callId !== undefined && { call_id: item.callId }),
    };
    if (isAdded) return whole;
    item.whole = whole;
    this.#chars += size;
    this.#hasOwnItems ||=
      input !== undefined ||
      Object.keys(lacking).length > 0 ||
      whole.call_id !== given.call_id ||
      whole.id !== given.id;
    if (item.type !== 'message') return whole;
    objects(whole.content).forEach((part, i) => {
      const kind = PARTS[part.type === 'refusal' ? 'refusal' : 'output_text']!;
      if (i >= item.content.count) this.#beginPart(item, kind);
      if (i === item.content.count - 1) {
        this.#say(item, kind, i, text(part.text) ?? text(part.refusal));
      }
    });
    return whole;
  }

  #end(json: string, type: string): string {
    const isWhole = this.#items.length > 0 && this.#items.every(({ whole }) => whole !== undefined);
    const isRight = isWhole && !this.#hasOwnItems && OUTPUT.test(json);
    if (isRight && type !== 'done' && (type !== 'completed' || !UNFINISHED.test(json))) return json;
    const data = tryParse(json);
    const response = object(object(data)?.response);
    if (!isObject(data) || response === undefined) return json;
    const said = text(response.status) ?? '';
    const status = ENDED.has(said) ? said : type === 'done' ? 'completed' : type;
    if (status !== 'completed' && status !== 'incomplete') {
      return this.#rewritten(json, data, { type: 'response.failed' });
    }
    const output = objects(response.output);
    this.#finish(output);
    for (const item of status === 'completed' ? this.#items : []) {
      const said = item.whole === undefined ? saidOf(item) : undefined;
      if (said === undefined) continue;
      this.#insert(item, 'output_item.done', { item: this.#whole(item, said, false, 0) });
    }
    const isReplaced = output.length === 0 || this.#hasOwnItems;
    return this.#rewritten(json, data, {
      type: `response.${status}`,
      response: { ...response, status, ...(isReplaced && { output: this.#output }) },
    });
  }

  /** Items of which the end knows more than what came before it. */
  #finish(output: readonly JsonObject[]): void {
    const left = new Set(this.#items);
    const count = left.size;
    output.forEach((given, i) => {
      const same = (key: 'id' | 'type') =>
        [...left].find((item) => item[key] !== '' && item[key] === given[key]);
      const seen = same('id') ?? same('type');
      if (seen !== undefined) left.delete(seen);
      const isKnown = seen === undefined ? count >= output.length : seen.whole !== undefined;
      if (isKnown || this.#items.length >= MAX_ITEMS) return;
      const item = seen ?? this.#open(given, i);
      if (seen === undefined) this.#announce(item, given);
      const whole = this.#whole(item, given, false, 0);
      this.#insert(item, 'output_item.done', { item: whole });
    });
  }

  get #output(): readonly JsonObject[] {
    return this.#items.flatMap(({ whole }) => (whole === undefined ? [] : [whole]));
  }

  /** A relay that lost the last event still sends `[DONE]`: clients wait for the event. */
  #missingEnd(): readonly string[] {
    const isWhole = this.#isLastDone && this.#items.every(({ whole }) => whole !== undefined);
    this.#over = true;
    if (!isWhole) return ['[DONE]'];
    this.#note('response.completed');
    const response = { ...this.#response, status: 'completed', output: this.#output };
    return [JSON.stringify({ type: 'response.completed', response }), '[DONE]'];
  }

  /** The first fault of the stream. */
  #note(what: string): void {
    if (!this.#isNoted) this.notes.add('stream_mended', what);
    this.#isNoted = true;
  }

  #insert(item: Item, type: string, fields: JsonObject): void {
    const id = type.startsWith('output_item') ? {} : { item_id: item.id };
    this.#before.push({ type: `response.${type}`, ...id, output_index: item.index, ...fields });
  }

  /** The frame with these fields; the same text if it has them. */
  #rewritten(json: string, data: JsonObject, fields: JsonObject): string {
    const wrong = Object.keys(fields).filter((key) => !Bun.deepEquals(data[key], fields[key]));
    if (wrong.length === 0) return json;
    this.#note(wrong.join(' '));
    return JSON.stringify({ ...data, ...fields });
  }

  /** The frames with the sequence numbers that they have among those that were added. */
  #numbered(json: string): readonly string[] {
    const before = this.#before;
    if (before.length === 0 && this.#added === 0) return [json];
    const own = SEQUENCE.exec(json)?.[2];
    const first = own === undefined ? undefined : Number(own) + this.#added;
    this.#added += before.length;
    const frames = before.map((event, i) => {
      const { type, ...rest } = event;
      this.#note(text(type) ?? '');
      return JSON.stringify(
        first === undefined ? event : { type, sequence_number: first + i, ...rest },
      );
    });
    const last = first === undefined ? json : json.replace(SEQUENCE, `$1${first + before.length}`);
    return [...frames, last];
  }
}
