/** `…/diff`: the changes between the bodies of two stages, with long values cut. */

import type { Json } from '../../../lib/json/json.ts';
import type { Steps } from '../../../lib/loop/steps.ts';
import { stageMeaning } from '../../../samples/compare/stage-meaning.ts';
import type { MeaningDiff } from '../../../samples/compare/types.ts';
import { readableBody } from '../../../samples/decode/readable-body.ts';
import { compareStages, stagesToCompare } from '../../../samples/replay/compare-stages.ts';
import type { ExplainedChange } from '../../../samples/sample.ts';
import type { ChangeView, DiffView } from '../api.ts';
import { textView } from './conversation-view.ts';
import type { Recorded } from './said.ts';

const MAX_CHANGES = 2000;
const MAX_CHARS = 10_000;

/** @throws GatewayError not_found, too_large */
export function* diffOf(
  { store, meta, parts }: Recorded,
  stages: { readonly a?: string; readonly b?: string },
): Steps<DiffView> {
  const [first, second] = stagesToCompare(meta, stages.a, stages.b);
  // Refuses unknown stages and bodies that are too large to compare.
  for (const one of [first, second]) readableBody(store, meta, one);
  const found = yield* compareStages(store, meta, first, second, MAX_CHANGES);
  const { a, b, identical, changes, total } = found;
  return {
    a,
    b,
    identical,
    changes: changes.map(changeView),
    total,
    notes: meta.notes,
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
      ...(change.before !== undefined && { before: short(change.before)! }),
      ...(change.after !== undefined && { after: short(change.after)! }),
    })),
  }));
  return { ...meaning, parts };
}

function changeView({ before, after, ...change }: ExplainedChange): ChangeView {
  const [was, is] = [cut(before), cut(after)];
  return {
    ...change,
    ...(was && { before: was.value, ...(was.chars && { before_chars: was.chars }) }),
    ...(is && { after: is.value, ...(is.chars && { after_chars: is.chars }) }),
  };
}

function cut(value: Json | undefined): { value: Json; chars?: number } | undefined {
  if (value === undefined) return undefined;
  const { text, chars } = textView(JSON.stringify(value), MAX_CHARS);
  return chars === undefined ? { value } : { value: text, chars };
}
