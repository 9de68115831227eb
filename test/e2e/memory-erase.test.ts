/** Erasing a space through the compiled binary: its memories and its recordings disappear, in every process. */

import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Gateway, startGateway, threeProviders } from '../support/binary.ts';
import { type FakeUpstream, say, startFakeUpstream } from '../support/fake-upstream/index.ts';

setDefaultTimeout(60_000);

let upstream: FakeUpstream;
let folder: string;
beforeAll(async () => {
  upstream = await startFakeUpstream();
  folder = mkdtempSync(join(tmpdir(), 'hopgate-e2e-erase-'));
});
afterAll(async () => {
  await upstream.stop();
  rmSync(folder, { recursive: true, force: true });
});

/** One turn of a chat that remembers in this space. */
async function turn(
  gateway: Gateway,
  space: string,
  message: string,
  stream: boolean,
): Promise<void> {
  const response = await fetch(`${gateway.url}/v1/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({
      model: 'via-chat',
      stream,
      messages: [{ role: 'user', content: message }],
      hopgate: { memory: { space, recall: 'always', capture: true } },
    }),
  });
  expect([response.status, await response.text()]).toEqual([200, expect.stringContaining('Noted')]);
}

/** Files in a folder that contain these words. */
const traces = (root: string, message: string): readonly string[] =>
  !existsSync(root)
    ? []
    : readdirSync(root, { recursive: true, withFileTypes: true })
        .filter((entry) => entry.isFile())
        .map((entry) => join(entry.parentPath, entry.name))
        .filter((path) => {
          try {
            return readFileSync(path).includes(message);
          } catch {
            // A temporary file that was renamed after it was listed.
            return false;
          }
        });

test.each([1, 2])(
  'with %i workers, erasing a space removes all its data and leaves other spaces alone',
  async (workers) => {
    upstream.answerWith(() => say('Noted.'));
    const root = join(folder, `${workers}`);
    const config = threeProviders(upstream, {
      workers,
      samples: { mode: 'all', dir: join(root, 'samples') },
      memory: { path: join(root, 'memory.db') },
    });
    const gateway = await startGateway(config);
    const stored = join(gateway.home, 'state');
    try {
      for (let at = 0; at < 6; at++) {
        await turn(gateway, 'alice-space', `the zebra${at}quagga is striped`, at % 2 === 0);
        await turn(gateway, 'bob-space', `the okapi${at}giraffe is tall`, at % 2 === 0);
      }
      const listed = async (space: string) => {
        const response = await fetch(`${gateway.url}/v1/memory/${space}/events`);
        return ((await response.json()) as { events: { text: string }[] }).events.map(
          ({ text }) => text,
        );
      };
      const late = performance.now() + 10_000;
      // Captures and samples are written after the answers.
      while (
        traces(join(root, 'samples'), 'quagga').length < 12 ||
        (await listed('alice-space')).length < 6
      ) {
        if (performance.now() > late) throw new Error('the turns were never written');
        await Bun.sleep(50);
      }
      expect((await listed('alice-space')).join()).toContain('zebra5quagga');

      const response = await fetch(`${gateway.url}/v1/memory/alice-space`, { method: 'DELETE' });
      const answer = (await response.json()) as { events: number; samples: number };
      expect(answer).toMatchObject({ space: 'alice-space', erased: true });
      expect([answer.events >= 6, answer.samples]).toEqual([true, 6]);
      expect(await listed('alice-space')).toEqual([]);
      expect((await listed('bob-space')).join()).toContain('okapi5giraffe');
      for (const place of [root, stored]) {
        expect([traces(place, 'quagga'), traces(place, 'alice-space')]).toEqual([[], []]);
      }
      expect(traces(join(root, 'samples'), 'giraffe').length).toBeGreaterThanOrEqual(12);
    } finally {
      await gateway.stop();
    }
  },
);

test('a stored response made with the space is gone', async () => {
  upstream.answerWith(() => say('The quokka smiles.'));
  const gateway = await startGateway(
    threeProviders(upstream, { memory: { path: join(folder, 'stored.db') } }),
  );
  const ask = async (space: string) => {
    const response = await fetch(`${gateway.url}/v1/responses`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({
        model: 'via-chat',
        input: `a quokka of ${space}`,
        hopgate: { memory: { space, recall: 'always' } },
      }),
    });
    expect(response.status).toBe(200);
    return ((await response.json()) as { id: string }).id;
  };
  const status = async (id: string) => (await fetch(`${gateway.url}/v1/responses/${id}`)).status;
  try {
    const [gone, remaining] = [await ask('alice-space'), await ask('bob-space')];
    expect([await status(gone), await status(remaining)]).toEqual([200, 200]);
    await Bun.sleep(500);
    const erased = await fetch(`${gateway.url}/v1/memory/alice-space`, { method: 'DELETE' });
    expect(erased.status).toBe(200);
    expect([await status(gone), await status(remaining)]).toEqual([404, 200]);
    const stored = join(gateway.home, 'state');
    expect(traces(stored, 'quokka of alice-space')).toEqual([]);
    expect(traces(stored, 'quokka of bob-space')).not.toEqual([]);
  } finally {
    await gateway.stop();
  }
});
