/** `…/diff`: the changes between the bodies of two stages, with long values cut. */

import type { Json } from '../../../lib/json/json.ts';
import { stageMeaning } from '../../../samples/compare/meaning.ts';
import type { MeaningDiff } from '../../../samples/compare/types.ts';
import { readableBody } from '../../../samples/decode/decode-body.ts';
import { compareStages, stagesToCompare } from '../../../samples/replay/compare-stages.ts';
import type { ExplainedChange } from '../../../samples/sample.ts';
import { textView } from './conversation-view.ts';
import type { Recorded } from './said.ts';

const MAX_CHANGES = 2000;
const MAX_CHARS = 10_000;

/**
 * A change. A value whose JSON is longer than 10000 characters is replaced by the beginning of that JSON as
 * a string; `…_chars` is then its full length.
 */
export interface ChangeView extends ExplainedChange {
  readonly before_chars?: number;
  readonly after_chars?: number;
}

/** @throws GatewayError not_found, too_large */
export function* diffOf(
  { store, meta, parts }: Recorded,
  stages: { readonly a?: string; readonly b?: string },
) {
  const [first, second] = stagesToCompare(meta, stages.a, stages.b);
  // Refuses unknown stages and bodies that are too large to compare.
  for (const one of [first, second]) readableBody(store, meta, one);
  const found = yield* compareStages(store, meta, first, second, MAX_CHANGES);
  const { a, b, identical, changes, total } = found;
  return {
    a,
    b,
    identical,
    /** The first 2000. */
    changes: changes.map(
      ({ before, after, ...change }): ChangeView => ({
        ...change,
        ...cut('before', before),
        ...cut('after', after),
      }),
    ),
    total,
    /** By what both bodies say, whatever their protocols; null where that cannot be read. */
    meaning: identical ? null : shortMeaning(yield* stageMeaning(store, meta, a, b, parts)),
  };
}

/** Longest text of one side in a comparison by meaning. */
const MAX_SAID = 200_000;

function shortMeaning(meaning: MeaningDiff | undefined): MeaningDiff | null {
  if (meaning === undefined) return null;
  const short = (text: string | undefined) => {
    if (text === undefined || text.length <= MAX_SAID) return text;
    return `${textView(text, MAX_SAID).text}\n… ${text.length - MAX_SAID} more characters`;
  };
  const parts = meaning.parts.map((part) => ({
    ...part,
    changes: part.changes.map((change) => ({
      ...change,
      before: short(change.before),
      after: short(change.after),
    })),
  }));
  return { ...meaning, parts };
}

function cut(name: 'before' | 'after', value: Json | undefined): Partial<ChangeView> {
  if (value === undefined) return {};
  const { text, chars } = textView(JSON.stringify(value), MAX_CHARS);
  return chars === undefined ? { [name]: value } : { [name]: text, [`${name}_chars`]: chars };
}
