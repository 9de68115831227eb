/** Parts of a request that can be left out besides whole messages: tools, blocks, fields. */

import type { ProtocolName } from '../../conversation/types.ts';
import { isObject, type Json, type JsonObject } from '../../lib/json/json.ts';
import { objects } from '../../lib/json/typed-reads.ts';
import { type Cut, isGone } from './cut.ts';
import { type CutUnit, callsOf, historyKey, listOf, sizeOf } from './message-units.ts';

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

const KEPT = new Set([
  'role',
  'content',
  'type',
  'id',
  'call_id',
  'tool_calls',
  'tool_call_id',
  'name',
  'arguments',
  'output',
  'input',
  'status',
]);

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
