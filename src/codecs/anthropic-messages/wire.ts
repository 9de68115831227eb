/** The Messages wire: its name, its values as nodes keep them, and the small objects that recur on it. */

import type { CacheMark, Wire } from '../../conversation/types.ts';
import { isObject, type Json, type JsonObject } from '../../lib/json/json.ts';
import { put } from '../../lib/json/json-members.ts';

export const PROTOCOL = 'anthropic-messages';

/** Claude Code's first system block; its suffix differs per conversation and ruins prefix caches. */
export const BILLING_HEADER = 'x-anthropic-billing-header:';

/** Bridges: what Messages accepts as a tool name and as the id of a call. */
export const TOOL_NAME_LIMIT = 128;

/** A value as a node keeps it. */
export const wireOf = (value: Json): Wire => ({ protocol: PROTOCOL, value });

/** The JSON of a node that is untouched and came on this wire, else undefined. */
export function ownWire(node: { readonly wire?: Wire }): Json | undefined {
  return node.wire?.protocol === PROTOCOL ? node.wire.value : undefined;
}

/** The JSON that an edited node came from on this wire, else undefined. */
export function ownResidue(node: { readonly residue?: Wire }): Json | undefined {
  return node.residue?.protocol === PROTOCOL ? node.residue.value : undefined;
}

/**
 * `fields` over what is left of `old`: keys keep their place, a field that is undefined is removed,
 * keys that `fields` does not know stay as they were.
 */
export function rebuilt(old: Json | undefined, fields: JsonObject): JsonObject {
  const out: Record<string, Json | undefined> = {};
  if (isObject(old)) {
    for (const key of Object.keys(old)) {
      const value = Object.hasOwn(fields, key) ? fields[key] : old[key];
      if (value !== undefined) put(out, key, value);
    }
  }
  for (const key of Object.keys(fields)) {
    if (fields[key] !== undefined && !Object.hasOwn(out, key)) put(out, key, fields[key]);
  }
  return out;
}

/** `cache_control` as a mark. */
export function decodeCache(value: Json | undefined): CacheMark | undefined {
  if (!isObject(value)) return undefined;
  return typeof value.ttl === 'string' ? { ttl: value.ttl } : {};
}

/** A mark as `cache_control`. */
export function encodeCache(mark: CacheMark | undefined): JsonObject | undefined {
  if (mark === undefined) return undefined;
  return mark.ttl === undefined ? { type: 'ephemeral' } : { type: 'ephemeral', ttl: mark.ttl };
}

export const string = (value: Json | undefined): string | undefined =>
  typeof value === 'string' ? value : undefined;

export const number = (value: Json | undefined): number | undefined =>
  typeof value === 'number' ? value : undefined;

/** The objects of a list; nothing for what is not a list. */
export function objects(value: Json | undefined): readonly JsonObject[] {
  return Array.isArray(value) ? value.filter(isObject) : [];
}
