/** The nearest of some names to what was typed. */

/** Single-character edits (insert, delete, replace, swap neighbours) from `a` to `b`. */
export function distance(a: string, b: string): number {
  let before: number[] = [];
  let last = Array.from({ length: b.length + 1 }, (_, j) => j);
  for (let i = 1; i <= a.length; i++) {
    const row = [i];
    for (let j = 1; j <= b.length; j++) {
      const same = a[i - 1] === b[j - 1];
      let best = Math.min(last[j]! + 1, row[j - 1]! + 1, last[j - 1]! + (same ? 0 : 1));
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]) {
        best = Math.min(best, before[j - 2]! + 1);
      }
      row.push(best);
    }
    before = last;
    last = row;
  }
  return last[b.length]!;
}

/** Characters; what is longer is no slip in a word, and the work grows with both lengths. */
const LONGEST = 200;

/** The name that was probably meant, or undefined when none is near. */
export function nearest(typed: string, names: readonly string[]): string | undefined {
  if (typed.length > LONGEST) return undefined;
  const word = typed.toLowerCase();
  let best: string | undefined;
  let least = Math.max(1, Math.floor(word.length / 3)) + 1;
  for (const name of names) {
    const edits =
      word.length >= 3 && name.startsWith(word) ? 1 : distance(word, name.toLowerCase());
    if (edits < least) {
      least = edits;
      best = name;
    }
  }
  return best;
}
