/** What a digest tells of a text is what the text has. */

import { expect, test } from 'bun:test';
import fc from 'fast-check';
import {
  countingIn,
  digestOf,
  readDigest,
  termHash,
} from '../../../../src/features/memory/ranking/digest.ts';
import { termsOf } from '../../../../src/features/memory/ranking/terms.ts';

const words = fc
  .array(fc.constantFrom('boat', 'boats', 'red', 'is', '火锅', '火', 'Ärger', '17', 'a-b'), {
    minLength: 1,
    maxLength: 40,
  })
  .map((list) => list.join(' '));

test('terms are counted in it as in the text, in groups that may overlap', () => {
  const groups = fc.array(
    fc.array(fc.constantFrom('boat', 'red', '火', '锅', 'none'), { maxLength: 3 }),
  );
  fc.assert(
    fc.property(words, groups, fc.constantFrom(0, 500), (said, wanted, more) => {
      const text = `${said} ${Array.from({ length: more }, (_, n) => `word${n}`).join(' ')}`;
      const digest = readDigest(digestOf({ text, source: '', tags: [] }))!;
      const { counts } = termsOf(text);
      const expected = wanted.map((group) =>
        group.reduce((all, term) => all + (counts.get(term) ?? 0), 0),
      );
      expect([...countingIn(wanted.map((group) => group.map(termHash)))(digest)]).toEqual(expected);
    }),
    { numRuns: 100 },
  );
});

test.each(['', 'Ann', '\ufeffAnn', '林晓', '😀', 'é'.repeat(200)])(
  'a source comes back as it was: %j',
  (source) => {
    const digest = readDigest(digestOf({ text: 'I have a boat.', source, tags: [] }))!;
    expect(digest).toMatchObject({ source, kind: 'statement' });
    const same = readDigest(digestOf({ text: 'I have the boat!', source, tags: ['x'] }))!.same;
    expect(digest.same).toBe(same);
  },
);
