/** Gateway keys that every client or no client could use are refused. */

import { describe, expect, test } from 'bun:test';
import { createHash } from 'node:crypto';
import { bad, PROVIDER, parse } from '../support.ts';

const digest = (text: string) => `sha256:${createHash('sha256').update(text).digest('hex')}`;
const keys = (...all: unknown[]) => `${PROVIDER}auth: ${JSON.stringify({ keys: all })}\n`;

describe('a gateway key', () => {
  test.each([
    [digest('')],
    [digest('').toUpperCase().replace('SHA256', 'sha256')],
    ['sha256:abcd'],
    ['sha256:'],
    [`${digest('k')}0`],
    [`${digest('k').slice(0, -1)}g`],
    ['  '],
  ])('is refused where it would match every client or none: %s', (key) => {
    expect(bad(keys(key)).map(({ path }) => path)).toEqual(['auth.keys[0]']);
    expect(bad(keys('fine', { name: 'x', key })).map(({ path }) => path)).toEqual([
      'auth.keys[1].key',
    ]);
  });

  test('may be a whole digest, or any text', () => {
    for (const key of [digest('k'), 'sk-1', 'SHA-256 of what', 'sha256']) {
      expect(parse(keys(key)).ok).toBe(true);
    }
  });

  test('with the name of another key gets a warning', () => {
    const result = parse(
      keys({ name: 'x', key: 'a-long-enough-key-1' }, { name: 'x', key: 'a-long-enough-key-2' }),
    );
    expect(result.ok && result.warnings.map(({ path }) => path)).toEqual(['auth.keys[1].name']);
  });
});
