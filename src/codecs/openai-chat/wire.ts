/** The shapes of the Chat Completions wire that more than one codec file reads, and careful looks at them. */

import type { Wire } from '../../conversation/types.ts';
import { isObject, type Json, type JsonObject } from '../../lib/json/json.ts';
import { put } from '../../lib/json/json-members.ts';

export const CHAT = 'openai-chat';

/** Tool names: `^[a-zA-Z0-9_-]{1,64}$`. */
export const NAME_LIMIT = 64;

/** A node's wire: the JSON that it was decoded from. */
export const chatWire = (value: Json): Wire => ({ protocol: CHAT, value });

interface WireNode {
  readonly wire?: Wire;
  readonly residue?: Wire;
}

/** The JSON of an untouched node of this protocol. */
export function untouched(node: WireNode): Json | undefined {
  return node.wire?.protocol === CHAT ? node.wire.value : undefined;
}

/** The JSON object that an edited node of this protocol came from; `{}` for a node from elsewhere. */
export function leftover(node: WireNode): JsonObject {
  const from = node.residue ?? node.wire;
  return from?.protocol === CHAT && isObject(from.value) ? from.value : {};
}

/** Did the node come from this protocol, edited since or not? */
export function isOwn(node: WireNode): boolean {
  return (node.wire ?? node.residue)?.protocol === CHAT;
}

export const text = (value: unknown): string | undefined =>
  typeof value === 'string' ? value : undefined;

export const number = (value: unknown): number | undefined =>
  typeof value === 'number' ? value : undefined;

export const flag = (value: unknown): boolean | undefined =>
  typeof value === 'boolean' ? value : undefined;

export const object = (value: unknown): JsonObject | undefined =>
  isObject(value) ? value : undefined;

export const list = (value: unknown): readonly Json[] | undefined =>
  Array.isArray(value) ? (value as readonly Json[]) : undefined;

/** The object without some of its keys. */
export function without(value: JsonObject, keys: Iterable<string>): JsonObject {
  const copy: Record<string, Json | undefined> = { ...value };
  for (const key of keys) delete copy[key];
  return copy;
}

/** The object without keys whose value is undefined, so that deep comparisons see what goes out. */
export function compact(value: JsonObject): JsonObject {
  const copy: Record<string, Json> = {};
  // No list of pairs: every part of every reply comes by here.
  for (const key in value) {
    const member = value[key];
    if (member !== undefined) put(copy, key, member);
  }
  return copy;
}
