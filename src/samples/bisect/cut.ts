/** A candidate as a difference to the whole request: what is left out, and what replaces long values. */

import { isObject, type Json, type JsonObject } from '../../lib/json/json.ts';
import { put } from '../../lib/json/json-members.ts';
import { pointerOf } from '../../lib/json/pointer.ts';

/** JSON pointers into the whole request. */
export interface Cut {
  readonly gone: ReadonlySet<string>;
  readonly values: ReadonlyMap<string, Json>;
}

export const NOTHING_CUT: Cut = { gone: new Set(), values: new Map() };

export const leaveOut = (cut: Cut, pointers: Iterable<string>): Cut => ({
  gone: new Set([...cut.gone, ...pointers]),
  values: cut.values,
});

export const replace = (cut: Cut, pointer: string, value: Json): Cut => ({
  gone: cut.gone,
  values: new Map([...cut.values, [pointer, value]]),
});

/** Whether this place, or one around it, is left out. */
export function isGone(cut: Cut, pointer: string): boolean {
  for (let at = pointer; at !== ''; at = at.slice(0, at.lastIndexOf('/'))) {
    if (cut.gone.has(at)) return true;
  }
  return false;
}

/** The candidate as a request. A message whose parts are all left out is left out as well. */
export function applyCut(body: JsonObject, cut: Cut): JsonObject {
  if (cut.gone.size === 0 && cut.values.size === 0) return body;
  return tidy(rebuilt(body, '', cut) as JsonObject);
}

function rebuilt(value: Json, at: string, cut: Cut): Json | undefined {
  if (cut.gone.has(at)) return undefined;
  const other = cut.values.get(at);
  if (other !== undefined) return other;
  if (Array.isArray(value)) {
    return value
      .map((item, i) => rebuilt(item, `${at}/${i}`, cut))
      .filter((item) => item !== undefined);
  }
  if (!isObject(value)) return value;
  const out: Record<string, Json> = {};
  for (const [key, member] of Object.entries(value)) {
    const kept = member === undefined ? undefined : rebuilt(member, at + pointerOf([key]), cut);
    if (kept !== undefined) put(out, key, kept);
  }
  return out;
}

const TOOL_FIELDS = ['tools', 'tool_choice', 'parallel_tool_calls', 'toolConfig', 'tool_config'];

/** A tool of Google's API without functions, and without a tool of the vendor. */
const declaresNothing = (tool: Json): boolean =>
  isObject(tool) &&
  Object.values(tool).length === 1 &&
  [tool.functionDeclarations, tool.function_declarations].some(
    (declared) => Array.isArray(declared) && declared.length === 0,
  );

/** Leaves out members that no vendor accepts without their counterpart. */
function tidy(body: JsonObject): JsonObject {
  const { tool_choice: choice } = body;
  const tools = Array.isArray(body.tools)
    ? body.tools.filter((tool) => !declaresNothing(tool))
    : body.tools;
  const without = new Set<string>();
  if (Array.isArray(tools) && tools.length === 0) {
    for (const key of TOOL_FIELDS) without.add(key);
  } else if (isObject(choice)) {
    const name = choice.name ?? (isObject(choice.function) ? choice.function.name : undefined);
    const known = JSON.stringify(tools ?? []).includes(JSON.stringify(name ?? null));
    if (name !== undefined && !known) without.add('tool_choice');
  }
  const kept = Object.entries({ ...body, ...(tools !== undefined && { tools }) }).filter(
    ([key]) => !without.has(key),
  );
  return messagesTidied(Object.fromEntries(kept));
}

function messagesTidied(body: JsonObject): JsonObject {
  const { messages } = body;
  if (!Array.isArray(messages)) return body;
  const kept = (messages as readonly Json[]).map(callsTidied).filter((message) => {
    if (!isObject(message)) return true;
    const { content, tool_calls: calls } = message;
    return !(Array.isArray(content) && content.length === 0 && calls === undefined);
  });
  return { ...body, messages: kept };
}

function callsTidied(message: Json): Json {
  if (!isObject(message) || !Array.isArray(message.tool_calls)) return message;
  if (message.tool_calls.length > 0) return message;
  const { tool_calls: _, ...rest } = message;
  return rest.content === undefined || rest.content === null ? { ...rest, content: '' } : rest;
}
