/** Filters of exchanges: what they ask of the index is bounded, and what is too much is said in words. */

import { expect, test } from 'bun:test';
import { runAtOnce } from '../../../src/lib/loop/steps.ts';
import { parseFilter } from '../../../src/samples/replay/filter.ts';
import { conditionsOf, named } from '../../../src/samples/store/index-query.ts';

test.each([
  { status: Array(1000).fill('200').join(',') },
  { model: `*${'a'.repeat(200)}*` },
  { model: '*a*a*a*a*a*' },
  { note: '*'.repeat(90) },
  { model: 'x'.repeat(5000) },
])('a filter that would cost too much is an invalid request: %#', (given) => {
  expect(() => parseFilter(given, 0)).toThrow(expect.objectContaining({ kind: 'invalid_request' }));
});

test.each([
  { status: '500,5xx,ok' },
  { model: 'glm*' },
  { model: 'x'.repeat(512) },
  { note: '*_dropped' },
])('an ordinary filter is taken: %p', (given) => {
  expect(parseFilter(given, 0)).toEqual(given);
});

test('a plain word is looked for as it is, and only a pattern as one', () => {
  expect(conditionsOf({ target: 'GLM[1]' })).toEqual({
    where: 'WHERE (instr(lower(target), ?) > 0)',
    values: ['glm[1]'],
  });
  const pattern = { target: 'GLM[1]*' };
  const rows = ['a/glm[1]', 'glm[1]/a', 'glm1', 'glm[1]/a'].map((target, i) => ({
    number: i + 1,
    target,
    model: '',
    client: '',
    notes: '',
  }));
  const filter = runAtOnce(named(pattern, (after) => rows.slice(after, after + 1)));
  expect(filter).toEqual({ ...pattern, names: { target: ['glm[1]/a'] } });
  expect(conditionsOf(filter)).toEqual({
    where: 'WHERE (target IN (SELECT value FROM json_each(?)))',
    values: ['["glm[1]/a"]'],
  });
});
