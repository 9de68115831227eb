/** Replays and bisections from the page: progress, results, cancelling, limits, whose samples they make, a restart. */

import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test';
import { isObject, type Json, type JsonObject } from '../../../../src/lib/json/json.ts';
import type {
  BisectResult,
  JobEnd,
  JobEvent,
  LiveEvent,
  ReplayResult,
  SampleDetail,
} from '../../../../src/ui/api/api.ts';
import { chatHistory } from '../../../samples/record/histories.ts';
import { startGateway } from '../../../support/binary.ts';
import { refuse, say } from '../../../support/fake-upstream/index.ts';
import { until } from '../../../support/until.ts';
import {
  type ApiSetup,
  client,
  eventsIn,
  eventsOfJob,
  eventsUntil,
  startApiSetup,
} from '../../api-setup.ts';

setDefaultTimeout(60_000);

const CHAT = '/v1/chat/completions';
const OPERATION_FAILED = { error: { code: '500', message: 'Operation failed' } };

const list = (value: Json | undefined) => (Array.isArray(value) ? (value as readonly Json[]) : []);

/** Whether GLM fails on the body: its last tool result is a large record of an executed tool. */
function glmFails(body: JsonObject): boolean {
  const last = list(body.messages).findLast((one) => isObject(one) && one.role === 'tool');
  const content = isObject(last) ? last.content : undefined;
  return typeof content === 'string' && content.length > 8192 && content.includes('rcc.tool.v1');
}

/** @param ms duration of an answer */
const asGlm = (setup: ApiSetup, ms = 0) =>
  setup.upstream.answerWith(({ body }) =>
    glmFails(body)
      ? { ...refuse(500, {}, OPERATION_FAILED), firstByteMs: ms }
      : say('Fine.', { delivery: { firstByteMs: ms } }),
  );

type Caller = Pick<ApiSetup, 'send' | 'json'>;

async function begin(setup: Caller, path: string, body: unknown, headers = {}): Promise<string> {
  const response = await setup.send('POST', path, body, headers);
  const text = await response.text();
  expect([response.status, text]).toEqual([202, expect.any(String)]);
  return (JSON.parse(text) as { job: string }).job;
}

const follow = (setup: Caller, job: string, headers = {}): Promise<readonly JobEvent[]> =>
  Array.fromAsync(eventsOfJob(setup, job, headers));

function endOf(events: readonly JobEvent[]): JobEnd['result'] {
  const end = events.at(-1)!;
  if (end.type !== 'end') throw new Error(JSON.stringify(end));
  return end.result;
}

function replayed(events: readonly JobEvent[]): ReplayResult {
  const result = endOf(events);
  if (result === null || !('runs' in result)) throw new Error(JSON.stringify(events.at(-1)));
  return result;
}

function bisected(events: readonly JobEvent[]): BisectResult {
  const result = endOf(events);
  if (result === null || !('cause' in result)) throw new Error(JSON.stringify(events.at(-1)));
  return result;
}

let gatewaySetup: ApiSetup;
let failing: string;
beforeAll(async () => {
  gatewaySetup = await startApiSetup();
  asGlm(gatewaySetup);
  failing = await gatewaySetup.post(CHAT, { ...chatHistory(60), model: 'via-chat' });
  await gatewaySetup.rows(1);
});
afterAll(() => gatewaySetup.stop());

describe('a replay', () => {
  test('a replay reports every answer as it arrives, and how many failed at the end', async () => {
    const job = await begin(gatewaySetup, 'replay', {
      id: failing,
      repeat: 6,
    });
    const events = await follow(gatewaySetup, job);
    const runs = events.filter((event) => event.type === 'run');
    expect(runs.map((event) => event.run.run)).toEqual([1, 2, 3, 4, 5, 6]);
    expect(events[0]).toEqual({ type: 'begin', total: 6 });
    const { settings, runs: all } = replayed(events);
    expect(settings.map(({ failed }) => failed)).toEqual([6]);
    expect(all[0]).toMatchObject({
      sample: failing,
      status: 500,
      error: { message: 'Operation failed' },
      recorded: { status: 500 },
    });
    // A late subscriber gets every event.
    expect(await follow(gatewaySetup, job)).toEqual([...events]);
  });

  test('a replay sends the exact bytes that went to the vendor when that stage is named', async () => {
    const job = await begin(gatewaySetup, 'replay', { id: failing, stage: 'provider-request' });
    replayed(await follow(gatewaySetup, job));
    const [sent, before] = [
      gatewaySetup.upstream.modelRequests.at(-1)!,
      gatewaySetup.upstream.modelRequests[0]!,
    ];
    expect(sent.body).toEqual(before.body);
  });

  test('a replay goes to the given target', async () => {
    const job = await begin(gatewaySetup, 'replay', { id: failing, to: 'messages/m1' });
    expect(replayed(await follow(gatewaySetup, job)).runs[0]!.target).toBe('messages/m1');
    expect(gatewaySetup.upstream.modelRequests.at(-1)!.protocol).toBe('anthropic-messages');
  });

  test('a replay stops when it is cancelled, even during a request, and returns the results so far', async () => {
    asGlm(gatewaySetup, 150);
    try {
      const job = await begin(gatewaySetup, 'replay', { id: failing, repeat: 100 });
      const events = eventsOfJob(gatewaySetup, job);
      await eventsUntil(events, (event) => event.type === 'run' && event.run.run === 2);
      expect((await gatewaySetup.send('DELETE', `jobs/${job}`)).status).toBe(204);
      const all = await follow(gatewaySetup, job);
      expect(all.at(-1)).toMatchObject({ state: 'cancelled' });
      const { length } = replayed(all).runs;
      expect(length).toBeGreaterThanOrEqual(2);
      expect(length).toBeLessThan(20);
      const requestCount = gatewaySetup.upstream.modelRequests.length;
      await Bun.sleep(500);
      expect(gatewaySetup.upstream.modelRequests.length).toBe(requestCount);
    } finally {
      asGlm(gatewaySetup);
    }
  });

  test('four run at a time, the fifth is refused; other requests are served meanwhile', async () => {
    asGlm(gatewaySetup, 100);
    const jobs: string[] = [];
    try {
      for (let i = 0; i < 4; i++)
        jobs.push(await begin(gatewaySetup, 'replay', { id: failing, repeat: 50 }));
      const fifth = await gatewaySetup.send('POST', 'replay', { id: failing });
      expect([fifth.status, await fifth.json()]).toMatchObject([
        429,
        { error: { kind: 'rate_limit' } },
      ]);
      expect((await fetch(`${gatewaySetup.gateway.url}/healthz`)).status).toBe(200);
    } finally {
      for (const job of jobs) await gatewaySetup.send('DELETE', `jobs/${job}`);
      for (const job of jobs) await follow(gatewaySetup, job);
      asGlm(gatewaySetup);
    }
  });

  test('a replay is paid for by the key that asks for it, and ends where its budget does', async () => {
    const headers = { authorization: 'Bearer ann-secret-key' };
    const own = await startApiSetup(
      {
        auth: {
          admin_keys: ['key-of-the-admin'],
          keys: [{ name: 'ann', key: 'ann-secret-key', budgets: [{ usd: 3, per: 'total' }] }],
        },
      },
      { prices: { '*': { input: 0, output: 0, request: 1000 } } },
    );
    try {
      asGlm(own);
      const messages = [{ role: 'user', content: 'Hi.' }];
      const id = await own.post(CHAT, { messages, model: 'via-chat' }, headers);
      await until(async () => {
        const response = await own.api(`samples/${id}`, { headers });
        return response.ok && ((await response.json()) as SampleDetail).meta.state === 'done';
      });
      const job = await begin(own, 'replay', { id, repeat: 4 }, headers);
      const { runs } = replayed(await follow(own, job, headers));
      expect(runs.map(({ status }) => status)).toEqual([200, 200, 429, 429]);
      expect(own.upstream.modelRequests).toHaveLength(3);
      const admin = { authorization: 'Bearer key-of-the-admin' };
      const spend = await until(async () => {
        const answer = await fetch(`${own.gateway.url}/admin/v1/spend`, { headers: admin });
        const { data } = (await answer.json()) as {
          data: readonly { key: string; cost_nano_usd: number }[];
        };
        return data.length >= 3 && data;
      });
      expect(spend.map(({ key, cost_nano_usd }) => [key, cost_nano_usd])).toEqual(
        Array(3).fill(['ann', 1e9]),
      );
    } finally {
      await own.stop();
    }
  });

  test('an unknown job is not found', async () => {
    expect((await gatewaySetup.api('jobs/job_1_x')).status).toBe(404);
    expect((await gatewaySetup.send('DELETE', 'jobs/job_1_x')).status).toBe(404);
  });
});

describe('a bisection', () => {
  test('a bisection names the cause within its budget, probe by probe, and its samples appear in the list', async () => {
    const live = eventsIn<LiveEvent>(await gatewaySetup.api('live'));
    const job = await begin(gatewaySetup, 'bisect', { id: failing, budget: 40 });
    const events = await follow(gatewaySetup, job);
    const probes = events.filter((event) => event.type === 'probe');
    expect(probes.length).toBeGreaterThan(5);
    expect(probes.length).toBeLessThanOrEqual(40);
    expect(probes.map(({ probe }) => probe.spent)).toEqual(probes.map((_, i) => i + 1));
    const bests = probes.map(({ probe }) => probe.best);
    expect(bests).toEqual(bests.toSorted((a, b) => b - a));
    const result = bisected(events);
    expect(result.cause!.at).toMatch(/^\/messages\/\d+/);
    expect(result.words).toContain('tool result');
    expect(result.failure).toMatchObject({ message: 'Operation failed' });
    const { minimal, passing } = result.samples;
    for (const [id, status] of [
      [minimal, 500],
      [passing, 200],
    ] as const) {
      const { meta } = await gatewaySetup.json<SampleDetail>(`samples/${id}`);
      expect(meta.status).toBe(status);
      expect(meta.about).toContain(failing);
    }
    await eventsUntil(live, (event) => event.type === 'row' && event.row.id === passing);
  });

  test('the same bisection cannot run twice at a time; cancelled and started again it resumes', async () => {
    asGlm(gatewaySetup, 60);
    try {
      const body = { id: failing, stage: 'provider-request', budget: 60 };
      const job = await begin(gatewaySetup, 'bisect', body);
      expect((await gatewaySetup.send('POST', 'bisect', body)).status).toBe(409);
      const events = eventsOfJob(gatewaySetup, job);
      await eventsUntil(events, (event) => event.type === 'probe' && event.probe.spent === 3);
      await gatewaySetup.send('DELETE', `jobs/${job}`);
      expect((await follow(gatewaySetup, job)).at(-1)).toMatchObject({ state: 'cancelled' });
      asGlm(gatewaySetup);
      const again = await follow(gatewaySetup, await begin(gatewaySetup, 'bisect', body));
      const note = again.find((event) => event.type === 'note');
      expect(note?.text).toMatch(/earlier run: [3-9]/);
      expect(bisected(again).result).toBe('minimal');
    } finally {
      asGlm(gatewaySetup);
    }
  });

  test('a bisection runs in the name of its key, which owns the samples', async () => {
    const ANN = { authorization: 'Bearer ann-secret-key' };
    const BOB = { authorization: 'Bearer bob-secret-key' };
    const own = await startApiSetup({
      auth: {
        keys: [
          { name: 'ann', key: 'ann-secret-key' },
          { name: 'bob', key: 'bob-secret-key' },
        ],
      },
    });
    try {
      asGlm(own);
      const id = await own.post(CHAT, { ...chatHistory(8), model: 'via-chat' }, ANN);
      await until(async () => {
        const response = await own.api(`samples/${id}`, { headers: ANN });
        return response.ok && ((await response.json()) as SampleDetail).meta.state === 'done';
      });
      const job = await begin(own, 'bisect', { id }, ANN);
      const { samples } = bisected(await follow(own, job, ANN));
      const minimal = await own.json<SampleDetail>(`samples/${samples.minimal}`, ANN);
      expect(minimal.meta.owner).toBe('ann');
      expect((await own.api(`samples/${samples.minimal}`, { headers: BOB })).status).toBe(404);
    } finally {
      await own.stop();
    }
  });
});

describe('when the server stops or dies', () => {
  test('the server does not wait for a job; the next process does not know the job, and a bisection resumes', async () => {
    const own = await startApiSetup();
    try {
      asGlm(own);
      const id = await own.post(CHAT, { ...chatHistory(60), model: 'via-chat' });
      await own.rows(1);
      asGlm(own, 60);
      const job = await begin(own, 'bisect', { id, budget: 80 });
      const events = eventsOfJob(own, job);
      await eventsUntil(events, (event) => event.type === 'probe' && event.probe.spent === 4);
      own.gateway.signal('SIGKILL');
      await own.gateway.exited;

      // The same state, in another process.
      const home = { HOPGATE_HOME: `${own.gateway.home}/state` };
      // A drain that waited for the job would outlast the test.
      const next = await startGateway({ ...own.config, limits: { drain: 600 } }, { env: home });
      const after = client(next);
      expect((await after.api(`jobs/${job}`)).status).toBe(404);
      const again = await begin(after, 'bisect', { id, budget: 80 });
      const result = eventsOfJob(after, again);
      const begun = await eventsUntil(result, ({ type }) => type === 'note' || type === 'end');
      expect(begun.at(-1)).toMatchObject({ type: 'note' });

      next.signal('SIGTERM');
      expect(await next.exited).toBe(0);
      await next.stop();
    } finally {
      await own.stop();
    }
  });
});
