/** Guesses from the words of a failure which parts of a request it is about. */

import type { JsonObject } from '../../lib/json/json.ts';
import { partsOf, valueAt } from '../../lib/json/pointer.ts';
import type { CutUnit } from './message-units.ts';

/** Of a failure, in characters. */
const MAX_READ = 2000;
const WORD = /[A-Za-z_$][\w$-]{2,60}/g;
/** `tools.3.input_schema`, `messages[17]`. */
const PLACE = /\b(tools|messages|input|contents)[.[](\d{1,6})\b/g;

/** The units at places that the failure names, else those that hold its rarest word; none where it names nothing. */
export function unitsNamed<U extends CutUnit>(
  failure: string,
  body: JsonObject,
  units: readonly U[],
): readonly U[] {
  const said = failure.slice(0, MAX_READ);
  const places = [...said.matchAll(PLACE)].map(([, root, index]) => `/${root}/${index}`);
  const placed = units.filter(({ pointers }) => pointers.some((one) => places.includes(one)));
  if (placed.length > 0) return placed;
  const texts = units.map(({ pointers }) =>
    pointers.map((at) => JSON.stringify([partsOf(at).at(-1), valueAt(body, at)])).join(),
  );
  let best: readonly U[] = [];
  for (const word of new Set(said.match(WORD))) {
    const quoted = JSON.stringify(word);
    const holding = units.filter((_, at) => texts[at]!.includes(quoted));
    if (holding.length > 0 && (best.length === 0 || holding.length < best.length)) best = holding;
  }
  return best;
}
