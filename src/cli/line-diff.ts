import { runAtOnce } from '../lib/loop/steps.ts';
import { printableLine } from '../lib/text/printable-text.ts';
import { diffText, inOrder, pairEqual } from '../lib/text/text-diff.ts';
import { cutWith, type Terminal } from './terminal.ts';

export interface DiffLine {
  readonly sign: ' ' | '+' | '-';
  readonly text: string;
}

const SIGNS = { same: ' ', removed: '-', added: '+' } as const;

const linesOf = (text: string) => (text === '' ? [] : text.replace(/\n$/, '').split(/\r?\n/));

/**
 * The changed lines with up to `context` unchanged ones around each; a line `…` stands for a gap.
 */
export function lineDiff(before: string, after: string, context = 2): DiffLine[] {
  const [a, b] = [linesOf(before), linesOf(after)];
  const all = [...inOrder(a, b, runAtOnce(pairEqual(a, b)))].map(
    ([kind, text]): DiffLine => ({ sign: SIGNS[kind], text }),
  );
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

/** Prints them, indented. @returns how many there are */
export function printLineDiff(out: Terminal, before: string, after: string): number {
  const lines = lineDiff(before, after);
  for (const { sign, text } of lines) {
    const line = `  ${sign} ${text}`.trimEnd();
    out.line(sign === ' ' ? line : out.paint(sign === '+' ? 'green' : 'red', line));
  }
  return lines.length;
}

interface WordLine {
  readonly kind: 'removed' | 'added';
  readonly text: string;
}

/** Characters of an equal part that are shown beside a change. */
const AROUND = 24;

/**
 * The changes from `before` to `after`, each as `- …` and `+ …` with its surroundings; where there is only one
 * text, that text. The end of a line is shown as `↵`. `columns`: of a terminal without the indentation, where long
 * parts are cut; undefined: nothing is cut.
 */
export function wordLines(
  both: boolean,
  before: string | undefined,
  after: string | undefined,
  columns: number | undefined,
): readonly WordLine[] {
  const most = columns === undefined ? Number.POSITIVE_INFINITY : Math.max(30, columns - 2);
  const line = (kind: WordLine['kind'], text: string): WordLine => {
    const shown = printableLine(text.replace(/\r?\n/g, '↵'), Number.POSITIVE_INFINITY);
    const cut = cutWith(shown, most, `… (${text.length} characters)`);
    return { kind, text: `${kind === 'removed' ? '-' : '+'} ${cut}` };
  };
  if (!both) {
    return [
      ...(before === undefined ? [] : [line('removed', before)]),
      ...(after === undefined ? [] : [line('added', after)]),
    ];
  }
  const parts = diffText(before ?? '', after ?? '');
  const lines: WordLine[] = [];
  for (let i = 0; i < parts.length; ) {
    if (parts[i]!.kind === 'same') {
      i++;
      continue;
    }
    const head = i === 0 ? '' : ending(parts[i - 1]!.text);
    const removed = parts[i]!.kind === 'removed' ? parts[i++]!.text : '';
    const added = parts[i]?.kind === 'added' ? parts[i++]!.text : '';
    const tail = i === parts.length ? '' : beginning(parts[i]!.text);
    if (removed !== '') lines.push(line('removed', head + removed + tail));
    lines.push(line('added', head + added + tail));
  }
  return lines;
}

const ending = (text: string) => (text.length > AROUND ? `…${text.slice(-AROUND)}` : text);
const beginning = (text: string) => (text.length > AROUND ? `${text.slice(0, AROUND)}…` : text);
