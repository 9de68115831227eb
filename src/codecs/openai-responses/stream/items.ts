/** The items of a Responses stream, as its events tell them: how they begin, and which text each event is about. */

import type { Json, JsonObject } from '../../../lib/json/json.ts';
import { memberOf } from '../../../lib/json/json-members.ts';
import { object, text } from '../wire.ts';

/** Texts of one item that follow each other. */
interface Parts {
  /** How many have begun. */
  count: number;
  /** The vendor says itself that one begins. */
  announces: boolean;
  /** The last one has had a delta. */
  said: boolean;
}

export interface Item {
  /** The client's `output_index`. */
  readonly index: number;
  /** The id that it began with: clients find the item by it. */
  readonly id: string;
  readonly type: string;
  readonly callId: string | undefined;
  readonly content: Parts;
  readonly summary: Parts;
  /** The item as it began, and what its events say of it as a whole: the parts of a message, the input of a call. */
  readonly source: JsonObject;
  readonly texts: JsonObject[];
  input?: string | undefined;
  /** The finished item. */
  whole?: JsonObject;
}

/** How the parts begin in which the deltas of a text stand, and which member of their events counts them. */
export interface PartKind {
  /** The name of the deltas. */
  readonly delta: string;
  readonly of: 'content' | 'summary';
  readonly begins: 'content_part.added' | 'reasoning_summary_part.added';
  readonly empty: JsonObject;
}

export const ITEM_EVENT =
  /^(output_item|content_part|output_text|refusal|reasoning\w*|function_call_arguments|custom_tool_call_input)\.([\w.]+)$/;
/** How ids of items begin, and an item that has only begun. */
export const BEGINNINGS: Readonly<
  Record<string, { readonly prefix: string; readonly empty: JsonObject }>
> = {
  message: { prefix: 'msg', empty: { content: [] } },
  reasoning: { prefix: 'rs', empty: { summary: [] } },
  function_call: { prefix: 'fc', empty: { arguments: '' } },
  custom_tool_call: { prefix: 'ctc', empty: { input: '' } },
};
export const PARTS: Readonly<Record<string, PartKind>> = {
  output_text: {
    delta: 'output_text',
    of: 'content',
    begins: 'content_part.added',
    empty: { type: 'output_text', text: '', annotations: [] },
  },
  refusal: {
    delta: 'refusal',
    of: 'content',
    begins: 'content_part.added',
    empty: { type: 'refusal', refusal: '' },
  },
  reasoning_text: {
    delta: 'reasoning_text',
    of: 'content',
    begins: 'content_part.added',
    empty: { type: 'reasoning_text', text: '' },
  },
  reasoning_summary_text: {
    delta: 'reasoning_summary_text',
    of: 'summary',
    begins: 'reasoning_summary_part.added',
    empty: { type: 'summary_text', text: '' },
  },
};
export const isCall = (type: string): boolean => /^(?:function_call|custom_tool_call)/.test(type);

/** The text that an event is about. */
export function kindOf(type: string, { part }: JsonObject): PartKind | undefined {
  const head = ITEM_EVENT.exec(type)?.[1] ?? '';
  if (head === 'reasoning_summary_part') return PARTS.reasoning_summary_text;
  const own = head === 'content_part' ? (text(object(part)?.type) ?? 'output_text') : head;
  return memberOf(PARTS, own);
}

/** The member that holds the text of a part. */
export const textOf = ({ delta }: PartKind): 'refusal' | 'text' =>
  delta === 'refusal' ? 'refusal' : 'text';

/** The type of the item that an event of this type belongs to. */
export function itemOf(type: string, { part }: JsonObject = {}): string {
  const call = /^(function_call|custom_tool_call)_/.exec(type)?.[1];
  if (call !== undefined) return call;
  const isThought = type.startsWith('reasoning') || object(part)?.type === 'reasoning_text';
  return isThought ? 'reasoning' : 'message';
}

/** An item of which only an event within it came. */
export function begun(type: string | undefined, id: string | undefined): JsonObject {
  const own = id === undefined ? {} : { id };
  return type === 'reasoning'
    ? { type, ...own, summary: [] }
    : { type: 'message', ...own, role: 'assistant', content: [] };
}

/** The members that a finished item lacks, as earlier events told them: its name, arguments, input or content. */
export function lackingIn(given: JsonObject, item: Item): JsonObject {
  const said: JsonObject = saidOf(item) ?? {};
  const isEmpty = (value: Json | undefined) =>
    value === undefined || value === null || value === '' || Bun.deepEquals(value, []);
  const lacking = ['name', 'arguments', 'input', 'content'].filter(
    (key) => isEmpty(given[key]) && !isEmpty(said[key]),
  );
  return Object.fromEntries(lacking.map((key) => [key, said[key]!]));
}

/** An item that its vendor never finished, as its events tell it; undefined: they do not. */
export function saidOf({ type, source, texts, input, content }: Item): JsonObject | undefined {
  const ended = { ...source, status: 'completed' };
  if (type === 'message') {
    const isTold = content.count > 0 && Object.keys(texts).length === content.count;
    return isTold ? { ...ended, content: texts } : undefined;
  }
  if (!isCall(type) || input === undefined) return undefined;
  return { ...ended, [type === 'function_call' ? 'arguments' : 'input']: input };
}
