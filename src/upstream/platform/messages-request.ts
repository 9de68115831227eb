/** A Messages request in the platforms' form: the model goes into the URL, the version into the body. */

import { withFirstMembers, withoutMembers } from '../../lib/json/body-members.ts';
import { type JsonObject, topLevel, tryParse } from '../../lib/json/json.ts';

const utf8 = new TextDecoder();

/** The model that a body names; '' for a body that names none. */
export function modelIn(body: Uint8Array): string {
  const member = topLevel(body, MODEL)?.get('model');
  if (member === undefined) return '';
  const value = tryParse(utf8.decode(body.subarray(member.valueStart, member.valueEnd)));
  return typeof value === 'string' ? value : '';
}

export const MODEL: ReadonlySet<string> = new Set(['model']);
export const MODEL_AND_STREAM: ReadonlySet<string> = new Set(['model', 'stream']);

/**
 * The body without some members, and with others that it does not have itself.
 * @param added by name; undefined: nothing
 */
export function platformBody(
  body: Uint8Array,
  removed: ReadonlySet<string>,
  added: JsonObject,
): Uint8Array {
  const names = new Set(Object.keys(added));
  const own = topLevel(body, names);
  const missing = Object.entries(added).filter(
    ([name, value]) => value !== undefined && own?.has(name) !== true,
  );
  const bare = removed.size === 0 ? body : withoutMembers(body, removed);
  if (missing.length === 0) return bare;
  const members = missing.map(
    ([name, value]) => `${JSON.stringify(name)}:${JSON.stringify(value)}`,
  );
  return withFirstMembers(bare, members.join(','));
}
