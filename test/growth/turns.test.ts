/** Large input is processed in slices: the longest turn of the event loop does not grow with it. */

import { describe, expect, test } from 'bun:test';
import { topLevelInSlices } from '../../src/lib/json/large-json.ts';
import { startInProcess } from '../support/in-process.ts';
import { turnsOf } from '../support/longest-turn.ts';

const MB = 1024 * 1024;
/** Four times the input; work in a single turn takes four times as long. */
const GROWS = 2.5;
/** A turn below this many milliseconds counts as noise. */
const MIN = 12;

/** Throws when the longest turn grows with the input; a bad measurement is repeated. */
async function expectEvenTurns(
  work: (size: number) => Promise<unknown>,
  size: number,
): Promise<void> {
  let previous: readonly number[] = [];
  for (let i = 0; i < 5; i++) {
    await work(size);
    const { longest: small } = await turnsOf(() => work(size));
    const { longest: large } = await turnsOf(() => work(4 * size));
    previous = [small, large];
    if (large < GROWS * Math.max(small, MIN)) return;
  }
  throw new Error(`the longest turn takes ${previous.map((ms) => ms.toFixed(1)).join(' and ')} ms`);
}

describe('slices over a large body', () => {
  const FILLS: Readonly<Record<string, readonly [string, string, string]>> = {
    brackets: ['{"a":[', '[],', '1]}'],
    numbers: ['{"a":[', '1,', '1]}'],
    'white space between': ['{"a":[', `1,${' '.repeat(1000)}`, '1]}'],
    'escaped quotes': ['{"a":"', '\\"', '"}'],
    'strings of a letter': ['{"a":[', '"x",', '1]}'],
  };
  test.each(Object.keys(FILLS))(
    '%s',
    async (name) => {
      const [before, fill, behind] = FILLS[name]!;
      const bodies = new Map<number, Buffer>();
      const bodyOf = (size: number) => {
        const made = Buffer.from(before + fill.repeat(size / fill.length) + behind);
        bodies.set(size, made);
        return made;
      };
      for (const size of [8 * MB, 32 * MB]) bodyOf(size);
      await expectEvenTurns(async (size) => {
        expect((await topLevelInSlices(bodies.get(size)!)) as Map<string, unknown>).toHaveProperty(
          'size',
          1,
        );
      }, 8 * MB);
    },
    30_000,
  );
});

test('comments of a silent vendor are read in slices', async () => {
  const flood = Buffer.from(': nothing\n\n'.repeat(6000));
  const vendor = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    fetch: () =>
      new Response(
        new ReadableStream({
          pull(controller) {
            controller.enqueue(flood);
          },
        }),
        { headers: { 'content-type': 'text/event-stream' } },
      ),
  });
  const gatewayOf = (bytes: number) =>
    startInProcess({
      listen: '127.0.0.1:0',
      providers: {
        evil: {
          protocol: 'openai-chat',
          base_url: `http://127.0.0.1:${vendor.port}/v1`,
          keys: ['sk-evil-0123456789abcdef'],
          models: ['*'],
        },
      },
      limits: { frame_bytes: bytes },
    });
  const gateways = { [8 * MB]: await gatewayOf(8 * MB), [32 * MB]: await gatewayOf(32 * MB) };
  try {
    await expectEvenTurns(async (size) => {
      const response = await fetch(`${gateways[size]!.url}/v1/chat/completions`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({
          model: 'evil/x',
          stream: true,
          messages: [{ role: 'user', content: 'hi' }],
        }),
      });
      expect(await response.text()).toContain('limits.frame_bytes');
    }, 8 * MB);
  } finally {
    for (const gateway of Object.values(gateways)) await gateway.stop();
    await vendor.stop(true);
  }
}, 60_000);
