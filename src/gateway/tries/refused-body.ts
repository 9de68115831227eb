/** Takes the fields out of a body that its target has refused. */

import type { Codec } from '../../codecs/codec.ts';
import type { Notes } from '../../conversation/notes.ts';
import { type FieldPath, withoutFields } from '../../conversation/refusal/refused-fields.ts';
import type { Target } from '../../conversation/target.ts';
import { containsAny, needles } from '../../lib/bytes/bytes.ts';
import type { JsonObject } from '../../lib/json/json.ts';

const namesOf = new WeakMap<readonly FieldPath[], readonly Buffer[]>();

/** Can the body have a field that the target has refused? */
export function mayHoldRefused(body: Buffer, { refusedFields }: Target): boolean {
  if (refusedFields === undefined) return false;
  let names = namesOf.get(refusedFields);
  if (names === undefined) {
    names = needles(...new Set(refusedFields.map((path) => `"${path.at(-1)}"`)));
    namesOf.set(refusedFields, names);
  }
  return containsAny(body, names);
}

/**
 * The body without the fields that the target has refused, and without others of their kind.
 * @param again the target has just refused something, so that others of their kind are looked for in any case
 */
export function withoutRefused(
  body: JsonObject,
  { refusedFields }: Target,
  protocol: Codec,
  notes: Notes,
  again: boolean,
): JsonObject {
  if (refusedFields === undefined) return body;
  const left = withoutFields(body, refusedFields, (path, count) => {
    notes.add('stripped_after_refusal', path, `refused there, ${count} times`);
  });
  if (left === body && !again) return body;
  return protocol.withoutUnknownFields?.(left, 'leftovers', notes) ?? left;
}
