/** Exchanges in memory through the API: listed, opened and sent again while nothing is recorded; who sees them; the switch. */

import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test';
import { readdirSync } from 'node:fs';
import { networkInterfaces } from 'node:os';
import type { ConversationView, Info, LiveEvent, SampleDetail } from '../../../src/ui/api/api.ts';
import { say } from '../../support/fake-upstream/index.ts';
import { type ApiSetup, eventsIn, eventsOfJob, eventsUntil, startApiSetup } from '../api-setup.ts';

setDefaultTimeout(60_000);

const CHAT = '/v1/chat/completions';
const ask = (content: string, model = 'via-chat') => ({
  model,
  messages: [{ role: 'user', content }],
});
const as = (key: string) => ({ authorization: `Bearer ${key}` });

/** All files of samples that the gateway has written anywhere. */
const sampleFiles = (world: ApiSetup) =>
  readdirSync(world.gateway.home, { recursive: true }).filter((name) => `${name}`.includes('req_'));

describe('with recording off', () => {
  let world: ApiSetup;
  beforeAll(async () => {
    world = await startApiSetup({ samples: { mode: 'off' } });
  });
  afterAll(() => world.stop());

  test('the last exchanges are listed, opened, exported and sent again; nothing is on disk', async () => {
    world.upstream.enqueue(say('One.'), say('Two.'), say('Two again.'));
    await world.post(CHAT, ask('First.'));
    const id = await world.post(CHAT, ask('Second.'));
    const rows = await world.rows(2);
    expect(rows.map((row) => row.in_memory)).toEqual([true, true]);
    expect(rows[0]).toMatchObject({ id, status: 200, target: 'chat/m1' });

    const detail = await world.json<SampleDetail>(`samples/${id}`);
    expect(detail.row).toMatchObject({ id, in_memory: true });
    expect(detail.sendable).toContain('client-request');
    expect(detail.diff).not.toBeNull();
    const said = await world.json<ConversationView>(
      `samples/${id}/edges/client-response/conversation`,
    );
    expect(said.turns[0]!.blocks[0]).toMatchObject({ type: 'text', text: 'Two.' });
    const exported = await (await world.api(`samples/${id}/export`)).text();
    expect(exported).toContain('Second.');
    const redacted = await (await world.api(`samples/${id}/export?redact=1`)).text();
    expect(redacted).not.toContain('Second.');
    expect(await (await world.api(`samples/${id}/diff`)).json()).toMatchObject({
      identical: false,
    });
    expect(await (await world.api(`samples/${id}/curl`)).text()).toContain('Second.');

    const { job } = (await (await world.send('POST', 'replay', { id })).json()) as { job: string };
    const events = await Array.fromAsync(eventsOfJob(world, job));
    expect(JSON.stringify(events)).toContain('Two again.');
    expect((await world.json<{ rows: unknown[] }>('samples')).rows).toHaveLength(2);
    expect(sampleFiles(world)).toEqual([]);
  });

  test('filters and pages hold for them as well', async () => {
    world.upstream.enqueue(say('Three.'));
    const id = await world.post(CHAT, ask('Third.', 'm1'));
    await world.rows(3);
    const all = await world.json<{ rows: { id: string }[]; cursor?: string }>('samples?limit=2');
    expect(all.rows.map((row) => row.id)[0]).toBe(id);
    const rest = await world.json<{ rows: { id: string }[]; cursor?: string }>(
      `samples?limit=2&cursor=${all.cursor}`,
    );
    expect(rest.rows).toHaveLength(1);
    expect(rest.cursor).toBeUndefined();
    const found = await world.json<{ rows: { id: string }[] }>('samples?model=via-*');
    expect(found.rows).toHaveLength(2);
    expect((await world.json<{ rows: unknown[] }>('samples?status=failed')).rows).toEqual([]);
  });

  test('the live feed shows one while it runs and when it is over', async () => {
    const events = eventsIn<LiveEvent>(await world.api('live'));
    await events.next();
    world.upstream.enqueue(say('slow '.repeat(30), { delivery: { paceMs: 15 } }));
    const asked = world.post(CHAT, { ...ask('Slowly.'), stream: true });
    const first = await events.next();
    expect(first.value).toMatchObject({ type: 'row', row: { state: 'open', in_memory: true } });
    const id = await asked;
    await eventsUntil(
      events,
      (event) => event.type === 'row' && event.row.id === id && event.row.state === 'done',
    );
  });

  test('recording is switched on for this process: later exchanges reach the disk', async () => {
    const before = await world.json<Info>('info');
    expect(before.samples).toMatchObject({ mode: 'off', configured: 'off', may_switch: true });
    const refused = await fetch(`${world.gateway.url}/ui/api/recording`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: '{"mode":"all"}',
    });
    expect(refused.status).toBe(403);
    expect((await world.send('POST', 'recording', { mode: 'some' })).status).toBe(400);
    const switched = await world.send('POST', 'recording', { mode: 'all' });
    expect(await switched.json()).toMatchObject({ samples: { mode: 'all', configured: 'off' } });
    world.upstream.enqueue(say('Kept.'));
    const id = await world.post(CHAT, ask('Keep this.'));
    const rows = await world.rows(5);
    expect(sampleFiles(world).length).toBeGreaterThan(0);
    expect(rows.find((row) => row.id === id)!.in_memory).toBeUndefined();
    expect(rows.filter((row) => row.in_memory)).toHaveLength(4);
    await world.send('POST', 'recording', { mode: 'off' });
    expect((await world.json<Info>('info')).samples.mode).toBe('off');
  });
});

describe('with keys', () => {
  let world: ApiSetup;
  beforeAll(async () => {
    world = await startApiSetup({
      samples: { mode: 'off' },
      auth: {
        keys: [
          { name: 'ann', key: 'key-of-ann-0123456789' },
          { name: 'ben', key: 'key-of-ben-0123456789' },
          { name: 'operator', key: 'key-of-the-operator-01', sees: 'all' },
        ],
      },
    });
  });
  afterAll(() => world.stop());

  test('a key sees its own exchanges, one that sees all sees them all, none sees nothing', async () => {
    world.upstream.enqueue(say('For Ann.'), say('For Ben.'));
    const [ann, ben, all] = [
      as('key-of-ann-0123456789'),
      as('key-of-ben-0123456789'),
      as('key-of-the-operator-01'),
    ];
    const hers = await world.post(CHAT, ask('Ann asks.'), ann);
    const his = await world.post(CHAT, ask('Ben asks.'), ben);
    const ids = async (headers: Record<string, string>) =>
      (await world.json<{ rows: { id: string }[] }>('samples', headers)).rows.map(({ id }) => id);
    expect(await ids(all)).toEqual([his, hers]);
    expect(await ids(ann)).toEqual([hers]);
    expect(await ids(ben)).toEqual([his]);
    // Also when the one who may has looked at it: it is masked and at hand then.
    for (const headers of [all, ann]) {
      expect((await world.api(`samples/${hers}`, { headers })).status).toBe(200);
    }
    for (const path of ['', '/export', '/curl', '/diff', '/edges/client-request']) {
      expect((await world.api(`samples/${hers}${path}`, { headers: ben })).status).toBe(404);
      expect((await world.api(`samples/${hers}${path}`)).status).toBe(401);
    }
    const replay = await world.send('POST', 'replay', { id: hers }, ben);
    expect(replay.status).toBe(404);
    const exported = await (await world.api(`samples/${hers}/export`, { headers: ann })).text();
    expect(exported).not.toContain('key-of-ann-0123456789');
  });

  test('only a key that sees all switches recording, and learns where it is kept', async () => {
    const ann = as('key-of-ann-0123456789');
    const refused = await world.send('POST', 'recording', { mode: 'all' }, ann);
    expect(refused.status).toBe(403);
    const info = await world.json<Info>('info', ann);
    expect(info.samples).toMatchObject({ mode: 'off', may_switch: false });
    expect(info.samples.dir).toBeUndefined();
    const operator = as('key-of-the-operator-01');
    expect((await world.send('POST', 'recording', { mode: 'errors' }, operator)).status).toBe(200);
    expect((await world.json<Info>('info', operator)).samples.dir).toBeDefined();
  });
});

describe('on every address of the machine', () => {
  const open = { listen: '0.0.0.0:0', samples: { mode: 'off' } };

  test('without keys nothing is served, so nobody from elsewhere sees what was said', async () => {
    const started = startApiSetup(open).then((world) => world.stop());
    await expect(started).rejects.toThrow('refusing to listen on 0.0.0.0 without gateway keys');
  });

  test('with keys, a reader without one sees nothing by any address; one with a key sees its own', async () => {
    const keys = [
      { name: 'ann', key: 'key-of-ann-0123456789' },
      { name: 'ben', key: 'key-of-ben-0123456789' },
    ];
    const world = await startApiSetup({ ...open, auth: { keys } });
    try {
      const ann = as('key-of-ann-0123456789');
      world.upstream.enqueue(say('For Ann alone.'));
      const id = await world.post(CHAT, ask('Ann asks.'), ann);
      const { port } = new URL(world.gateway.url);
      const addresses = Object.values(networkInterfaces()).flatMap((all = []) =>
        all.filter(({ family }) => family === 'IPv4').map(({ address }) => address),
      );
      expect(addresses).toContain('127.0.0.1');
      for (const address of addresses) {
        const api = `http://${address}:${port}/ui/api`;
        for (const path of ['info', 'samples', 'live', 'stats', `samples/${id}`]) {
          const refused = await fetch(`${api}/${path}`);
          expect([address, path, refused.status]).toEqual([address, path, 401]);
          expect(await refused.text()).not.toContain('Ann');
        }
        const seen = async (headers: Record<string, string>) => {
          const { rows } = (await (await fetch(`${api}/samples`, { headers })).json()) as {
            rows: { id: string; in_memory?: boolean }[];
          };
          return rows.map((row) => [row.id, row.in_memory]);
        };
        expect(await seen(ann)).toEqual([[id, true]]);
        expect(await seen(as('key-of-ben-0123456789'))).toEqual([]);
      }
      expect(sampleFiles(world)).toEqual([]);
    } finally {
      await world.stop();
    }
  });
});

describe('with several workers', () => {
  test('nothing is held in memory, and the mode is that of the configuration', async () => {
    const world = await startApiSetup({ samples: { mode: 'off' }, workers: 2 });
    try {
      world.upstream.enqueue(say('Gone.'));
      await world.post(CHAT, ask('Who remembers this?'));
      const info = await world.json<Info>('info');
      expect(info.samples).toMatchObject({ recent: null, may_switch: false });
      expect((await world.json<{ rows: unknown[] }>('samples')).rows).toEqual([]);
      expect((await world.send('POST', 'recording', { mode: 'all' })).status).toBe(409);
    } finally {
      await world.stop();
    }
  });
});
