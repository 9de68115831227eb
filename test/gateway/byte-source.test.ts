/** Whose silence it is: an upstream that says nothing is given up, a client that reads slowly is waited for. */

import { expect, test } from 'bun:test';
import { ByteSource } from '../../src/gateway/byte-source.ts';
import { Abort } from '../../src/lib/abort.ts';
import type { ChunkSource } from '../../src/upstream/transport.ts';

const IDLE_MS = 300;
const chunk = new Uint8Array([1]);

/** An upstream that sends one chunk, and a second one when `more` resolves. */
function source(more: Promise<void>) {
  const abort = new Abort();
  const gone = new Promise<never>((_, reject) => {
    abort.listen({ onAbort: reject });
  });
  gone.catch(() => {});
  let taking = false;
  const body: ChunkSource = {
    next: () => undefined,
    all: () => chunk,
    cancel() {},
    stirred: () => taking,
    async each(taker) {
      const give = async () => {
        taking = true;
        await taker.take(chunk);
        taking = false;
      };
      await give();
      await Promise.race([more, gone]);
      await give();
    },
  };
  let released = 0;
  const release = () => {
    released++;
  };
  const options = { provider: 'up', idleMs: IDLE_MS, abort, lease: { release } };
  return { bytes: new ByteSource(body, options), released: () => released };
}

test('a client that takes longer than the upstream may be silent costs it nothing', async () => {
  const { bytes, released } = source(Promise.resolve());
  let taken = 0;
  await bytes.each({
    take: async () => {
      taken++;
      await Bun.sleep(IDLE_MS * 3);
    },
  });
  expect([taken, released()]).toEqual([2, 1]);
});

test('an upstream that falls silent is given up, in words, and its slot is given back', async () => {
  const { bytes, released } = source(new Promise(() => {}));
  const failure = bytes.each({ take: () => undefined });
  await expect(failure).rejects.toMatchObject({
    kind: 'timeout',
    message: 'Provider up sent nothing for 0 s.',
  });
  expect(released()).toBe(1);
});
