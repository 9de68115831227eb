/** "Did you mean": finds the known word that is nearest to a misspelt one (edit distance). */

/**
 * The known word nearest to the written one; undefined when none is near. Near means: at most a third
 * of the letters differ (at least one may, at most four), or one of the two words begins with the other.
 * Upper and lower case, `_`, `-`, `.` and spaces make no difference.
 */
export function suggest(written: string, known: Iterable<string>): string | undefined {
  if (written.length > MAX_LENGTH) return undefined;
  const word = fold(written);
  if (word === '') return undefined;
  const limit = word.length < 2 ? 0 : Math.min(4, Math.max(1, Math.floor(word.length / 3)));
  let best: string | undefined;
  let bestScore = Number.POSITIVE_INFINITY;
  for (const candidate of known) {
    const other = fold(candidate);
    let score = editDistance(word, other, limit);
    if (score > limit && word.length >= 3 && other.length >= 3 && sharesBeginning(word, other)) {
      score = limit + Math.abs(word.length - other.length);
    } else if (score > limit) continue;
    if (score < bestScore) {
      best = candidate;
      bestScore = score;
    }
  }
  return best;
}

/** Characters. A longer text is no misspelt word, and the work grows with both lengths. */
const MAX_LENGTH = 200;

const fold = (text: string) => text.toLowerCase().replaceAll(/[_\s.-]/g, '');

const sharesBeginning = (a: string, b: string) => a.startsWith(b) || b.startsWith(a);

/**
 * How many edits lead from one word to the other; an edit inserts, deletes or replaces one character, or
 * swaps two neighbours. Infinity as soon as the result must be above `limit`.
 */
export function editDistance(a: string, b: string, limit = Number.POSITIVE_INFINITY): number {
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
