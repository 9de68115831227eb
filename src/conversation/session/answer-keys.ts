/** By what an answer is recognised in a later request: ids of calls that are random, and texts without white space. */
import { sha256Hex } from '../../lib/text/sha256.ts';

/** An answer of at least so many characters is recognised by its text alone. */
const MIN_DISTINCTIVE = 80;

const keyHash = (text: string): string => sha256Hex(text).slice(0, 40);

/** Clients trim, join and re-wrap white space, so it is ignored. */
export const withoutSpace = (text: string): string => text.replace(/\s+/g, '');

/** Characters of an id that are read. Vendors' ids are shorter; a client could send megabytes. */
const MAX_ID_LENGTH = 512;
/** An id is random if it has a run of this many letters and digits, with at least one of each. */
const RANDOM_RUN = 16;
/** An id is also random if it has this many digits in a row. */
const RANDOM_DIGITS = 12;

/**
 * The key of a call. Some vendors number their calls (`call_0`, `functions.Bash:0`); such an id identifies a
 * call only together with the text around it.
 * @param scope whose answers are recognised
 */
export const callKey = (scope: string, id: string, around: () => string): string =>
  keyHash(`call\0${scope}\0${id}${isRandom(id) ? '' : `\0${around()}`}`);

/**
 * Keys of an answer by its text. A short answer ("Done.") is recognised only together with the text before
 * it; a long one also alone, since clients may edit earlier turns. None for an empty answer.
 */
export function textKeys(scope: string, answer: string, before: () => string): readonly string[] {
  const text = withoutSpace(answer);
  if (text === '') return [];
  const head = `said\0${scope}\0${text}`;
  const exact = keyHash(`${head}\0${before()}`);
  return text.length < MIN_DISTINCTIVE ? [exact] : [exact, keyHash(head)];
}

/** Does the id alone identify a call? Reads the beginning of the id once. */
function isRandom(id: string): boolean {
  let run = 0;
  let digits = 0;
  let hasDigit = false;
  let hasLetter = false;
  const end = Math.min(id.length, MAX_ID_LENGTH);
  for (let at = 0; at < end; at++) {
    const code = id.charCodeAt(at);
    const lower = code | 0x20;
    if (code >= 0x30 && code <= 0x39) {
      hasDigit = true;
      if (++digits === RANDOM_DIGITS) return true;
    } else if (lower >= 0x61 && lower <= 0x7a) {
      hasLetter = true;
      digits = 0;
    } else {
      run = 0;
      digits = 0;
      hasDigit = false;
      hasLetter = false;
      continue;
    }
    if (++run >= RANDOM_RUN && hasDigit && hasLetter) return true;
  }
  return false;
}
