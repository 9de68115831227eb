/** `hopgate samples diff`: what changed in a body between two stages, and which rule changed it. */

import type { Json } from '../../../lib/json/json.ts';
import { printableLine } from '../../../lib/text/printable-text.ts';
import { compareStages, stagesToCompare } from '../../../samples/replay/compare-stages.ts';
import type { ExplainedChange, SampleStore } from '../../../samples/sample.ts';
import type { Invocation } from '../../command.ts';
import { sampleNamed } from './open-samples.ts';

export async function runDiff(
  store: SampleStore,
  [id, first, second]: readonly string[],
  { out, flag }: Invocation,
): Promise<number> {
  const meta = await sampleNamed(store, id, 'samples diff');
  const diff = compareStages(store, meta, ...stagesToCompare(meta, first, second));
  const { a, b, identical, changes } = diff;
  if (flag('json')) {
    out.line(JSON.stringify({ id: meta.id, a, b, identical, changes }, null, 2));
    return 0;
  }
  out.line(out.paint('bold', `${a} → ${b}`));
  if (identical) out.line('byte for byte the same');
  else if (changes.length === 0) out.line('the same values, written differently');
  for (const change of changes) {
    const style = change.kind === 'added' ? 'green' : change.kind === 'removed' ? 'red' : 'yellow';
    const most = flag('full') ? undefined : out.columns;
    out.line(out.paint(style, changeText(change, most)));
    if (change.rules.length > 0) out.line(out.paint('dim', `    by ${change.rules.join(', ')}`));
  }
  return 0;
}

const SIGNS = { added: '+', removed: '-', changed: '~' } as const;

/** One change on one line. `columns`: of a terminal, where long values are cut; undefined: nothing is cut. */
function changeText(
  { kind, at, to, before, after }: ExplainedChange,
  columns: number | undefined,
): string {
  const short = (value: Json | undefined) => {
    const text = printableLine(JSON.stringify(value) ?? '', Number.POSITIVE_INFINITY);
    if (columns === undefined) return text;
    const most = Math.max(30, Math.floor(columns / 2) - 10);
    return text.length > most ? `${text.slice(0, most)}… (${text.length} characters)` : text;
  };
  const place = `${SIGNS[kind]} ${at || '/'}${to === undefined ? '' : ` → ${to}`}`;
  if (kind === 'changed') return `${place}: ${short(before)} → ${short(after)}`;
  return `${place}: ${short(kind === 'added' ? after : before)}`;
}
