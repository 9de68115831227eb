/** Headers that are used again beside such as are made anew. */

import { expect, test } from 'bun:test';
import fc from 'fast-check';
import { FlatHeaders } from '../../../src/lib/http/headers.ts';
import { nativeHeaders } from '../../../src/lib/http/native-headers.ts';

const NAMES = ['content-type', 'x-request-id', 'retry-after', 'x-a', 'x-b'];
const fields = fc
  .subarray(NAMES)
  .chain((names) =>
    fc.tuple(
      ...names.map((name) => fc.tuple(fc.constant(name), fc.stringMatching(/^[a-z0-9]{0,3}$/))),
    ),
  );

test('no answer bears a value of the one before it, and none changes behind its back', () => {
  fc.assert(
    fc.property(fc.array(fields, { maxLength: 30 }), (answers) => {
      const made = answers.map((all) => {
        const list = FlatHeaders.of(Object.fromEntries(all));
        return [new Response('', { headers: nativeHeaders(list) }), list] as const;
      });
      for (const [response, list] of made) {
        expect([...response.headers]).toEqual([...new Headers(list.record())]);
      }
    }),
  );
});

test('a value that cannot be sent leaves the others as they were', () => {
  const list = (a: string, b: string) => FlatHeaders.of({ 'x-first': a, 'x-second': b });
  nativeHeaders(list('1', '1'));
  expect(() => nativeHeaders(list('2', '\u4e2d'))).toThrow(TypeError);
  const { headers } = new Response('', { headers: nativeHeaders(list('2', '3')) });
  expect([...headers]).toEqual([
    ['x-first', '2'],
    ['x-second', '3'],
  ]);
});
