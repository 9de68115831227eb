/** What a running gateway says of targets that rest: as JSON, in the metrics and the log, and to a command. */

import { afterEach, beforeEach, describe, expect, test } from 'bun:test';
import { cooldownLog } from '../../src/upstream/health/cooldown-log.ts';
import { Key, Model } from '../../src/upstream/health/place.ts';
import { createWorld } from '../cli/world.ts';
import { type InProcess, startInProcess } from '../support/in-process.ts';

let refuses = true;
let vendor: ReturnType<typeof Bun.serve>;
let gateway: InProcess;
const KEY = 'key-of-the-vendor';
const REPLY = {
  id: 'c',
  object: 'chat.completion',
  created: 1,
  model: 'm',
  choices: [{ index: 0, message: { role: 'assistant', content: 'Fine.' }, finish_reason: 'stop' }],
};

const config = (more: object = {}) => ({
  providers: {
    glm: { protocol: 'openai-chat', base_url: `http://127.0.0.1:${vendor.port}`, keys: [KEY] },
    spare: { protocol: 'openai-chat', base_url: `http://127.0.0.1:${vendor.port}/spare` },
  },
  routes: [{ to: ['glm/m', 'spare/m'] }],
  retry: { attempts: 1, base_delay: 0 },
  samples: { mode: 'off' },
  ...more,
});

beforeEach(async () => {
  refuses = true;
  vendor = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    fetch: (request) =>
      refuses && !request.url.includes('/spare')
        ? Response.json(
            { error: { message: 'Slow down.' } },
            { status: 429, headers: { 'retry-after': '40' } },
          )
        : Response.json(REPLY),
  });
  gateway = await startInProcess(config());
});
afterEach(async () => {
  await gateway.stop();
  await vendor.stop(true);
});

const ask = (headers: Record<string, string> = {}) =>
  fetch(`${gateway.url}/v1/chat/completions`, {
    method: 'POST',
    headers,
    body: JSON.stringify({ model: 'm', messages: [{ role: 'user', content: 'hi' }] }),
  });
const health = async (headers: Record<string, string> = {}) =>
  (await fetch(`${gateway.url}/health/targets`, { headers })).json() as Promise<{
    targets: unknown[];
    rests: { since: string; until: string; key: string }[];
  }>;
const metric = async () =>
  (await (await fetch(`${gateway.url}/metrics`)).text())
    .split('\n')
    .filter((line) => line.startsWith('hopgate_target_state{'));
const events = (name: string) =>
  gateway.lines.map((line) => JSON.parse(line)).filter(({ event }) => event === name);

test('what rests, why, until when: over HTTP, in the metrics, in the log; the key nowhere', async () => {
  expect((await ask()).headers.get('x-hopgate-target')).toBe('spare/m');
  const seen = await health();
  expect(seen).toMatchObject({
    targets: [
      { target: 'glm/m', state: 'resting' },
      { target: 'spare/m', state: 'serving' },
    ],
    rests: [{ provider: 'glm', model: 'm', reason: 'rate_limit', status: 429, probing: false }],
  });
  const [rest] = seen.rests;
  expect(Date.parse(rest!.until) - Date.parse(rest!.since)).toBe(40_000);
  expect(Math.abs(Date.parse(rest!.since) - Date.now())).toBeLessThan(30_000);
  expect(await metric()).toEqual([
    'hopgate_target_state{target="glm/m"} 2',
    'hopgate_target_state{target="spare/m"} 0',
  ]);
  expect(events('target.rests')).toMatchObject([
    {
      target: 'glm/m',
      key: rest!.key,
      reason: 'rate_limit',
      status: 429,
      seconds: 40,
      level: 'warn',
    },
  ]);
  expect(JSON.stringify(seen) + gateway.lines.join('')).not.toContain(KEY);
});

test('a rest outlasts a reload; an answer ends it, which the log says', async () => {
  await ask();
  gateway.reload(config({ keep_alive: 7 }));
  const longer = config();
  gateway.reload({
    ...longer,
    providers: { ...longer.providers, glm: { ...longer.providers.glm, models: ['m'] } },
  });
  expect((await health()).targets).toContainEqual({ target: 'glm/m', state: 'resting' });
  refuses = false;
  // The only target of this name: it is asked although it rests.
  gateway.reload(config({ routes: [{ to: ['glm/m'] }] }));
  expect((await ask()).status).toBe(200);
  expect((await health()).rests).toEqual([]);
  expect(events('target.back')).toMatchObject([{ target: 'glm/m', reason: 'rate_limit' }]);
});

describe('who may see it', () => {
  const auth = {
    keys: [
      { name: 'ann', key: 'key-of-a-client-1' },
      { name: 'ops', key: 'key-that-sees-all', sees: 'all' },
    ],
    admin_keys: ['admin-key-of-an-operator'],
  };
  const hosts = [
    '127.0.0.1',
    'localhost',
    '203.0.113.7',
    '[::1]',
    'gateway.example',
    'x.localhost',
  ];
  const bearers = [...auth.keys.map(({ key }) => key), ...auth.admin_keys, 'another', undefined];

  test.each([
    ['operators', [403, 200, 200, 401, 401]],
    ['keys', [200, 200, 200, 401, 401]],
    ['open', [200, 200, 200, 200, 200]],
  ])(
    'once there are keys, auth.metrics: %s decides, and no Host header',
    async (metrics, wanted) => {
      await gateway.stop();
      gateway = await startInProcess(config({ auth: { ...auth, metrics } }));
      for (const path of ['/health/targets', '/health/engines', '/metrics']) {
        for (const host of hosts) {
          const seen = bearers.map(async (key) => {
            const headers = { host, ...(key && { authorization: `Bearer ${key}` }) };
            return (await fetch(`${gateway.url}${path}`, { headers })).status;
          });
          expect([path, host, await Promise.all(seen)]).toEqual([path, host, wanted]);
        }
      }
    },
  );

  test('a key learns of no models that it may not use', async () => {
    await gateway.stop();
    const keys = [
      { name: 'none', key: 'key-of-no-models', models: [] },
      { name: 'one', key: 'key-of-one-model', models: ['spare/m'] },
      { name: 'any', key: 'key-of-all-models' },
    ];
    gateway = await startInProcess(config({ auth: { keys } }));
    const providers = keys.map(async ({ key }) => {
      const headers = { authorization: `Bearer ${key}` };
      const answer = await fetch(`${gateway.url}/ui/api/info`, { headers });
      const { targets } = (await answer.json()) as { targets: string[] };
      return targets.map((target) => target.split('/')[0]);
    });
    expect(await Promise.all(providers)).toEqual([[], ['spare'], ['glm', 'spare']]);
  });
});

describe('hopgate models --explain', () => {
  const explained = async (...more: string[]) => {
    const world = createWorld();
    try {
      world.fetch = fetch;
      const file = world.write(
        'h.yaml',
        JSON.stringify({ ...config(), listen: new URL(gateway.url).host }),
      );
      return await world.run(['models', '--explain', 'm', '--config', file, ...more]);
    } finally {
      world.remove();
    }
  };

  test('says of each target what cools down, as the running gateway knows', async () => {
    await ask();
    const { code, out } = await explained();
    expect(code).toBe(0);
    expect(out).toMatch(
      /glm\/m \(openai-chat, cooling down: passed over while another target serves\)/,
    );
    expect(out).toMatch(/cools down: key-[0-9a-f]{6} \(rate_limit, status 429\) until \d{4}-/);
    expect(out).toMatch(/spare\/m \(openai-chat\)/);
    const { resting } = JSON.parse((await explained('--json')).out);
    expect(resting).toMatchObject([{ target: 'glm/m', passedOver: true }]);
  });

  test('says nothing of it where no gateway runs, or --offline', async () => {
    await ask();
    expect((await explained('--offline')).out).not.toContain('cool');
    await gateway.stop();
    const { code, out } = await explained();
    expect([code, out.includes('cool')]).toEqual([0, false]);
    gateway = await startInProcess(config());
  });
});

describe('reports', () => {
  test('of one target at most every ten seconds, and its end only where its start was logged', () => {
    let now = 1000;
    const told: string[] = [];
    const report = cooldownLog(
      (kind, { target, seconds }) => void told.push(`${kind} ${target} ${seconds}`),
      () => now,
    );
    const key = new Key({ reveal: () => 'k', label: 'key-1' }, 1);
    const model = new Model('m', [key]);
    const place = model.places[0]!;
    const limits = { askedMs: 300_000, longestMs: 300_000 };
    let sent = 0;
    const begin = () => {
      const cause = { reason: 'rate_limit', status: 429, askedMs: 1000 } as const;
      const kind = place.cooldown.refused(cause, ++sent * 1e6, now, limits)!;
      report('p', { kind, cooldown: place.cooldown, place, key });
    };
    const end = () => {
      place.cooldown.answered(++sent * 1e6, now);
      report('p', { kind: 'ended', cooldown: place.cooldown, place, key });
    };
    begin();
    now += 2000;
    end();
    begin();
    now += 2000;
    end();
    expect(told).toEqual(['began p/m 1', 'ended p/m 2']);
    now += 6000;
    begin();
    expect(told.length).toBe(3);
  });
});
