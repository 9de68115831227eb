/** Forms of one word find each other; words that only look alike do not. */

import { expect, test } from 'bun:test';
import { findingTerms, formsOf } from '../../../../src/features/memory/ranking/known-terms.ts';
import { queryTerms, termsOf } from '../../../../src/features/memory/ranking/terms.ts';

const finds = (question: string, text: string) => {
  const { counts } = termsOf(text);
  return queryTerms(question).some((term) => formsOf(term).some((form) => counts.has(form)));
};

const SAME: readonly (readonly [string, string])[] = [
  ['buy', 'bought'],
  ['teach', 'taught'],
  ['teaching', 'taught'],
  ['running', 'ran'],
  ['runs', 'ran'],
  ['written', 'wrote'],
  ['writing', 'written'],
  ['swimming', 'swam'],
  ['chosen', 'choose'],
  ['pregnancy', 'pregnant'],
  ['tendency', 'tendencies'],
  ['vacancies', 'vacant'],
  ['email', 'e-mail'],
  ['e-mail', 'email'],
  ['emails', 'e-mail'],
  ['wi-fi', 'wifi'],
  ['wifi', 'Wi-Fi'],
  ['wifi', 'wi‑fi'],
  ['children', 'child'],
  ['allergic', 'allergy'],
];
for (const [one, other] of SAME) {
  test(`${one} finds ${other}, and back`, () => {
    expect([finds(one, other), finds(other, one)]).toEqual([true, true]);
  });
}

test.each([
  ['工作', '上班'],
  ['老家', '家鄉'],
  ['学历', '毕业'],
  ['爱好', '喜欢'],
])('%s and %s find each other, and neither is a form of the other', (one, other) => {
  expect(findingTerms(one)).toContain(other);
  expect(findingTerms(other)).toContain(one);
  expect(formsOf(one)).toEqual([one]);
  expect(new Set(findingTerms(one)).size).toBe(findingTerms(one).length);
});

const DIFFERENT: readonly (readonly [string, string])[] = [
  ['currency', 'current'],
  ['founded', 'find'],
  ['arms', 'army'],
  ['mouse', 'mouth'],
];
for (const [one, other] of DIFFERENT) {
  test(`${one} does not find ${other}`, () => {
    expect([finds(one, other), finds(other, one)]).toEqual([false, false]);
  });
}
