/** A server that says without end that its tools have changed: one list at a time, and the last list has it all. */

import { expect, test } from 'bun:test';
import type {
  Dial,
  McpListeners,
} from '../../../../../src/features/server-tools/tools/mcp/dial.ts';
import { McpServer } from '../../../../../src/features/server-tools/tools/mcp/server.ts';
import { until } from '../../../../support/until.ts';

const NOTIFICATIONS = 200_000;

function flooding() {
  let heard: McpListeners | undefined;
  let version = 0;
  let running = 0;
  const seen = { most: 0, lists: 0, fails: false, hold: undefined as Promise<void> | undefined };
  const dial: Dial = async (_, listeners) => {
    heard = listeners;
    return {
      async list() {
        seen.lists++;
        seen.most = Math.max(seen.most, ++running);
        const name = `v${version}`;
        await (seen.hold ?? Bun.sleep(1));
        running--;
        if (seen.fails) throw new Error('no list now');
        return [{ name, description: '', schema: { type: 'object' } } as never];
      },
      call: async () => ({}),
      close: async () => {},
    };
  };
  const options = { name: 's', args: [], env: {}, cwd: '/', headers: {}, timeoutMs: 5000 };
  const server = new McpServer(options, { dial, log: () => {}, onTools: () => {} });
  const change = () => {
    version++;
    heard!.onToolsChanged();
  };
  return { server, seen, change, newest: () => `v${version}` };
}

const signal = new AbortController().signal;

test('one list at a time, and the newest tools in the end', async () => {
  const { server, seen, change, newest } = flooding();
  await server.start(signal);
  for (let i = 0; i < NOTIFICATIONS; i++) change();
  await until(() => server.tools[0]?.name === newest());
  expect(seen.most).toBe(1);
  expect(seen.lists).toBeLessThanOrEqual(3);
});

test('a list that fails is followed by the next', async () => {
  const { server, seen, change, newest } = flooding();
  await server.start(signal);
  seen.fails = true;
  change();
  await until(() => seen.lists === 2);
  await Bun.sleep(5);
  seen.fails = false;
  change();
  await until(() => server.tools[0]?.name === newest());
  expect(seen.most).toBe(1);
});

test('what changes while a list is under way is in the next', async () => {
  const { server, seen, change, newest } = flooding();
  await server.start(signal);
  const held = Promise.withResolvers<void>();
  seen.hold = held.promise;
  for (let i = 0; i < 5; i++) change();
  expect(seen.lists).toBe(2);
  held.resolve();
  await until(() => server.tools[0]?.name === newest());
  expect(seen.lists).toBe(3);
});
