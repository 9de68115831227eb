/** Globs over names and texts: `*` is any text, `?` one character, case does not matter. */

/** A test for one pattern; linear in pattern × text, whatever the text. */
export function globTest(pattern: string): (text: string) => boolean {
  const wanted = pattern.toLowerCase();
  if (/^\*+$/.test(wanted)) return () => true;
  if (!/[*?]/.test(wanted)) return (text) => text.toLowerCase() === wanted;
  return (text) => matches(wanted, text.toLowerCase());
}

/** A test for any of several patterns. */
export function anyGlob(patterns: readonly string[]): (text: string) => boolean {
  const tests = patterns.map(globTest);
  return (text) => tests.some((test) => test(text));
}

export const isGlob = (name: string): boolean => /[*?]/.test(name);

// Two pointers and the place of the last star: no backtracking beyond it.
function matches(pattern: string, text: string): boolean {
  let p = 0;
  let t = 0;
  let star = -1;
  let mark = 0;
  while (t < text.length) {
    const wanted = pattern[p];
    if (wanted === '*') {
      star = p++;
      mark = t;
    } else if (wanted === '?' || (wanted !== undefined && wanted === text[t])) {
      p++;
      t++;
    } else if (star >= 0) {
      p = star + 1;
      t = ++mark;
    } else return false;
  }
  while (pattern[p] === '*') p++;
  return p === pattern.length;
}
