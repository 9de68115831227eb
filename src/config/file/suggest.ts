/** "Did you mean": the known word nearest to what was written. */

/**
 * The nearest of `known`, or undefined when none is near: at most a third of the letters differ
 * (one at least, four at most), or what was written begins a known word or holds one whole.
 */
export function suggest(written: string, known: Iterable<string>): string | undefined {
  if (written.length > LONGEST) return undefined;
  const word = fold(written);
  if (word === '') return undefined;
  const limit = word.length < 2 ? 0 : Math.min(4, Math.max(1, Math.floor(word.length / 3)));
  let best: string | undefined;
  let bestScore = Number.POSITIVE_INFINITY;
  for (const candidate of known) {
    const other = fold(candidate);
    let score = distance(word, other, limit);
    if (score > limit && word.length >= 3 && other.length >= 3 && alike(word, other)) {
      score = limit + Math.abs(word.length - other.length);
    } else if (score > limit) continue;
    if (score < bestScore) {
      best = candidate;
      bestScore = score;
    }
  }
  return best;
}

/** Characters; what is longer is no slip in a word. */
const LONGEST = 200;

const fold = (text: string) => text.toLowerCase().replaceAll(/[_\s.-]/g, '');

const alike = (a: string, b: string) => a.startsWith(b) || b.startsWith(a);

/**
 * Edits (insert, delete, replace, swap of neighbours) between two words; gives up above `limit`, so
 * that long foreign text costs next to nothing.
 */
export function distance(a: string, b: string, limit = Number.POSITIVE_INFINITY): number {
  if (Math.abs(a.length - b.length) > limit) return Number.POSITIVE_INFINITY;
  let beforeLast: number[] = [];
  let last = Array.from({ length: b.length + 1 }, (_, i) => i);
  for (let i = 1; i <= a.length; i++) {
    const row = [i];
    let lowest = i;
    for (let j = 1; j <= b.length; j++) {
      const same = a[i - 1] === b[j - 1] ? 0 : 1;
      let cost = Math.min(last[j]! + 1, row[j - 1]! + 1, last[j - 1]! + same);
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]) {
        cost = Math.min(cost, beforeLast[j - 2]! + 1);
      }
      row.push(cost);
      if (cost < lowest) lowest = cost;
    }
    if (lowest > limit) return Number.POSITIVE_INFINITY;
    beforeLast = last;
    last = row;
  }
  return last[b.length]!;
}
