/** Files of spend that somebody removes, or that cannot be read, under a gateway that runs. */

import { afterEach, beforeEach, expect, setDefaultTimeout, test } from 'bun:test';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type InProcess, startInProcess } from '../support/in-process.ts';
import { until } from '../support/until.ts';

setDefaultTimeout(30_000);

const KEY = 'k'.repeat(32);
const ADMIN = 'a'.repeat(32);
const open: InProcess[] = [];
let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'hopgate-lost-files-'));
});
afterEach(async () => {
  for (const one of open.splice(0)) await one.stop();
  rmSync(folder, { recursive: true, force: true });
});

async function start(home: string) {
  const config = {
    auth: { keys: [{ name: 'ann', key: KEY }], admin_keys: [ADMIN] },
    samples: { mode: 'off' },
  };
  const gateway = await startInProcess(config, join(folder, home));
  open.push(gateway);
  return gateway;
}

async function ask({ url }: InProcess, times: number) {
  for (let i = 0; i < times; i++) {
    const answer = await fetch(`${url}/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${KEY}`, 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'demo/demo', messages: [{ role: 'user', content: 'hi' }] }),
    });
    expect(answer.status).toBe(200);
    await answer.text();
  }
}

const report = ({ url }: InProcess, path: string) =>
  fetch(`${url}/admin/v1/${path}`, { headers: { authorization: `Bearer ${ADMIN}` } });

const rows = async (gateway: InProcess): Promise<number> => {
  const answer = await report(gateway, 'spend');
  const { data } = (await answer.json()) as { data?: readonly unknown[] };
  return data?.length ?? -1;
};

const told = ({ lines }: InProcess, event: string) =>
  lines.filter((line) => line.includes(`"event":"${event}"`)).length;

test('a home that is emptied: what is paid for next is in the ledger, also after a restart, and it is told', async () => {
  const gateway = await start('home');
  await ask(gateway, 2);
  await until(async () => (await rows(gateway)) === 2);
  rmSync(join(folder, 'home', 'state'), { recursive: true });
  await ask(gateway, 3);
  await until(async () => (await rows(gateway)) >= 3);
  // The journal and the tables are seen to by themselves.
  await until(() => told(gateway, 'spend.recovered') === told(gateway, 'spend.problem'));
  expect([1, 2]).toContain(told(gateway, 'spend.problem'));
  const before = await rows(gateway);
  await open.pop()!.stop();
  expect(await rows(await start('home'))).toBe(before);
});

test('a home that is a file: requests are served, and reports are a 503 that says why', async () => {
  writeFileSync(join(folder, 'file'), '');
  const gateway = await start('file');
  await ask(gateway, 1);
  for (const path of ['spend', 'usage?by=key']) {
    const answer = await report(gateway, path);
    expect([answer.status, await answer.json()]).toMatchObject([
      503,
      { error: { code: 'spend_unreadable', message: expect.stringContaining('spend.db') } },
    ]);
  }
});
