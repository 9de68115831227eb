/** Half of a surrogate pair in a body is refused by most vendors, in every turn that follows. */

import { describe, expect, test } from 'bun:test';
import { wholeCharacters } from '../../../src/lib/json/whole-characters.ts';

const mended = (text: string) => wholeCharacters(Buffer.from(text)).toString();

describe('halves of surrogate pairs', () => {
  test.each([
    ['a high one before text', String.raw`"a\ud83d b"`, String.raw`"a\ufffd b"`],
    ['a low one', String.raw`"\ude00"`, String.raw`"\ufffd"`],
    ['in capitals', String.raw`"\uD83D\uDBFF"`, String.raw`"\ufffd\ufffd"`],
    [
      'a high one before a pair',
      String.raw`"\ud83d\ud83d\ude00"`,
      String.raw`"\ufffd\ud83d\ude00"`,
    ],
    ['behind an escaped backslash', String.raw`"\\\ud83d"`, String.raw`"\\\ufffd"`],
    ['in a key', String.raw`{"\ud83d":1}`, String.raw`{"\ufffd":1}`],
    ['at the end', String.raw`"x\ud99c"`, String.raw`"x\ufffd"`],
  ])('%s', (_, text, right) => {
    expect(mended(text)).toBe(right);
    expect(JSON.stringify(JSON.parse(mended(text)))).not.toContain('\\ud');
  });

  test.each([
    String.raw`"\ud83d\ude00"`,
    String.raw`"\uD83D\uDE00 and \n"`,
    String.raw`"\\ud83d"`,
    String.raw`"\\\\ud83d\\ude00"`,
    String.raw`"\ud7ff\ue000"`,
    '"plain 😀"',
    String.raw`"\ud8`,
    String.raw`"\udxyz"`,
  ])('%s stays the same bytes', (text) => {
    const bytes = Buffer.from(text);
    expect(wholeCharacters(bytes)).toBe(bytes);
  });
});
