/** What the mask of metas remembers of earlier metas changes nothing: every text comes out as from the masks themselves. */

import { expect, test } from 'bun:test';
import fc from 'fast-check';
import { latin1Of, maskText } from '../../../src/samples/mask/body-mask.ts';
import { MetaMask } from '../../../src/samples/mask/meta-mask.ts';
import type { SampleMeta } from '../../../src/samples/sample.ts';

const text = fc.constantFrom(
  'application/json',
  'rex-the-dog-is-secret',
  'Bearer sk-abcdefghijklmnopqrstuvwx0123456789',
  'Größe',
  'a'.repeat(300),
  'sk-abcdefghijklmnopqrstuvwx0123456789',
  'x rex-the-dog-is-secret y',
);
const name = fc.constantFrom('content-type', 'user-agent', 'api_key', 'authorization');
const literals = fc.constantFrom<readonly string[]>(
  [],
  ['rex-the-dog-is-secret'],
  ['application/json'],
);
const meta = fc.dictionary(name, text, { minKeys: 1, maxKeys: 4 });

/** As the masks say, without any memory. */
function masked(value: string, member: string, known: readonly string[]): string {
  const before = latin1Of(`${member}":"`);
  const shown = maskText(before + latin1Of(value), known).slice(before.length);
  return Buffer.from(shown, 'latin1').toString('utf8');
}

test('one meta after another, each with secrets of its own', () => {
  fc.assert(
    fc.property(fc.array(fc.tuple(meta, literals), { minLength: 1, maxLength: 8 }), (metas) => {
      for (const [fields, known] of metas) {
        const shown = new MetaMask(known).whole(fields as unknown as SampleMeta);
        const expected = Object.entries(fields).map(([key, value]) => [
          key,
          masked(value, key, known),
        ]);
        expect(Object.entries(shown)).toEqual<unknown>(expected);
      }
    }),
    { numRuns: 500 },
  );
});
