/** Stems of English words, so that `allergies` finds `allergy` and `planned` finds `planning`. */

// Step 1 of M. F. Porter's "An algorithm for suffix stripping" (1980), plurals and participles; the
// further steps cut derived words so short that different ones meet.
const VOWEL = /[aeiou]|(?<=[^aeiou])y/;
const DOUBLE = /([^aeiouylsz])\1$/;
const SHORT = /^[^aeiou]*[aeiouy][^aeiouwxy]$/;

/** Words of other letters come back as they are. @param word in lower case */
export function stem(word: string): string {
  if (word.length < 3 || !/^[a-z]+$/.test(word)) return word;
  const single = plural(word);
  const root = participle(single);
  return root.length > 2 && root.endsWith('y') && VOWEL.test(root.slice(0, -1))
    ? `${root.slice(0, -1)}i`
    : root;
}

function plural(word: string): string {
  if (word.endsWith('sses')) return word.slice(0, -2);
  if (word.endsWith('ies')) return word.slice(0, -2);
  return word.endsWith('s') && !word.endsWith('ss') && !word.endsWith('us')
    ? word.slice(0, -1)
    : word;
}

function participle(word: string): string {
  if (word.endsWith('eed')) return word.length > 4 ? word.slice(0, -1) : word;
  const end = /(?:ed|ing)$/.exec(word)?.[0];
  if (end === undefined) return word;
  const root = word.slice(0, -end.length);
  if (!VOWEL.test(root)) return word;
  if (/(?:at|bl|iz)$/.test(root)) return `${root}e`;
  if (DOUBLE.test(root)) return root.slice(0, -1);
  return SHORT.test(root) ? `${root}e` : root;
}
