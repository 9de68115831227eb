/** `hopgate samples diff`: what changed in a body between two stages, by meaning or as JSON, and which rule changed it. */

import type { Json } from '../../../lib/json/json.ts';
import { runAtOnce } from '../../../lib/loop/steps.ts';
import { printableLine } from '../../../lib/text/printable-text.ts';
import { stageMeaning } from '../../../samples/compare/meaning.ts';
import type { MeaningDiff } from '../../../samples/compare/types.ts';
import { compareStages, stagesToCompare } from '../../../samples/replay/compare-stages.ts';
import type { ExplainedChange, SampleStore } from '../../../samples/sample.ts';
import type { Invocation } from '../../command.ts';
import { wordLines } from '../../line-diff.ts';
import { cutWith, type Terminal, widthOf } from '../../terminal.ts';
import { readingParts, sampleNamed } from './open-samples.ts';

export async function runDiff(
  store: SampleStore,
  [id, first, second]: readonly string[],
  { out, err, flag, services }: Invocation,
): Promise<number> {
  const meta = await sampleNamed(store, id, 'samples diff');
  const diff = runAtOnce(compareStages(store, meta, ...stagesToCompare(meta, first, second)));
  const { a, b, identical, changes } = diff;
  const parts = readingParts(await services());
  const meaning = identical ? undefined : runAtOnce(stageMeaning(store, meta, a, b, parts));
  if (flag('json')) {
    const all = { id: meta.id, a, b, identical, changes, meaning: meaning ?? null };
    out.line(JSON.stringify(all, null, 2));
    return 0;
  }
  out.line(out.paint('bold', `${a} → ${b}`));
  // Two protocols write everything differently: there, what both say tells more than their JSON.
  if (meaning?.translated === true && !flag('raw')) {
    printMeaning(meaning, out, flag('full'));
    if (out.columns !== undefined) err.line('--raw prints the differences of the JSON.');
    return 0;
  }
  if (identical) out.line('byte for byte the same');
  else if (changes.length === 0) out.line('the same values, written differently');
  for (const change of changes) {
    const most = flag('full') ? undefined : out.columns;
    out.line(out.paint(STYLES[change.kind], changeText(change, most)));
    if (change.rules.length > 0) out.line(out.paint('dim', `    by ${change.rules.join(', ')}`));
  }
  return 0;
}

const STYLES = { added: 'green', removed: 'red', changed: 'yellow' } as const;

function printMeaning({ parts, otherRules }: MeaningDiff, out: Terminal, full: boolean): void {
  const columns = full || out.columns === undefined ? undefined : out.columns - INDENT.length;
  for (const { title, changes } of parts) {
    out.line(
      changes.length === 0 ? out.paint('dim', `= ${title}`) : out.paint('bold', `≠ ${title}`),
    );
    for (const { kind, what, before, after, rules } of changes) {
      const by = rules.length === 0 ? '' : out.paint('dim', `  by ${rules.join(', ')}`);
      const values =
        kind === 'changed' && isShort(before) && isShort(after) ? `: ${before} → ${after}` : '';
      out.line(`  ${out.paint(STYLES[kind], `${SIGNS[kind]} ${what}${values}`)}${by}`);
      if (values !== '') continue;
      for (const line of wordLines(kind === 'changed', before, after, columns)) {
        out.line(`${INDENT}${out.paint(line.kind === 'removed' ? 'red' : 'green', line.text)}`);
      }
    }
  }
  if (otherRules.length > 0) out.line(out.paint('dim', `also noted: ${otherRules.join(', ')}`));
}

/** A name or number, not prose: it fits on one line beside its counterpart. */
const isShort = (text: string | undefined): text is string =>
  text !== undefined && text !== '' && text.length <= MAX_SHORT && !/\p{Cc}/u.test(text);

const MAX_SHORT = 60;
const INDENT = '      ';
const SIGNS = { added: '+', removed: '-', changed: '~' } as const;

/** One change on one line. `columns`: of a terminal, where long values are cut; undefined: nothing is cut. */
function changeText(
  { kind, at, to, before, after }: ExplainedChange,
  columns: number | undefined,
): string {
  const place = `${SIGNS[kind]} ${at || '/'}${to === undefined ? '' : ` → ${to}`}`;
  const short = (value: Json | undefined) => {
    const text = printableLine(JSON.stringify(value) ?? '', Number.POSITIVE_INFINITY);
    if (columns === undefined) return text;
    const room = columns - widthOf(place) - 2;
    const most = Math.max(30, kind === 'changed' ? Math.floor((room - 3) / 2) : room);
    return cutWith(text, most, `… (${text.length} characters)`);
  };
  if (kind === 'changed') return `${place}: ${short(before)} → ${short(after)}`;
  return `${place}: ${short(kind === 'added' ? after : before)}`;
}
