/**
 * Mends a Responses stream for clients of the same protocol. They put the answer together from its events, and lose or
 * refuse what has no index, no beginning, or is missing at the end: llama.cpp leaves out indexes and ids
 * (github.com/ggml-org/llama.cpp/issues/20607), vLLM counts parts wrong (github.com/vllm-project/vllm/issues/45742),
 * relays leave out parts and deltas (github.com/Wei-Shaw/sub2api/pull/4468,
 * github.com/Sophomoresty/gemini-web2api/pull/57), the output (github.com/QuantumNous/new-api/issues/4362) and the name
 * of the end (github.com/decolua/9router/pull/2142). A frame that is right stays the same text.
 */

import type { Notes } from '../../../conversation/notes.ts';
import { isObject, type JsonObject, tryParse } from '../../../lib/json/json.ts';
import { memberOf } from '../../../lib/json/json-members.ts';
import { number, object, objects, text } from '../wire.ts';

interface Item {
  /** The client's `output_index`. */
  readonly index: number;
  readonly id: string;
  readonly type: string;
  /** Parts of a message that have begun, and whether the vendor says so itself. */
  parts: number;
  announces: boolean;
  /** The last part, or the call, has had a delta. */
  said: boolean;
  /** The finished item. */
  whole?: JsonObject;
}

/** No answer has as many items, or as many characters in them. What follows goes on as it came. */
const MAX_ITEMS = 500;
const MAX_CHARS = 32 * 1024 * 1024;

const TYPE = /"type":\s*"(error|response\.[\w.]+)"/;
const INDEX = /"output_index":\s*(\d+)/;
const PART = /"content_index":\s*(\d+)/;
const SEQUENCE = /("sequence_number":\s*)(\d+)/;
const OUTPUT = /"output":\s*\[\s*\{/;
const UNFINISHED = /"status":\s*"(?:incomplete|failed|cancelled|in_progress)"/;
const ITEM_EVENT =
  /^(output_item|content_part|output_text|refusal|reasoning\w*|function_call_arguments|custom_tool_call_input)\.([\w.]+)$/;
/** How ids of items begin, and an item that has only begun. */
const BEGINNINGS: Readonly<
  Record<string, { readonly prefix: string; readonly empty: JsonObject }>
> = {
  message: { prefix: 'msg', empty: { content: [] } },
  reasoning: { prefix: 'rs', empty: { summary: [] } },
  function_call: { prefix: 'fc', empty: { arguments: '' } },
  custom_tool_call: { prefix: 'ctc', empty: { input: '' } },
};
const ENDED = new Set(['completed', 'incomplete', 'failed', 'cancelled']);

/** See `Codec.soundFrames`. */
export function soundFrames(notes: Notes): (json: string) => readonly string[] {
  const frames = new SoundFrames(notes);
  return (json) => frames.read(json);
}

class SoundFrames {
  readonly #notes: Notes;
  readonly #items: Item[] = [];
  /** By the vendor's own index and id. */
  readonly #byIndex = new Map<number, Item>();
  readonly #byId = new Map<string, Item>();
  /** `response.created`, which repeats the request: read only where it is needed. */
  #created = '';
  #responseRead: JsonObject | undefined;
  /** Characters of the frames that finished items. */
  #chars = 0;
  /** Events to come before the one that is read. */
  #before: JsonObject[] = [];
  /** How many events were added so far. */
  #added = 0;
  #isLastDone = false;
  #isNoted = false;
  /** A finished item is not as the vendor has it. */
  #hasOwnItems = false;
  #over = false;

  constructor(notes: Notes) {
    this.#notes = notes;
  }

  read(json: string): readonly string[] {
    if (this.#over) return [json];
    const isFull = this.#items.length >= MAX_ITEMS || this.#chars > MAX_CHARS;
    if (json === '[DONE]') return isFull ? [json] : this.#missingEnd();
    const name = TYPE.exec(json)?.[1] ?? '';
    const type = name.slice('response.'.length);
    this.#before = [];
    const sound = isFull ? json : this.#sound(json, type);
    this.#isLastDone = type === 'output_item.done';
    return this.#numbered(sound);
  }

  #sound(json: string, type: string): string {
    switch (type) {
      case 'created':
        this.#created = json;
        this.#responseRead = undefined;
        return json;
      case 'completed':
      case 'incomplete':
      case 'failed':
      case 'done':
        this.#over = true;
        return this.#end(json, type);
      default:
        return ITEM_EVENT.test(type) && !this.#isSoundDelta(json, type)
          ? this.#itemEvent(json, type)
          : json;
    }
  }

  /** Most frames are deltas of what is open, and are not parsed. */
  #isSoundDelta(json: string, type: string): boolean {
    if (!type.endsWith('.delta')) return false;
    const index = INDEX.exec(json)?.[1];
    const item = index === undefined ? undefined : this.#byIndex.get(Number(index));
    if (item === undefined || item.index !== Number(index)) return false;
    if (item.type === 'message' && Number(PART.exec(json)?.[1] ?? item.parts) >= item.parts) {
      return false;
    }
    item.said = true;
    return true;
  }

  #itemEvent(json: string, type: string): string {
    const data = tryParse(json);
    if (!isObject(data)) return json;
    const index = number(data.output_index);
    const whole = type.startsWith('output_item.') ? (object(data.item) ?? {}) : undefined;
    const isAdded = type === 'output_item.added';
    const known = isAdded ? undefined : this.#find(data, index, whole);
    // A call cannot begin without its name, and what is done stays done.
    if (
      known?.whole !== undefined ||
      (known === undefined && whole === undefined && isCall(type))
    ) {
      return json;
    }
    const source = whole ?? begun(type, text(data.item_id));
    const item = known ?? this.#open(source, index);
    if (known === undefined && !isAdded) this.#announce(item, source);
    const fields =
      whole === undefined
        ? this.#within(item, data, type)
        : this.#whole(item, whole, isAdded, json.length);
    return this.#rewritten(json, data, { output_index: item.index, ...fields });
  }

  #find(data: JsonObject, index: number | undefined, whole: JsonObject | undefined) {
    const id = text(data.item_id) ?? text(whole?.id);
    const byId = id === undefined ? undefined : this.#byId.get(id);
    if (index !== undefined) return this.#byIndex.get(index) ?? byId;
    const type = text(whole?.type);
    return (
      byId ??
      this.#items.findLast((item) => !item.whole && (type === undefined || item.type === type))
    );
  }

  #open(source: JsonObject, index: number | undefined): Item {
    const type = text(source.type) ?? '';
    const own = this.#items.length;
    const given = text(source.id) ?? '';
    const item: Item = {
      index:
        index === undefined || this.#items.some((other) => other.index === index) ? own : index,
      id: given === '' ? this.#madeId(type, own) : given,
      type,
      parts: 0,
      announces: false,
      said: false,
    };
    this.#items.push(item);
    this.#byIndex.set(index ?? item.index, item);
    if (given !== '') this.#byId.set(given, item);
    return item;
  }

  #madeId(type: string, index: number): string {
    const prefix = memberOf(BEGINNINGS, type)?.prefix;
    return prefix === undefined ? '' : `${prefix}_${text(this.#response.id) ?? ''}_${index}`;
  }

  get #response(): JsonObject {
    this.#responseRead ??= object(object(tryParse(this.#created))?.response) ?? {};
    return this.#responseRead;
  }

  #announce(item: Item, source: JsonObject): void {
    const empty = memberOf(BEGINNINGS, item.type)?.empty;
    const begun = { ...source, ...identified(item), status: 'in_progress', ...empty };
    this.#insert(item, 'output_item.added', { item: begun });
  }

  /** The fields of an event within an item that have to be other ones. */
  #within(item: Item, data: JsonObject, type: string): JsonObject {
    const fields = item.id === '' || text(data.item_id) ? {} : { item_id: item.id };
    if (item.type !== 'message') {
      if (type.endsWith('.delta')) item.said = true;
      return fields;
    }
    const given = number(data.content_index);
    let part = given ?? Math.max(0, item.parts - (type === 'content_part.added' ? 0 : 1));
    if (type === 'content_part.added') {
      item.announces = true;
      this.#begins(item, part);
    } else if (part >= item.parts) {
      if (item.announces) part = item.parts - 1;
      else this.#beginPart(item, part, type.startsWith('refusal') ? 'refusal' : 'output_text');
    }
    if (type.endsWith('.delta')) item.said = true;
    const kind = type.startsWith('refusal') ? 'refusal' : 'output_text';
    if (type.endsWith('.done')) this.#say(item, part, text(data.text) ?? text(data.refusal), kind);
    return { ...fields, content_index: part };
  }

  #begins(item: Item, part: number): void {
    item.parts = Math.max(item.parts, part + 1);
    item.said = false;
  }

  #beginPart(item: Item, part: number, kind: 'output_text' | 'refusal'): void {
    this.#begins(item, part);
    const empty = kind === 'refusal' ? { refusal: '' } : { text: '', annotations: [] };
    this.#insert(item, 'content_part.added', {
      content_index: part,
      part: { type: kind, ...empty },
    });
  }

  /** A text of which no delta came. */
  #say(item: Item, part: number, whole: string | undefined, kind: string): void {
    if (item.said || whole === undefined || whole === '') return;
    item.said = true;
    this.#insert(item, `${kind}.delta`, { content_index: part, delta: whole });
  }

  /** @param size characters of the frame */
  #whole(item: Item, given: JsonObject, isAdded: boolean, size: number): JsonObject {
    // Those of a tool search are an object.
    const input = isCall(item.type) ? object(given.arguments) : undefined;
    const whole: JsonObject = {
      ...given,
      ...(text(given.id) ? {} : identified(item)),
      ...(input && { arguments: JSON.stringify(input) }),
      ...(isCall(item.type) && given.call_id === undefined ? { call_id: item.id } : {}),
    };
    if (isAdded) return { item: whole };
    item.whole = whole;
    this.#chars += size;
    this.#hasOwnItems ||= input !== undefined || whole.call_id !== given.call_id;
    if (item.type !== 'message') return { item: whole };
    objects(whole.content).forEach((part, i) => {
      const kind = part.type === 'refusal' ? 'refusal' : 'output_text';
      if (i >= item.parts) this.#beginPart(item, i, kind);
      if (i === item.parts - 1) this.#say(item, i, text(part.text) ?? text(part.refusal), kind);
    });
    return { item: whole };
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
    const count = this.#items.length;
    output.forEach((item, i) => {
      const seen = this.#byIndex.get(i) ?? this.#byId.get(text(item.id) ?? '');
      if (seen?.whole !== undefined || (seen === undefined && count >= output.length)) return;
      const done = { type: 'response.output_item.done', output_index: i, item };
      const last = this.#itemEvent(JSON.stringify(done), 'output_item.done');
      this.#before.push(JSON.parse(last) as JsonObject);
    });
    const isReplaced = output.length === 0 || this.#hasOwnItems;
    return this.#rewritten(json, data, {
      type: `response.${status}`,
      response: { ...response, status, ...(isReplaced && { output: this.#output }) },
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
    if (!this.#isNoted) this.#notes.add('stream_mended', what);
    this.#isNoted = true;
  }

  #insert(item: Item, type: string, fields: JsonObject): void {
    const id = type.startsWith('output_item') || item.id === '' ? {} : { item_id: item.id };
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

const identified = ({ id }: Item): JsonObject => (id === '' ? {} : { id });

const isCall = (type: string): boolean => /^(?:function_call|custom_tool_call)/.test(type);

/** The item that an event of this type belongs to. */
function begun(type: string, id: string | undefined): JsonObject {
  const own = id === undefined ? {} : { id };
  return type.startsWith('reasoning')
    ? { type: 'reasoning', ...own, summary: [] }
    : { type: 'message', ...own, role: 'assistant', content: [] };
}
