/** Whether a sampled value fits its schema, counted as effort of the answer. */

import type { Json } from '../../lib/json/json.ts';
import { violation } from '../../lib/json/json-schema.ts';
import { patternOf, type Schema } from '../../lib/json/json-schema-parts.ts';
import { UnfitPattern } from '../../lib/text/linear-pattern.ts';
import { spend } from './effort.ts';

/** Units that one check may take of the effort for the answer. */
const MAX_WORK = 50_000;

/** @param root the document that local references point into */
export function satisfies(value: Json, schema: Schema, root: Schema = schema): boolean {
  const work = { left: MAX_WORK };
  const found = violation(value, schema, { root, work });
  spend(MAX_WORK - work.left);
  return found === undefined;
}

/** Undefined for a pattern that is invalid or cannot be tested in linear time. */
export function fitsPattern(source: string, text: string, root: Schema): boolean | undefined {
  try {
    const pattern = patternOf(source, root);
    spend(pattern.size + (text.length * pattern.size) / 8);
    return pattern.test(text);
  } catch (thrown) {
    if (thrown instanceof UnfitPattern) return undefined;
    throw thrown;
  }
}
