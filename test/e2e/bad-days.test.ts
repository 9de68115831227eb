/** Days on which the world changes under running requests, through the compiled binary: what was begun is paid for as it began. */

import { afterAll, afterEach, beforeAll, expect, setDefaultTimeout, test } from 'bun:test';
import type { UsageReport } from '../../src/limits/usage-report.ts';
import { type Gateway, startGateway } from '../support/binary.ts';
import { type FakeUpstream, say, startFakeUpstream } from '../support/fake-upstream/index.ts';
import { until } from '../support/until.ts';

setDefaultTimeout(120_000);

const KEY = 'key-of-the-build-server';
const ADMIN = 'key-of-the-admin-0123456789';
const SLOW = 'A slow answer, word by word.';

let upstream: FakeUpstream;
beforeAll(async () => {
  upstream = await startFakeUpstream();
});
afterEach(() => upstream.clear());
afterAll(() => upstream.stop());

/** Each request costs one dollar where there is a price. */
const config = (price: boolean, more: object = {}) => ({
  providers: {
    vendor: {
      protocol: 'openai-chat',
      base_url: upstream.baseUrl('openai-chat'),
      keys: ['sk-upstream'],
      models: ['m1'],
      ...(price ? { prices: { m1: { input: 0, output: 0, request: 1000 } } } : {}),
    },
  },
  samples: { mode: 'off' },
  auth: {
    admin_keys: [ADMIN],
    keys: [
      {
        name: 'ci',
        key: KEY,
        limits: { concurrent: 3, requests_per_minute: 60 },
        budgets: [{ name: 'ten', usd: 10, per: 'total' }],
      },
    ],
  },
  ...more,
});

const headers = { authorization: `Bearer ${KEY}`, 'content-type': 'application/json' };
const ask = (gateway: Gateway, stream = false) =>
  fetch(`${gateway.url}/v1/chat/completions`, {
    method: 'POST',
    headers,
    body: JSON.stringify({ model: 'm1', messages: [{ role: 'user', content: 'hi' }], stream }),
  });

const usage = async (gateway: Gateway) =>
  (await (await fetch(`${gateway.url}/v1/usage`, { headers })).json()) as UsageReport;
const usedOf = async (gateway: Gateway) =>
  Object.fromEntries((await usage(gateway)).limits.map(({ limit, used }) => [limit, used]));

async function reload(gateway: Gateway, to: object): Promise<void> {
  const count = () => gateway.logs().filter(({ event }) => event === 'config.reloaded').length;
  const before = count();
  await Bun.write(gateway.configPath, JSON.stringify(to));
  gateway.signal('SIGHUP');
  await until(() => count() > before);
}

/** Cost of each row of a try, newest first. */
async function costs(gateway: Gateway): Promise<unknown[]> {
  const answer = await fetch(`${gateway.url}/admin/v1/spend`, {
    headers: { authorization: `Bearer ${ADMIN}` },
  });
  const { data } = (await answer.json()) as { data: { cost_nano_usd: number | null }[] };
  return data.map(({ cost_nano_usd }) => cost_nano_usd);
}

test('a price removed while streams run: they cost what they began with, and limits keep what is used', async () => {
  const gateway = await startGateway(config(true));
  try {
    upstream.answerWith(() => say(SLOW, { delivery: { piece: 1, paceMs: 100 } }));
    const streams = await Promise.all([ask(gateway, true), ask(gateway, true), ask(gateway, true)]);
    await reload(gateway, config(false));
    // The reload took none of the slots and none of what is reserved.
    const refused = await ask(gateway);
    expect(refused.status).toBe(429);
    expect(await refused.text()).toContain('concurrent');
    expect(await usedOf(gateway)).toMatchObject({ concurrent: 3 });
    expect((await usage(gateway)).budgets).toMatchObject([{ spent_usd: 0, reserved_usd: 3 }]);
    for (const stream of streams) expect(await stream.text()).toContain('[DONE]');
    await until(async () => (await usedOf(gateway)).concurrent === 0);
    expect((await usage(gateway)).budgets).toMatchObject([{ spent_usd: 3, reserved_usd: 0 }]);
    // What begins now has no price: unknown, never free, and the budget says what it can count.
    upstream.answerWith(() => say('Quick.'));
    const unpriced = await ask(gateway);
    expect(unpriced.status).toBe(200);
    expect(unpriced.headers.get('x-hopgate-cost-usd')).toBe(null);
    await unpriced.text();
    await until(async () => (await costs(gateway)).length === 4);
    expect(await costs(gateway)).toEqual([null, 1e9, 1e9, 1e9]);
    expect((await usage(gateway)).budgets).toMatchObject([{ spent_usd: 3 }]);
    // Those who want no such model say so, and are told why.
    await reload(gateway, config(false, { unpriced: 'refuse' }));
    const none = await ask(gateway);
    expect(none.ok).toBe(false);
    expect(await none.text()).toContain('price');
    await reload(gateway, config(true));
    await (await ask(gateway)).text();
    await until(async () => (await usage(gateway)).budgets[0]!.spent_usd === 4);
  } finally {
    expect(await gateway.stop()).toBe(0);
  }
});

test('reloads under load: no request gets past its limits, none is lost, and each is paid for once', async () => {
  const gateway = await startGateway(config(true));
  try {
    upstream.answerWith(() => say('Well.', { delivery: { piece: 1, paceMs: 10 } }));
    const statuses: number[] = [];
    const client = async () => {
      for (let i = 0; i < 12; i++) {
        const answer = await ask(gateway, i % 2 === 0);
        const text = await answer.text();
        statuses.push(answer.status);
        if (answer.status === 429) expect(text).toMatch(/concurrent|budget/);
        else expect(text).toContain('W');
      }
    };
    const clients = Promise.all(Array.from({ length: 6 }, client));
    for (let i = 0; i < 8; i++) await reload(gateway, config(true, { keep_alive: 10 + i }));
    await clients;
    // Ten dollars, one for each.
    expect(statuses.filter((status) => status === 200)).toHaveLength(10);
    expect(statuses.filter((status) => status !== 200 && status !== 429)).toEqual([]);
    expect(upstream.modelRequests).toHaveLength(10);
    expect((await usage(gateway)).budgets).toMatchObject([{ spent_usd: 10, reserved_usd: 0 }]);
    await until(async () => (await costs(gateway)).length === 10);
    expect(await costs(gateway)).toEqual(Array(10).fill(1e9));
  } finally {
    expect(await gateway.stop()).toBe(0);
  }
});
