/** Which statement replaces an older one. */

import { expect, test } from 'bun:test';
import { raiseChanges, type Statement } from '../../../../src/features/memory/ranking/changes.ts';
import { digestOf, readDigest } from '../../../../src/features/memory/ranking/digest.ts';

const statement = (text: string, time: number, score: number): Statement => ({
  time,
  digest: readDigest(digestOf({ text, source: 'user', tags: [] }))!,
  shares: Float64Array.of(score / 2, score / 2),
  score,
});

/** Whether the newer statement comes first. */
function replaces(newer: string, older: string): boolean {
  const statements = [statement(older, 1, 1), statement(newer, 2, 0.8)];
  raiseChanges(statements, { own: 2, topics: new Set() });
  return statements[1]!.score > statements[0]!.score;
}

const OPINION =
  '这次参观的口腔医院真让我印象深刻，从环境到服务，都特别专业和贴心。设备啥的也是一流的，流程规范，感觉特别放心。就是人挺多的，排队等的时候感觉有点久，要是这点能改进一下就完美了。';

test.each([
  ['我参观的医院现在是骨科医院。', '我参观的医院是口腔医院。', true],
  [OPINION, '我参观的医院是口腔医院。', false],
  ['My dentist is now Dr. Brown on Main Street.', 'My dentist is Dr. Smith.', true],
  [
    `My dentist has a new chair, and I like it. ${'The staff was kind and quick as ever. '.repeat(4)}`,
    'My dentist is Dr. Smith.',
    false,
  ],
])('a text with a word of change replaces a fact of about its length: %#', (newer, older, does) => {
  expect(replaces(newer, older)).toBe(does);
});
