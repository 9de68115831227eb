/** Reads calls written as JSON in the forms that models use, and recognises how such JSON begins. */

import { isObject, type Json, type JsonObject } from '../../../lib/json/json.ts';
import { parallelCalls, type RawCall } from '../build-calls.ts';

/**
 * The calls in a JSON value: one call, a list, `{"tool_calls": […]}` or `{"tool_uses": […]}`. Undefined if the
 * value is something else.
 */
export function callsInJson(value: Json | undefined, family: string): RawCall[] | undefined {
  if (Array.isArray(value)) {
    const all = (value as readonly Json[]).map((item) => oneCall(item, family));
    return all.length > 0 && all.every((call) => call !== undefined) ? all : undefined;
  }
  if (!isObject(value)) return undefined;
  if (Array.isArray(value.tool_calls)) return callsInJson(value.tool_calls as Json, family);
  const parallel = parallelCalls(value, family);
  if (parallel !== undefined) return [...parallel];
  const call = oneCall(value, family);
  return call === undefined ? undefined : [call];
}

const INPUTS = ['arguments', 'parameters', 'args', 'input'] as const;
const BESIDE = new Set([
  ...['id', 'type', 'name', 'call_id', 'index', 'status', 'tool', 'tool_name', 'tool_call_id'],
  ...INPUTS,
]);

function oneCall(value: Json, family: string): RawCall | undefined {
  if (!isObject(value)) return undefined;
  if (family === 'apertus') {
    const [name, input] = Object.entries(value)[0] ?? [];
    return { name, family, input: { type: 'value', value: input }, malformed: false };
  }
  const body: JsonObject = isObject(value.function) ? value.function : value;
  const name = body.name ?? value.tool ?? value.tool_name ?? value.function;
  if (typeof name !== 'string') return undefined;
  const key = INPUTS.find((each) => body[each] !== undefined);
  if (body === value && Object.keys(value).some((each) => !BESIDE.has(each))) {
    if (value.function === undefined) return undefined;
  }
  const input = key === undefined ? {} : body[key];
  return { name, family, input: { type: 'value', value: input }, malformed: false };
}

/** The beginning of JSON that may be a call or a result. `bare`: only at the start of the reply. */
export interface JsonOpening {
  readonly tokens: readonly string[];
  readonly kind: 'envelope' | 'bare' | 'result';
  /** A tool's name follows and decides. */
  readonly named?: true;
}

export const JSON_OPENINGS: readonly JsonOpening[] = [
  { tokens: ['{', '"tool_calls"', ':', '[', '{'], kind: 'envelope' },
  // The record of an executed tool, never a call.
  { tokens: ['{', '"version"', ':', '"rcc.tool.v1"'], kind: 'result' },
  { tokens: ['{', '"name"', ':', '"'], kind: 'bare', named: true },
  { tokens: ['[', '{', '"name"', ':', '"'], kind: 'bare', named: true },
  { tokens: ['{', '"type"', ':', '"function_call"'], kind: 'bare' },
  { tokens: ['{', '"type"', ':', '"function"'], kind: 'bare' },
  { tokens: ['{', '"function"', ':', '{', '"name"', ':', '"'], kind: 'bare', named: true },
  { tokens: ['{', '"tool_uses"', ':', '['], kind: 'bare' },
];

/** Maximum white space between two tokens of an opening. */
const GAP = 8;

/** The index after the opening's last token; -1 if it does not match; `partial` if more text is needed. */
export function matchOpening(
  text: string,
  at: number,
  { tokens }: JsonOpening,
): number | 'partial' {
  let i = at;
  for (const token of tokens) {
    const from = i;
    while (i - from < GAP && /\s/.test(text[i] ?? '')) i++;
    if (text.startsWith(token, i)) {
      i += token.length;
      continue;
    }
    return text.length - i < token.length && token.startsWith(text.slice(i)) ? 'partial' : -1;
  }
  return i;
}
