/** The one look at a whole meta never says that there is nothing to mask where one of its texts would be masked. */

import { expect, test } from 'bun:test';
import fc from 'fast-check';
import { MetaMask, masksNothing } from '../../../src/samples/mask/meta-mask.ts';
import type { SampleMeta } from '../../../src/samples/sample.ts';

const SECRET = 'rex-the-dog-is-secret';
const KEY = 'sk-abcdefghijklmnopqrstuvwx0123456789';

const part = fc.constantFrom(
  'application/json',
  SECRET,
  SECRET.slice(0, 10),
  SECRET.slice(10),
  KEY,
  'x',
  '1234567890abcdef1234',
  `${'0123456789abcdef'.repeat(2)}.`,
  '0123456789abcdef',
  'Bearer',
  ' ',
  'https://user:pass',
  '@host',
  '-----BEGIN PRIVATE KEY-----',
  'AAAA',
  '-----END',
  '/api_key=',
  'api_key',
  '"',
  '\\',
  '\n',
  'Größe',
  ',',
  ':',
);
const text = fc.array(part, { maxLength: 4 }).map((parts) => parts.join(''));
const value: fc.Memo<unknown> = fc.memo((depth) =>
  depth <= 1
    ? fc.oneof(text, fc.constantFrom<unknown>(1234567890123456, null, true))
    : fc.oneof(text, fc.array(value(), { maxLength: 3 }), members(depth - 1)),
);
const members = (depth: number) =>
  fc.dictionary(fc.oneof(text, fc.constantFrom('api_key', 'owner', 'id')), value(depth), {
    maxKeys: 4,
  });
const literals = fc.constantFrom<readonly string[]>(
  [],
  [SECRET],
  ['api_key":"1234567890'],
  ['x'.repeat(8), 'application/json'],
);

test('whatever is in the texts, names and arrays of a meta', () => {
  let nothing = 0;
  let something = 0;
  fc.assert(
    fc.property(members(3), literals, (meta, known) => {
      const mask = new MetaMask(known);
      const shown = mask.whole(meta as unknown as SampleMeta);
      if (!masksNothing(JSON.stringify(meta, null, 1), known)) {
        something++;
        return;
      }
      nothing++;
      expect(mask.count).toBe(0);
      expect(shown).toEqual(meta as unknown as SampleMeta);
    }),
    { numRuns: 3000 },
  );
  expect(nothing).toBeGreaterThan(100);
  expect(something).toBeGreaterThan(100);
});
