/** Parts of a request that can be left out: messages that belong together, tools, blocks, fields, members of schemas, long texts. */

import type { ProtocolName } from '../../conversation/types.ts';
import { isObject, type Json, type JsonObject } from '../../lib/json/json.ts';
import { pointerOf } from '../../lib/json/pointer.ts';
import { listOf, objects } from '../../lib/json/typed-reads.ts';
import { wordSet } from '../../lib/text/words.ts';
import { type Cut, isGone } from './cut.ts';

/** Places that can only be left out together. */
export interface CutUnit {
  readonly pointers: readonly string[];
  readonly bytes: number;
}

/** Messages by their indexes, in order. */
export interface MessageUnit extends CutUnit {
  readonly indexes: readonly number[];
  /** A plain user message: every request needs one. */
  readonly user: boolean;
  /** Instructions: they may come before the first user message. */
  readonly system: boolean;
}

/** The member that holds the history. */
export const historyKey = (protocol: ProtocolName): string => HISTORY_KEYS[protocol];

const HISTORY_KEYS: Readonly<Record<ProtocolName, string>> = {
  'openai-chat': 'messages',
  'openai-responses': 'input',
  'anthropic-messages': 'messages',
  'google-gemini': 'contents',
};

export const sizeOf = (value: Json | undefined): number =>
  value === undefined ? 0 : Buffer.byteLength(JSON.stringify(value));

/** Ids of the calls that a message makes, and of the calls whose results it holds. */
export function callsOf(message: Json): { readonly made: string[]; readonly answered: string[] } {
  const made: string[] = [];
  const answered: string[] = [];
  if (!isObject(message)) return { made, answered };
  for (const call of objects(message.tool_calls)) made.push(String(call.id));
  if (typeof message.tool_call_id === 'string') answered.push(message.tool_call_id);
  if (typeof message.call_id === 'string') {
    (String(message.type).endsWith('_output') ? answered : made).push(message.call_id);
  }
  for (const block of objects(message.content)) {
    if (typeof block.tool_use_id === 'string') answered.push(block.tool_use_id);
    else if (String(block.type).endsWith('tool_use')) made.push(String(block.id));
  }
  return { made, answered };
}

/** The history in units, ordered by their first message. A history that is a single text has none. */
export function messageUnits(body: JsonObject, protocol: ProtocolName): readonly MessageUnit[] {
  const key = historyKey(protocol);
  const messages = listOf(body[key]);
  const unitOf = messages.map((_, i) => i);
  const join = (a: number, b: number) => {
    const [from, to] = [unitOf[Math.max(a, b)]!, unitOf[Math.min(a, b)]!];
    if (from === to) return;
    unitOf.forEach((unit, i) => {
      if (unit === from) unitOf[i] = to;
    });
  };
  const callers = new Map<string, number>();
  messages.forEach((message, i) => {
    const { made, answered } = callsOf(message);
    for (const id of answered) {
      const caller = callers.get(id);
      if (caller !== undefined) join(caller, i);
    }
    for (const id of made) callers.set(id, i);
    // Vendors refuse reasoning without the item after it.
    const before = messages[i - 1];
    if (isObject(before) && before.type === 'reasoning') join(i - 1, i);
  });
  const groups = Map.groupBy(messages.keys(), (i) => unitOf[i]);
  return [...groups.values()].map((indexes) => ({
    indexes,
    pointers: indexes.map((i) => `/${key}/${i}`),
    bytes: indexes.reduce((sum, i) => sum + sizeOf(messages[i]), 0),
    user: indexes.length === 1 && isPlainUser(messages[indexes[0]!]!),
    system: isSystem(messages[indexes[0]!]!),
  }));
}

function isPlainUser(message: Json): boolean {
  if (!isObject(message) || message.role !== 'user') return false;
  const { made, answered } = callsOf(message);
  return made.length === 0 && answered.length === 0;
}

const isSystem = (message: Json) =>
  isObject(message) && (message.role === 'system' || message.role === 'developer');

/**
 * The kept units with what a vendor needs besides: a history must begin with a user message, so without
 * one the smallest is kept as well.
 */
export function withUser(
  kept: readonly MessageUnit[],
  all: readonly MessageUnit[],
): readonly MessageUnit[] {
  const first = kept.find(({ system }) => !system);
  if (first?.user === true) return kept;
  const before = all.filter(
    ({ user, indexes }) => user && (first === undefined || indexes[0]! < first.indexes[0]!),
  );
  const users = before.length > 0 ? before : all.filter(({ user }) => user);
  if (before.length === 0 && kept.some(({ user }) => user)) return kept;
  const smallest = users.toSorted((a, b) => a.bytes - b.bytes)[0];
  if (smallest === undefined || kept.includes(smallest)) return kept;
  return all.filter((unit) => unit === smallest || kept.includes(unit));
}

const REQUIRED = new Set(['model', 'messages', 'input', 'contents', 'stream', 'tools']);

/** Members of the request that a vendor can do without. */
export function fieldUnits(body: JsonObject, protocol: ProtocolName): readonly CutUnit[] {
  return Object.entries(body)
    .filter(([key]) => !REQUIRED.has(key))
    .filter(([key]) => protocol !== 'anthropic-messages' || key !== 'max_tokens')
    .map(([key, value]) => ({ pointers: [`/${key}`], bytes: sizeOf(value) }));
}

/** Tools, one by one; Google declares many functions in one. */
export function toolUnits(body: JsonObject): readonly CutUnit[] {
  return listOf(body.tools).flatMap((tool, i) => {
    const whole = { pointers: [`/tools/${i}`], bytes: sizeOf(tool) };
    const member = ['functionDeclarations', 'function_declarations'].find(
      (key) => isObject(tool) && Array.isArray(tool[key]),
    );
    if (member === undefined) return [whole];
    return listOf((tool as JsonObject)[member]).map((declared, j) => ({
      pointers: [`/tools/${i}/${member}/${j}`],
      bytes: sizeOf(declared),
    }));
  });
}

/** Vendors of Messages need declared tools where the history holds calls. */
export function needsTool(body: JsonObject, cut: Cut, protocol: ProtocolName): boolean {
  if (protocol !== 'anthropic-messages') return false;
  return listOf(body.messages).some((message, i) => {
    if (isGone(cut, `/messages/${i}`)) return false;
    const { made, answered } = callsOf(message);
    return made.length + answered.length > 0;
  });
}

/** Remaining parts of messages: content parts, and single calls with their results. */
export function blockUnits(body: JsonObject, cut: Cut, protocol: ProtocolName): readonly CutUnit[] {
  const key = historyKey(protocol);
  const places: { readonly at: string; readonly call: string | undefined; readonly value: Json }[] =
    [];
  listOf(body[key]).forEach((message, i) => {
    const at = `/${key}/${i}`;
    if (isGone(cut, at) || !isObject(message)) return;
    for (const member of ['content', 'parts', 'tool_calls', 'output', 'summary']) {
      listOf(message[member]).forEach((value, j) => {
        places.push({ at: `${at}/${member}/${j}`, call: callOf(value, member), value });
      });
    }
    if (typeof message.tool_call_id === 'string') {
      places.push({ at, call: message.tool_call_id, value: message });
    }
  });
  const units = new Map<string, { pointers: string[]; bytes: number }>();
  for (const { at, call, value } of places) {
    if (isGone(cut, at)) continue;
    const name = call ?? at;
    const unit = units.get(name) ?? { pointers: [], bytes: 0 };
    unit.pointers.push(at);
    unit.bytes += sizeOf(value);
    units.set(name, unit);
  }
  return [...units.values()];
}

function callOf(block: Json, member: string): string | undefined {
  if (!isObject(block)) return undefined;
  if (member === 'tool_calls') return String(block.id);
  if (typeof block.tool_use_id === 'string') return block.tool_use_id;
  return String(block.type).endsWith('tool_use') ? String(block.id) : undefined;
}

const KEPT = wordSet(`
  role content type id call_id tool_calls tool_call_id name arguments output input status
`);

/** Optional members of messages and their parts: cache marks, reasoning, vendor fields. */
export function extraUnits(body: JsonObject, cut: Cut, protocol: ProtocolName): readonly CutUnit[] {
  const key = historyKey(protocol);
  const units: CutUnit[] = [];
  const extras = (value: JsonObject, at: string) => {
    if (isGone(cut, at)) return;
    for (const [name, member] of Object.entries(value)) {
      if (!KEPT.has(name) && !(value.type !== undefined && isBody(name))) {
        units.push({ pointers: [`${at}/${name}`], bytes: sizeOf(member) });
      }
    }
  };
  listOf(body[key]).forEach((message, i) => {
    if (!isObject(message)) return;
    extras(message, `/${key}/${i}`);
    objects(message.content).forEach((block, j) => {
      extras(block, `/${key}/${i}/content/${j}`);
    });
  });
  return units;
}

/** Members that a content part of some type cannot do without. */
const isBody = (name: string) =>
  /^(text|source|image_url|input_audio|file|tool_use_id|thinking|signature|data|summary|encrypted_content|file_id|file_data|filename|detail|action|refusal)$/.test(
    name,
  );

/** Members without which a tool, a format or an object schema is none. */
const FIXED = wordSet(`
  type name function functionDeclarations function_declarations parameters parametersJsonSchema
  parameters_json_schema input_schema properties schema json_schema format role content parts
  text
`);
/** Members that hold schemas by names, which nothing but the schema itself needs. */
const NAMED = new Set(['properties', 'patternProperties', '$defs', 'definitions']);

export interface MemberLevel {
  readonly units: readonly CutUnit[];
  /** Nothing is below. */
  readonly isDeepest: boolean;
}

/** The removable members at this depth below each remaining field, except the history. */
export function memberUnits(
  body: JsonObject,
  cut: Cut,
  protocol: ProtocolName,
  depth: number,
): MemberLevel {
  const units: CutUnit[] = [];
  let isDeepest = true;
  const walk = (value: Json, path: readonly (string | number)[], required: readonly Json[]) => {
    const at = pointerOf(path);
    if (typeof value !== 'object' || value === null || isGone(cut, at) || cut.values.has(at)) {
      return;
    }
    const name = String(path.at(-1));
    // A tool as a whole has had its turn.
    const isTools = path.length === 1 && name === 'tools';
    const isNamed = NAMED.has(name);
    const isLevel = path.length === depth + 1;
    for (const [key, member] of Object.entries(value as Readonly<Record<string, Json>>)) {
      const inside = [...path, key];
      if (!isLevel) {
        const own = isObject(value) ? listOf(value.required) : [];
        walk(member, inside, NAMED.has(key) ? own : []);
        continue;
      }
      isDeepest = false;
      if (isTools || (!isNamed && FIXED.has(key))) continue;
      const pointers = [pointerOf(inside)];
      // A property that is gone cannot be required.
      const index = name === 'properties' ? required.indexOf(key) : -1;
      if (index >= 0) pointers.push(pointerOf([...path.slice(0, -1), 'required', index]));
      units.push({ pointers, bytes: sizeOf(member) });
    }
  };
  for (const [key, value] of Object.entries(body)) {
    if (key !== historyKey(protocol) && value !== undefined) walk(value, [key], []);
  }
  return { units, isDeepest };
}

export interface LongText {
  readonly pointer: string;
  readonly value: string | JsonObject;
  readonly bytes: number;
  /** A short value that is valid in the same place. */
  readonly stub: Json;
}

/** Shorter texts explain nothing and would cost a request. */
const MIN = 80;

const TEXTS = wordSet(`
  content text output thinking reasoning_content description instructions system
`);
const HISTORY_ROOTS = new Set(['messages', 'input', 'system', 'instructions', 'tools']);

/** Remaining long texts and arguments, the longest first. */
export function longTexts(body: JsonObject, cut: Cut, protocol: ProtocolName): readonly LongText[] {
  const places: LongText[] = [];
  const walk = (whole: Json, path: readonly (string | number)[]) => {
    const pointer = pointerOf(path);
    if (isGone(cut, pointer)) return;
    const value = cut.values.get(pointer) ?? whole;
    const stub = stubFor(String(path.at(-1)), value, path.length);
    if (stub !== undefined) {
      const bytes = sizeOf(value);
      if (bytes > MIN) places.push({ pointer, value: value as string, bytes, stub });
    } else if (Array.isArray(value)) {
      for (const [i, item] of value.entries()) walk(item, [...path, i]);
    } else if (isObject(value)) {
      for (const [name, member] of Object.entries(value)) {
        if (member !== undefined && (path.length > 0 || HISTORY_ROOTS.has(name))) {
          walk(member, [...path, name]);
        }
      }
    }
  };
  walk(body, []);
  const history = `/${historyKey(protocol)}/`;
  const rank = ({ pointer, bytes }: LongText) => bytes + (pointer.startsWith(history) ? 0.5 : 0);
  return places.toSorted((a, b) => rank(b) - rank(a));
}

function stubFor(key: string, value: Json, depth: number): Json | undefined {
  if (typeof value === 'string') {
    if (key === 'arguments') return '{}';
    if (TEXTS.has(key) || (key === 'input' && depth !== 2)) return 'ok';
    return undefined;
  }
  // Arguments of a Messages call.
  return key === 'input' && depth > 2 && isObject(value) ? {} : undefined;
}

/** The first and the second half; surrogate pairs are not split. */
export function halves(text: string): readonly [string, string] {
  let middle = text.length >> 1;
  const code = text.charCodeAt(middle - 1);
  if (code >= 0xd800 && code <= 0xdbff) middle++;
  return [text.slice(0, middle), text.slice(middle)];
}
