/** Groups messages that belong together: calls with their results, reasoning with the item after it. */

import type { ProtocolName } from '../../conversation/types.ts';
import { isObject, type Json, type JsonObject } from '../../lib/json/json.ts';
import { objects } from '../../lib/json/typed-reads.ts';

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

export const listOf = (value: Json | undefined): readonly Json[] =>
  Array.isArray(value) ? (value as readonly Json[]) : [];

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
  const groups = new Map<number, number[]>();
  unitOf.forEach((unit, i) => {
    const group = groups.get(unit);
    if (group === undefined) groups.set(unit, [i]);
    else group.push(i);
  });
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
