/** Budgets end to end: what is left over is what was spent, and not one request more gets through. */

import { afterEach, describe, expect, test } from 'bun:test';
import { type InProcess, startInProcess } from '../support/in-process.ts';
import { startVendor, type Vendor } from './vendor.ts';

const SURFACES = [
  ['openai-chat', '/v1/chat/completions', 429],
  ['openai-responses', '/v1/responses', 429],
  ['anthropic-messages', '/v1/messages', 402],
] as const;

let vendor: Vendor | undefined;
let gateway: InProcess | undefined;

afterEach(async () => {
  await gateway?.stop();
  vendor?.stop();
});

const counted = { input: 10, cached: 0, output: 5, reasoning: 0 };
const ADMIN = 'admin-key-0123456789';

/** Each request costs one dollar, whatever its tokens are; the key has ten. */
async function start(more: object = {}) {
  vendor = startVendor();
  vendor.script({ ending: 'done', counted });
  gateway = await startInProcess({
    providers: {
      up: {
        protocol: 'openai-chat',
        base_url: `${vendor.url}/v1`,
        models: ['m', 'free', 'unknown'],
        prices: { m: { input: 0, output: 0, request: 1000 }, free: { input: 0, output: 0 } },
      },
    },
    auth: {
      admin_keys: [ADMIN],
      keys: [
        {
          name: 'ci',
          key: 'k'.repeat(32),
          labels: { team: 'web' },
          budgets: [{ usd: 10, per: 'total', ...more }],
        },
      ],
    },
    samples: { mode: 'off' },
  });
  return { vendor, gateway };
}

const ask = (path: string, model = 'm') =>
  fetch(gateway!.url + path, {
    method: 'POST',
    headers: { authorization: `Bearer ${'k'.repeat(32)}`, 'anthropic-version': '2023-06-01' },
    body: JSON.stringify(
      path.endsWith('responses')
        ? { model, input: 'Hi.' }
        : { model, max_tokens: 100, messages: [{ role: 'user', content: 'Hi.' }] },
    ),
  });

describe.each(SURFACES)('%s', (_, path, refused) => {
  test('of 100 requests at once, a budget for ten lets ten through', async () => {
    const { vendor } = await start();
    const answers = await Promise.all(Array.from({ length: 100 }, () => ask(path)));
    const statuses = answers.map(({ status }) => status);
    expect(statuses.filter((status) => status === 200)).toHaveLength(10);
    expect(statuses.filter((status) => status === refused)).toHaveLength(90);
    expect(vendor.requests).toBe(10);
    const [first] = answers.filter(({ status }) => status === 200);
    expect(first!.headers.get('x-hopgate-cost-usd')).toBe('1');
    const why = await answers.find(({ status }) => status === refused)!.text();
    expect(why).toContain('10');
  });
});

test('a refused try gives its reservation back', async () => {
  const { vendor } = await start();
  vendor.script({ ending: 'refused' });
  for (let i = 0; i < 12; i++)
    expect((await ask('/v1/chat/completions')).status).toBeGreaterThanOrEqual(500);
  vendor.script({ ending: 'done', counted });
  const statuses = [];
  for (let i = 0; i < 11; i++) statuses.push((await ask('/v1/chat/completions')).status);
  expect(statuses).toEqual([...Array.from({ length: 10 }, () => 200), 429]);
});

test('usage by key, label and model, rows and CSV are the same money', async () => {
  await start();
  for (let i = 0; i < 3; i++) await ask('/v1/chat/completions');
  await ask('/v1/chat/completions', 'free');
  await ask('/v1/chat/completions', 'unknown');
  const get = async (path: string) => {
    const response = await fetch(`${gateway!.url}/admin/v1/${path}`, {
      headers: { authorization: `Bearer ${ADMIN}` },
    });
    expect(response.status).toBe(200);
    return response;
  };
  const byKey = (await (await get('usage?by=key')).json()) as { data: object[] };
  expect(byKey.data).toMatchObject([{ name: 'ci', tries: 5, cost_usd: 3, unpriced: 1 }]);
  const byLabel = (await (await get('usage?by=label.team&step=day')).json()) as { data: object[] };
  expect(byLabel.data).toMatchObject([{ name: 'web', tries: 5, cost_usd: 3 }]);
  const byModel = (await (await get('usage?by=model')).json()) as { data: { name: string }[] };
  expect(byModel.data.map(({ name }) => name).toSorted()).toEqual(['free', 'm', 'unknown']);
  const rows = (await (await get('spend?limit=2')).json()) as { data: object[]; next: string };
  expect(rows.data).toHaveLength(2);
  expect(rows.data[0]).toMatchObject({ model: 'unknown', cost_nano_usd: null, price: null });
  expect(rows.data[1]).toMatchObject({
    model: 'free',
    cost_nano_usd: 0,
    key: 'ci',
    labels: { team: 'web' },
  });
  const rest = (await (await get(`spend?before=${rows.next}`)).json()) as {
    data: { cost_nano_usd: number }[];
    next: null;
  };
  expect(rest.data.map((row) => row.cost_nano_usd)).toEqual([1e9, 1e9, 1e9]);
  expect(rest.next).toBeNull();
  const csv = await (await get('spend?format=csv')).text();
  expect(csv.trim().split('\r\n')).toHaveLength(6);
  const misspelled = await fetch(`${gateway!.url}/admin/v1/spend?keys=ci`, {
    headers: { authorization: `Bearer ${ADMIN}` },
  });
  expect(misspelled.status).toBe(400);
});
