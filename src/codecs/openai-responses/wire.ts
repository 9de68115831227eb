/** Helpers for Responses JSON: the protocol's name, wire values of nodes, typed reads, and call ids. */

import { wireNodes } from '../../conversation/edit.ts';
import type { Wire } from '../../conversation/types.ts';
import { isObject, type JsonObject } from '../../lib/json/json.ts';

export { compact, flag, list, number, object, objects, text } from '../../lib/json/typed-reads.ts';

export const PROTOCOL = 'openai-responses';

/** Tool names: `^[a-zA-Z0-9_-]{1,64}$`. */
export const NAME_LIMIT = 64;

export const { wireOf, ownWire } = wireNodes(PROTOCOL);

export function ownResidue(node: { readonly residue?: Wire }): JsonObject | undefined {
  const value = node.residue?.protocol === PROTOCOL ? node.residue.value : undefined;
  return isObject(value) ? value : undefined;
}

// The API refuses longer ones: `Invalid 'input[95].call_id': string too long … maximum length 64`.
const CALL_ID_LIMIT = 64;

/** A call id that the API accepts: the same for a call and its output, in every request. */
export function callId(id: string): string {
  if (id !== '' && id.length <= CALL_ID_LIMIT) return id;
  const hash = Bun.hash.wyhash(id).toString(16).padStart(16, '0');
  const check = Bun.hash.xxHash32(id).toString(16).padStart(8, '0');
  return `call_${hash}${check}`;
}
