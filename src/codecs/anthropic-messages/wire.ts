/** Helpers for Messages JSON: the protocol's name, wire values of nodes, and cache marks. */

import { wireNodes } from '../../conversation/edit.ts';
import type { CacheMark, Wire } from '../../conversation/types.ts';
import { isObject, type Json, type JsonObject } from '../../lib/json/json.ts';
import { put } from '../../lib/json/json-members.ts';

export { flag, number, object, objects, text } from '../../lib/json/typed-reads.ts';

export const PROTOCOL = 'anthropic-messages';

/** How Claude Code's first system block begins. Its suffix differs in each conversation and defeats prefix caches. */
export const BILLING_HEADER = 'x-anthropic-billing-header:';

/** The longest tool name that the API accepts. */
export const TOOL_NAME_LIMIT = 128;

export const { wireOf, ownWire } = wireNodes(PROTOCOL);

/** The JSON that an edited node of this protocol was decoded from, else undefined. */
export function ownResidue(node: { readonly residue?: Wire }): Json | undefined {
  return node.residue?.protocol === PROTOCOL ? node.residue.value : undefined;
}

/**
 * `old` with `fields` written over it. Existing keys keep their position, undefined fields are removed, and
 * keys that `fields` does not name stay as they were.
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

/** Is it a block of thinking, readable or not? */
export const isThinking = (block: Json | undefined): boolean =>
  isObject(block) && (block.type === 'thinking' || block.type === 'redacted_thinking');

/** Decodes `cache_control`. */
export function decodeCache(value: Json | undefined): CacheMark | undefined {
  if (!isObject(value)) return undefined;
  return typeof value.ttl === 'string' ? { ttl: value.ttl } : {};
}

export function encodeCache(mark: CacheMark | undefined): JsonObject | undefined {
  if (mark === undefined) return undefined;
  return mark.ttl === undefined ? { type: 'ephemeral' } : { type: 'ephemeral', ttl: mark.ttl };
}
