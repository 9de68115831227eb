/** Finds the cause of a failure: what the minimal failing request holds and the nearest passing one lacks. */

import type { ProtocolName } from '../../conversation/types.ts';
import { isObject, type Json, type JsonObject, tryParse } from '../../lib/json/json.ts';
import { dotted, partsOf, pointerOf, valueAt } from '../../lib/json/pointer.ts';
import { listOf } from '../../lib/json/typed-reads.ts';
import { type Cut, isGone } from './cut.ts';
import type { BisectCause } from './types.ts';
import { sizeOf } from './units.ts';

export interface CauseFinding {
  readonly cause: BisectCause;
  readonly passing: Cut;
  /** Other places without which the request passes. */
  readonly also: readonly string[];
}

interface Lead {
  readonly passing: Cut;
  /** The deepest place where the two differ. */
  readonly at: string;
  /** Bytes that only the minimal one has. */
  readonly missing: number;
}

/** The best explanation among all passing candidates; undefined when there is none. */
export function findCause(
  body: JsonObject,
  minimal: Cut,
  passing: readonly Cut[],
): CauseFinding | undefined {
  const leads = passing.flatMap((cut) => leadOf(body, minimal, cut) ?? []);
  // An inner place says more than the place around it.
  const telling = leads.filter(
    ({ at }) => !leads.some((lead) => lead.at !== at && lead.at.startsWith(`${at}/`)),
  );
  const bytesAt = (at: string) => sizeNow(body, minimal, at);
  const best = telling.toSorted((a, b) => bytesAt(b.at) - bytesAt(a.at))[0];
  if (best === undefined) return undefined;
  const same = telling.filter(({ at }) => at === best.at);
  const nearest = same.toSorted((a, b) => a.missing - b.missing)[0]!;
  const value = valueAt(body, best.at);
  return {
    cause: {
      at: best.at,
      in_minimal: movedPointer(best.at, minimal),
      bytes: valueBytes(value),
      enough: bytesAt(best.at),
    },
    passing: nearest.passing,
    also: [...new Set(telling.map(({ at }) => at))].filter((at) => at !== best.at),
  };
}

/** The bytes of a text, or of the JSON of any other value. */
export const valueBytes = (value: Json | undefined): number =>
  typeof value === 'string' ? Buffer.byteLength(value) : sizeOf(value);

const sizeNow = (body: JsonObject, cut: Cut, at: string) =>
  valueBytes(cut.values.get(at) ?? valueAt(body, at));

function leadOf(body: JsonObject, minimal: Cut, passing: Cut): Lead | undefined {
  const missing: { readonly at: string; readonly bytes: number }[] = [];
  for (const at of passing.gone) {
    if (!isGone(minimal, at)) missing.push({ at, bytes: sizeNow(body, minimal, at) });
  }
  for (const [at, value] of passing.values) {
    if (isGone(minimal, at) || isGone(passing, at)) continue;
    const less = sizeNow(body, minimal, at) - valueBytes(value);
    if (less > 0) missing.push({ at, bytes: less });
  }
  const largest = missing.toSorted((a, b) => b.bytes - a.bytes)[0];
  if (largest === undefined) return undefined;
  const bytes = missing.reduce((sum, one) => sum + one.bytes, 0);
  return { passing, at: focus(body, minimal, largest.at), missing: bytes };
}

/** Descends to the member that makes up nearly all of a value. */
function focus(body: JsonObject, cut: Cut, at: string): string {
  const value = valueAt(body, at);
  if (cut.values.has(at) || typeof value !== 'object' || value === null) return at;
  const keys = isObject(value) ? Object.keys(value) : Object.keys(listOf(value as Json));
  const whole = sizeOf(value as Json);
  for (const key of keys) {
    const inner = at + pointerOf([key]);
    if (!isGone(cut, inner) && sizeOf(valueAt(body, inner)) > 0.8 * whole)
      return focus(body, cut, inner);
  }
  return at;
}

/** The pointer in the cut request for a pointer into the whole request. */
export function movedPointer(pointer: string, cut: Cut): string {
  let at = '';
  let to = '';
  for (const part of partsOf(pointer)) {
    let now = part;
    if (/^\d+$/.test(part)) {
      let before = 0;
      for (let i = 0; i < Number(part); i++) if (cut.gone.has(`${at}/${i}`)) before++;
      now = String(Number(part) - before);
    }
    at += pointerOf([part]);
    to += pointerOf([now]);
  }
  return to;
}

/** A place described in words: `the last tool result`. */
export function describePlace(body: JsonObject, protocol: ProtocolName, at: string): string {
  const [root, index, ...rest] = partsOf(at);
  if (root === 'tools') return `the tool ${toolName(valueAt(body, `/tools/${index}`))}`;
  if (root !== 'messages' && root !== 'input' && root !== 'contents') return `the field ${root}`;
  const list = listOf(body[root]);
  if (index === undefined) return root === 'input' ? 'the input' : 'the messages';
  const kind = kindOf(list[Number(index)]!, rest);
  const same = list.map((message) => kindOf(message, kindless(message, rest)));
  const last = same.lastIndexOf(kind) === Number(index);
  const only = same.filter((one) => one === kind).length === 1;
  const place = only ? 'the' : last ? 'the last' : 'a';
  return protocol === 'openai-responses' && kind === 'item'
    ? `${place} input item`
    : `${place} ${kind}`;
}

/** The same place in another message, as far as it exists. */
const kindless = (message: Json, rest: readonly string[]) =>
  isObject(message) && Array.isArray(message.content) ? rest : [];

function kindOf(message: Json, rest: readonly string[]): string {
  if (!isObject(message)) return 'message';
  const block = rest[0] === 'content' ? listOf(message.content)[Number(rest[1] ?? 0)] : undefined;
  const type = isObject(block) ? String(block.type) : '';
  if (
    message.role === 'tool' ||
    String(message.type).endsWith('_output') ||
    type.endsWith('tool_result')
  ) {
    return 'tool result';
  }
  if (
    rest[0] === 'tool_calls' ||
    type.endsWith('tool_use') ||
    /_call$/.test(String(message.type))
  ) {
    return 'tool call';
  }
  if (/image/.test(type)) return 'image';
  if (/thinking|reasoning/.test(`${type}${message.type}${rest[0]}`)) return 'reasoning';
  return typeof message.role === 'string' ? `${message.role} message` : 'item';
}

const toolName = (tool: Json | undefined): string => {
  const inner = isObject(tool) && isObject(tool.function) ? tool.function : tool;
  return isObject(inner) ? String(inner.name ?? inner.type) : '';
};

/** `41 KB`, `312 bytes`. */
function size(bytes: number): string {
  if (bytes < 1000) return `${bytes} byte${bytes === 1 ? '' : 's'}`;
  if (bytes < 1_000_000) return `${trim(bytes / 1000)} KB`;
  return `${trim(bytes / 1_000_000)} MB`;
}

const trim = (value: number) =>
  value < 10 ? value.toFixed(1).replace(/\.0$/, '') : String(Math.round(value));

function contentKind(value: Json | undefined): string {
  if (typeof value !== 'string') return 'JSON';
  if (/^data:image\//.test(value)) return 'image';
  const parsed = /^\s*[[{]/.test(value) ? tryParse(value) : undefined;
  return parsed === undefined ? 'text' : 'JSON';
}

/** `the last tool result: 41 KB JSON at messages[17].content`, with the bytes that are enough and other places. */
export function causeText(
  body: JsonObject,
  protocol: ProtocolName,
  { cause, also }: CauseFinding,
): string {
  const { at, bytes, enough } = cause;
  const what = `${describePlace(body, protocol, at)}: ${size(bytes)} ${contentKind(valueAt(body, at))} at ${dotted(at)}`;
  const part = enough < bytes ? `; ${size(enough)} of it are enough` : '';
  const more = also.filter((pointer) => !pointer.startsWith(at)).map(dotted);
  return `${what}${part}${more.length > 0 ? `; only together with ${more.join(', ')}` : ''}`;
}
