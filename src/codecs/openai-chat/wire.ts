/** Helpers for Chat Completions JSON: the protocol's name, wire values of nodes, and typed reads. */

import { wireNodes } from '../../conversation/edit.ts';
import type { Json, JsonObject } from '../../lib/json/json.ts';
import { prefixedId } from '../../lib/text/ids.ts';

export { compact, flag, list, number, object, text } from '../../lib/json/typed-reads.ts';

export const PROTOCOL = 'openai-chat';

/** Tool names: `^[a-zA-Z0-9_-]{1,64}$`. */
export const NAME_LIMIT = 64;

export const { wireOf, ownWire, ownResidue, isOwn } = wireNodes(PROTOCOL);

export function without(value: JsonObject, keys: Iterable<string>): JsonObject {
  const copy: Record<string, Json | undefined> = { ...value };
  for (const key of keys) delete copy[key];
  return copy;
}

/** An id for a call that has none: `call_…`. */
export const newCallId = (): string => prefixedId('call_');
