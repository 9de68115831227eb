/** The difference between two texts, line by line. */

import { runAtOnce } from '../lib/loop/steps.ts';
import { pairEqual } from '../lib/text/text-diff.ts';

export interface DiffLine {
  readonly sign: ' ' | '+' | '-';
  readonly text: string;
}

const linesOf = (text: string) => (text === '' ? [] : text.replace(/\n$/, '').split(/\r?\n/));

/**
 * The changed lines with up to `context` unchanged ones around each; a line `…` stands for a gap.
 */
export function lineDiff(before: string, after: string, context = 2): DiffLine[] {
  const all = signed(linesOf(before), linesOf(after));
  const near = new Set<number>();
  all.forEach(({ sign }, i) => {
    if (sign === ' ') return;
    for (let j = i - context; j <= i + context; j++) near.add(j);
  });
  const out: DiffLine[] = [];
  let last = -1;
  all.forEach((line, i) => {
    if (!near.has(i)) return;
    if (last >= 0 && last !== i - 1) out.push({ sign: ' ', text: '…' });
    out.push(line);
    last = i;
  });
  return out;
}

/** Every line of both texts. Of what was replaced, the lines that are gone come first. */
function signed(a: readonly string[], b: readonly string[]): DiffLine[] {
  const pairs = runAtOnce(pairEqual(a, b));
  const out: DiffLine[] = [];
  let next = 0;
  const added = (end: number) => {
    while (next < end) out.push({ sign: '+', text: b[next++]! });
  };
  a.forEach((text, i) => {
    const pair = pairs[i]!;
    if (pair >= 0) added(pair);
    out.push({ sign: pair >= 0 ? ' ' : '-', text });
    if (pair >= 0) next++;
  });
  added(b.length);
  return out;
}
