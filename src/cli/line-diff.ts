/** The difference between two texts, line by line. */

export interface DiffLine {
  readonly sign: ' ' | '+' | '-';
  readonly text: string;
}

const linesOf = (text: string) => (text === '' ? [] : text.replace(/\n$/, '').split(/\r?\n/));

/**
 * The changed lines with up to `context` unchanged ones around each; a line `…` stands for a gap.
 */
export function lineDiff(before: string, after: string, context = 2): DiffLine[] {
  const a = linesOf(before);
  const b = linesOf(after);
  const all = longestCommon(a, b);
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

/** Lines times lines; beyond it everything between the common beginning and end is shown as replaced. */
const MAX_CELLS = 4_000_000;

/** Every line of both texts, by a longest common subsequence of what is between their common beginning and end. */
function longestCommon(a: readonly string[], b: readonly string[]): DiffLine[] {
  let head = 0;
  while (head < a.length && head < b.length && a[head] === b[head]) head++;
  let tail = 0;
  while (
    tail < a.length - head &&
    tail < b.length - head &&
    a[a.length - 1 - tail] === b[b.length - 1 - tail]
  ) {
    tail++;
  }
  const x = a.slice(head, a.length - tail);
  const y = b.slice(head, b.length - tail);
  const out: DiffLine[] = a.slice(0, head).map((text) => ({ sign: ' ', text }));
  const end = () => a.slice(a.length - tail).map((text): DiffLine => ({ sign: ' ', text }));
  if (x.length * y.length > MAX_CELLS) {
    const gone = x.map((text): DiffLine => ({ sign: '-', text }));
    const come = y.map((text): DiffLine => ({ sign: '+', text }));
    return out.concat(gone, come, end());
  }
  const lengths = Array.from({ length: x.length + 1 }, () => new Uint32Array(y.length + 1));
  for (let i = x.length - 1; i >= 0; i--) {
    for (let j = y.length - 1; j >= 0; j--) {
      lengths[i]![j] =
        x[i] === y[j]
          ? lengths[i + 1]![j + 1]! + 1
          : Math.max(lengths[i + 1]![j]!, lengths[i]![j + 1]!);
    }
  }
  let i = 0;
  let j = 0;
  while (i < x.length || j < y.length) {
    if (i < x.length && j < y.length && x[i] === y[j]) {
      out.push({ sign: ' ', text: x[i++]! });
      j++;
    } else if (j >= y.length || (i < x.length && lengths[i + 1]![j]! >= lengths[i]![j + 1]!)) {
      out.push({ sign: '-', text: x[i++]! });
    } else out.push({ sign: '+', text: y[j++]! });
  }
  return out.concat(end());
}
