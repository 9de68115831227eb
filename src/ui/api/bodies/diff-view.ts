/** `…/diff`: the changes between the bodies of two stages, with long values cut. */

import type { Json } from '../../../lib/json/json.ts';
import { compareStages, stagesToCompare } from '../../../samples/replay/compare-stages.ts';
import type { ExplainedChange, SampleMeta, SampleStore } from '../../../samples/sample.ts';
import type { ChangeView, DiffView } from '../api.ts';
import { textView } from './conversation-view.ts';
import { readableBody } from './stage-bodies.ts';

const MOST_CHANGES = 2000;
const MOST_CHARS = 10_000;

/** @throws GatewayError not_found, too_large */
export function diffOf(
  store: SampleStore,
  meta: SampleMeta,
  stages: { readonly a?: string; readonly b?: string },
): DiffView {
  const [first, second] = stagesToCompare(meta, stages.a, stages.b);
  // Refuses unknown stages and bodies that are too large to compare.
  for (const one of [first, second]) readableBody(store, meta, one);
  const found = compareStages(store, meta, first, second, MOST_CHANGES);
  const { a, b, identical, changes, total } = found;
  return {
    a,
    b,
    identical,
    changes: changes.map(changeView),
    total,
    notes: meta.notes,
  };
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
  const { text, chars } = textView(JSON.stringify(value), MOST_CHARS);
  return chars === undefined ? { value } : { value: text, chars };
}
