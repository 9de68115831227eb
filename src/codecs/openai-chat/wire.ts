/** Helpers for Chat Completions JSON: the protocol's name, wire values of nodes, and typed reads. */

import type { Wire } from '../../conversation/types.ts';
import { isObject, type Json, type JsonObject } from '../../lib/json/json.ts';
import { put } from '../../lib/json/json-members.ts';
import { prefixedId } from '../../lib/text/ids.ts';

export const PROTOCOL = 'openai-chat';

/** Tool names: `^[a-zA-Z0-9_-]{1,64}$`. */
export const NAME_LIMIT = 64;

/** A JSON value as the `wire` of a node. */
export const wireOf = (value: Json): Wire => ({ protocol: PROTOCOL, value });

interface WireNode {
  readonly wire?: Wire;
  readonly residue?: Wire;
}

/** The JSON of an unchanged node of this protocol, else undefined. */
export function ownWire(node: WireNode): Json | undefined {
  return node.wire?.protocol === PROTOCOL ? node.wire.value : undefined;
}

/** The JSON object that a node of this protocol was decoded from, edited or not; `{}` for other nodes. */
export function ownResidue(node: WireNode): JsonObject {
  const from = node.residue ?? node.wire;
  return from?.protocol === PROTOCOL && isObject(from.value) ? from.value : {};
}

/** Was the node decoded from this protocol, whether or not it was edited? */
export function isOwn(node: WireNode): boolean {
  return (node.wire ?? node.residue)?.protocol === PROTOCOL;
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

/** The object without these keys. */
export function without(value: JsonObject, keys: Iterable<string>): JsonObject {
  const copy: Record<string, Json | undefined> = { ...value };
  for (const key of keys) delete copy[key];
  return copy;
}

/** The object without undefined members, so that it equals what JSON would give back. */
export function compact(value: JsonObject): JsonObject {
  const copy: Record<string, Json> = {};
  // No list of pairs: every part of every reply comes by here.
  for (const key in value) {
    const member = value[key];
    if (member !== undefined) put(copy, key, member);
  }
  return copy;
}

/** An id for a call that has none: `call_…`. */
export const newCallId = (): string => prefixedId('call_');
