/** Tool servers never outlive the gateway, however it ends and however they resist: real processes, the real binary. */

import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { binary, startGateway, threeProviders } from '../../../support/binary.ts';
import { startFakeUpstream } from '../../../support/fake-upstream/index.ts';

const SCRIPT = Bun.fileURLToPath(
  new URL('../../../support/stubborn-mcp-server.ts', import.meta.url),
);
// Without prctl, a process that left its group and its parent cannot be found.
const KINDS = ['stdin', 'term', 'child', ...(process.platform === 'linux' ? ['fork'] : [])];

/** Command lines that contain the word. */
const running = (word: string): readonly string[] =>
  Bun.spawnSync(['ps', '-eo', 'stat=,args='])
    .stdout.toString()
    .split('\n')
    .filter((line) => line.includes(word) && !/^\s*Z/.test(line));

async function within(ms: number, holds: () => boolean): Promise<boolean> {
  for (const until = performance.now() + ms; performance.now() < until; ) {
    if (holds()) return true;
    await Bun.sleep(30);
  }
  return holds();
}

let upstream: Awaited<ReturnType<typeof startFakeUpstream>>;
beforeAll(async () => {
  upstream = await startFakeUpstream();
  await binary();
}, 120_000);
afterAll(() => upstream.stop());

async function gatewayWithServers() {
  const mark = `${600 + Math.floor(Math.random() * 1e6)}.${Date.now() % 1000}`;
  const server = (kind: string) => ({ command: process.execPath, args: [SCRIPT, kind, mark] });
  const mcp = Object.fromEntries(KINDS.map((kind) => [kind, server(kind)]));
  const gateway = await startGateway(threeProviders(upstream, { server_tools: { mcp } }));
  const ask = async () => {
    const body = { model: 'via-chat', messages: [{ role: 'user', content: 'Hello' }] };
    const answer = await fetch(`${gateway.url}/v1/chat/completions`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
    });
    await answer.text();
  };
  await ask();
  // Each server, and the children of two of them.
  const all = KINDS.length + KINDS.filter((kind) => kind === 'child' || kind === 'fork').length;
  expect(await within(8000, () => running(mark).length === all)).toBe(true);
  const events = gateway.logs().filter(({ event }) => event === 'mcp.up');
  expect(events.length).toBe(KINDS.length);
  return { gateway, mark };
}

describe('tool servers that ignore the end of stdin, ignore SIGTERM, have a child, or one that hides', () => {
  test('they end with an orderly stop of the gateway', async () => {
    const { gateway, mark } = await gatewayWithServers();
    gateway.signal('SIGTERM');
    expect(await gateway.exited).toBe(0);
    expect(running(mark)).toEqual([]);
    await gateway.stop();
  }, 60_000);

  test('they end soon after the gateway is killed', async () => {
    const { gateway, mark } = await gatewayWithServers();
    gateway.signal('SIGKILL');
    await gateway.exited;
    await within(5000, () => running(mark).length === 0);
    expect(running(mark)).toEqual([]);
    await gateway.stop();
  }, 60_000);

  test('they end soon after they disappear from the configuration', async () => {
    const { gateway, mark } = await gatewayWithServers();
    await Bun.write(gateway.configPath, JSON.stringify(threeProviders(upstream)));
    gateway.signal('SIGHUP');
    await within(6000, () => running(mark).length === 0);
    expect(running(mark)).toEqual([]);
    await gateway.stop();
  }, 60_000);
});
