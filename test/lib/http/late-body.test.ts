/** A body that is made late arrives as it is, with its length, whatever its size. */

import { afterAll, describe, expect, test } from 'bun:test';
import { lateBody } from '../../../src/lib/http/late-body.ts';

const SIZES = [0, 1, 8192, 8193, 16_384, 100_000, 262_144, 262_145, 1_000_000];
const FORMS: Readonly<Record<string, (size: number) => Uint8Array | string>> = {
  bytes: (size) => Uint8Array.from({ length: size }, (_, at) => at % 251),
  'a view into more bytes': (size) => new Uint8Array(size + 20).fill(7).subarray(10, size + 10),
  'text of one byte a character': (size) => 'abcdefg'.repeat(Math.ceil(size / 7)).slice(0, size),
  'text of three bytes a character': (size) => '€'.repeat(size),
};

const bodies = new Map<string, Uint8Array | string>();
const server = Bun.serve({
  port: 0,
  async fetch({ url }) {
    await new Promise((done) => setImmediate(done));
    const body = bodies.get(new URL(url).pathname) ?? '';
    return new Response(lateBody(body) as ReadableStream, { headers: { 'x-own': 'kept' } });
  },
});
afterAll(() => server.stop(true));

for (const [form, make] of Object.entries(FORMS)) {
  describe(form, () => {
    for (const size of SIZES) {
      test(`${size}: neither cut nor changed`, async () => {
        const body = make(size);
        bodies.set(`/${form.length}-${size}`, body);
        const answer = await fetch(new URL(`/${form.length}-${size}`, server.url));
        const got = await answer.bytes();
        expect(Buffer.compare(got, Buffer.from(body as Uint8Array))).toBe(0);
        expect(answer.headers.get('x-own')).toBe('kept');
        const length = answer.headers.get('content-length');
        if (form !== 'text of three bytes a character') expect(length).toBe(String(got.length));
      });
    }
  });
}
