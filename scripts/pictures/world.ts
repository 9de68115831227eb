/** The gateway of the pictures, with a vendor that costs nothing, and the traffic of an agent, a chat app and a build. */

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startGateway } from '../../test/support/binary.ts';
import { call, say, startFakeUpstream } from '../../test/support/fake-upstream/index.ts';
import { startToolServers, toolsOf } from '../../test/support/tool-servers.ts';
import { until } from '../../test/support/until.ts';

/** The keys that the page is given: one that sees every exchange, and an admin key. */
export const CLIENT = 'hk-of-the-pictures-laptop';
export const ADMIN = 'hk-of-the-pictures-admin';

const upstream = await startFakeUpstream();
const tools = await startToolServers();
/** The folder of the recorded exchanges. */
export const samples = mkdtempSync(join(tmpdir(), 'hopgate-pictures-'));
const keys = ['sk-upstream'];
const prices = { input: 0.6, cached: 0.11, output: 2.2 };
export const gateway = await startGateway({
  providers: {
    glm: {
      protocol: 'openai-chat',
      base_url: upstream.baseUrl('openai-chat'),
      keys,
      models: ['glm-4.7'],
      prices: { 'glm-4.7': prices },
    },
    deepseek: {
      protocol: 'anthropic-messages',
      base_url: upstream.baseUrl('anthropic-messages'),
      keys,
      models: ['deepseek-v3.2'],
      prices: { 'deepseek-v3.2': prices },
    },
  },
  routes: [
    { when: { model: 'claude-*' }, to: ['glm/glm-4.7', 'deepseek/deepseek-v3.2'] },
    { to: ['deepseek/deepseek-v3.2'] },
  ],
  server_tools: toolsOf(tools),
  samples: { mode: 'all', dir: samples },
  auth: {
    admin_keys: [ADMIN],
    keys: [{ name: 'laptop', key: CLIENT, sees: 'all', labels: { team: 'web' } }],
  },
  budgets: [
    { name: 'web-team', keys: { team: 'web' }, usd: 0.03, per: 'month' },
    { name: 'data-team', keys: { team: 'data' }, usd: 0.02, per: 'month' },
    { name: 'all', usd: 1, per: 'month' },
  ],
});

async function post(
  path: string,
  body: unknown,
  headers: Record<string, string> = {},
  key = CLIENT,
): Promise<string> {
  const response = await fetch(gateway.url + path, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      'user-agent': 'OpenAI/Python 2.8.1',
      authorization: `Bearer ${key}`,
      ...headers,
    },
    body: JSON.stringify(body),
  });
  await response.text();
  return response.headers.get('x-hopgate-request-id') ?? '';
}

const claude = (content: string, more: object = {}) =>
  post(
    '/v1/messages',
    {
      model: 'claude-opus-4-6',
      max_tokens: 1000,
      stream: true,
      system: [{ type: 'text', text: 'Be brief.', cache_control: { type: 'ephemeral' } }],
      messages: [{ role: 'user', content }],
      ...more,
    },
    {
      'anthropic-version': '2023-06-01',
      'user-agent': 'claude-cli/2.1.14 (external, cli)',
      'x-claude-code-session-id': 'tides',
    },
  );

const paced = (firstByteMs: number, paceMs: number) => ({
  delivery: { firstByteMs, paceMs, piece: 6 },
});
const used = (input: number, cached: number, output: number, reasoning = 0) => ({
  usage: { input, cached, output, reasoning },
});

/** Makes a key as an administrator does; resolves with its text. */
async function makeKey(settings: object): Promise<string> {
  const response = await fetch(`${gateway.url}/admin/v1/keys`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${ADMIN}` },
    body: JSON.stringify(settings),
  });
  if (response.status !== 201) throw new Error(await response.text());
  return ((await response.json()) as { key: string }).key;
}

/** Keys as a team has them, two of them in use. */
export async function teams(): Promise<void> {
  const build = await makeKey({
    name: 'nightly-build',
    labels: { team: 'data' },
    models: ['deepseek-*'],
    limits: { requests_per_minute: 60, concurrent: 4 },
  });
  const review = await makeKey({
    name: 'code-review',
    labels: { team: 'web' },
    expires: '2030-01-01',
    budgets: [{ usd: 0.5, per: 'day' }],
  });
  await makeKey({ name: 'contractor', labels: { team: 'web' }, blocked: true });
  const report = 'Summarise the tide report of last night in two lines.';
  const hint = 'Is the fix of the tide table right?';
  for (const [key, content, times] of [
    [build, report, 3],
    [review, hint, 2],
  ] as const) {
    for (let i = 0; i < times; i++) {
      upstream.enqueue(
        say('High water came an hour late, and the gauge at Brest was out for ten minutes.', {
          ...used(2600 + 900 * i, 1200 * i, 180),
          ...paced(140, 15),
        }),
      );
      const messages = [{ role: 'user', content }];
      await post('/v1/chat/completions', { model: 'deepseek-v3.2', messages }, {}, key);
    }
  }
}

/** Exchanges as an agent and a chat app make them. Resolves with the id of the one in three hops. */
export async function traffic(): Promise<string> {
  const declared = { tools: [{ name: 'read_file', input_schema: { type: 'object' } }] };
  upstream.enqueue({
    ...call({ name: 'read_file', arguments: { path: 'src/tides.ts' } }),
    ...used(8200, 0, 61),
    ...paced(310, 20),
  });
  const question = { role: 'user', content: 'Why does the build fail?' };
  await claude('', { ...declared, messages: [question] });
  upstream.enqueue(
    say('The import of the tide table names a file that is gone.', {
      ...used(9100, 8200, 212),
      ...paced(180, 30),
    }),
  );
  const id = 'toolu_01';
  const called = { type: 'tool_use', id, name: 'read_file', input: { path: 'src/tides.ts' } };
  const lines = "import { table } from './tide-table.ts';";
  await claude('', {
    ...declared,
    messages: [
      question,
      { role: 'assistant', content: [called] },
      { role: 'user', content: [{ type: 'tool_result', tool_use_id: id, content: lines }] },
    ],
  });
  upstream.enqueue(say('Noon.', { ...used(420, 0, 12), ...paced(90, 10) }));
  await post('/v1/chat/completions', {
    model: 'deepseek-v3.2',
    messages: [{ role: 'user', content: 'When is high tide at Brest?' }],
  });
  await post('/v1/chat/completions', { model: 'deepseek-v3.2', messages: 'none' });
  tools.slow(60);
  upstream.enqueue(
    {
      ...call({ name: 'web_search', arguments: { query: 'high tide Brest' } }),
      ...used(900, 0, 60, 20),
      ...paced(120, 15),
    },
    {
      ...call({ name: 'stock_price', arguments: { symbol: 'TIDE' } }),
      ...used(1300, 800, 60, 20),
      ...paced(90, 15),
    },
    say('High water at Brest is at noon, and the share stands at 41.5.', {
      ...used(1700, 1200, 60, 20),
      ...paced(150, 25),
    }),
  );
  return claude('When is high tide at Brest, and what does TIDE cost?');
}

/** Replays an exchange at both targets; resolves with the id of the job. */
export async function replayed(id: string): Promise<string> {
  const answer = (time: string) =>
    say(`High water at Brest is at ${time}, and the share stands at 41.5.`, {
      ...used(1700, 1200, 61, 20),
      ...paced(120, 20),
    });
  upstream.enqueue(answer('noon'), answer('a quarter past twelve'));
  const seen = { authorization: `Bearer ${CLIENT}`, 'x-hopgate-ui': '1' };
  const headers = { 'content-type': 'application/json', ...seen };
  const response = await fetch(`${gateway.url}/ui/api/replay`, {
    method: 'POST',
    headers,
    body: JSON.stringify({ id, targets: ['glm/glm-4.7', 'deepseek/deepseek-v3.2'] }),
  });
  const { job } = (await response.json()) as { job: string };
  await until(async () => {
    const answer = await fetch(`${gateway.url}/ui/api/jobs/${job}`, { headers: seen });
    return (await answer.text()).includes('"type":"end"');
  });
  return job;
}

export async function stop(): Promise<void> {
  await gateway.stop();
  await upstream.stop();
  await tools.stop();
  rmSync(samples, { recursive: true, force: true });
}
