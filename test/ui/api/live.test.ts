/** The live feed: new, changed and removed rows, filters, and a prompt stop of the server. */

import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test';
import type { LiveEvent } from '../../../src/ui/api/api.ts';
import { startGateway } from '../../support/binary.ts';
import { refuse, say } from '../../support/fake-upstream/index.ts';
import { type ApiSetup, client, eventsIn, eventsUntil, startApiSetup } from '../api-setup.ts';

setDefaultTimeout(60_000);

const CHAT = '/v1/chat/completions';
const ask = (content: string, more = {}) => ({
  model: 'via-chat',
  messages: [{ role: 'user', content }],
  ...more,
});

let setup: ApiSetup;
beforeAll(async () => {
  setup = await startApiSetup();
});
afterAll(() => setup.stop());

const listen = async (query = '') => {
  const events = eventsIn<LiveEvent>(await setup.api(`live?${query}`));
  expect(await events.next()).toMatchObject({ value: { type: 'hello' } });
  return events;
};

const over = (id: string) => (event: LiveEvent) =>
  event.type === 'row' && event.row.id === id && event.row.state === 'done';

describe('the live feed', () => {
  test('the feed shows an exchange while it runs, and again when it is over', async () => {
    const events = await listen();
    setup.upstream.enqueue(say('slow '.repeat(30), { delivery: { paceMs: 20 } }));
    const request = setup.post(CHAT, ask('Slowly.', { stream: true }));
    const first = await events.next();
    expect(first.value).toMatchObject({ type: 'row', row: { state: 'open', target: 'chat/m1' } });
    const id = await request;
    const received = await eventsUntil(events, over(id));
    expect(received.at(-1)).toMatchObject({
      row: { id, status: 200, model: 'via-chat', cost: null },
    });
  });

  test('a later page sees exchanges that are already running', async () => {
    setup.upstream.enqueue(say('slow '.repeat(40), { delivery: { paceMs: 25 } }));
    const request = setup.post(CHAT, ask('Still going.', { stream: true }));
    await Bun.sleep(400);
    const events = await listen();
    expect((await events.next()).value).toMatchObject({ type: 'row', row: { state: 'open' } });
    await eventsUntil(events, over(await request));
  });

  test('the feed passes only rows that match the filter', async () => {
    const events = await listen('status=failed');
    setup.upstream.enqueue(say('Fine.'), refuse(400, {}, { error: { message: 'No.' } }));
    const fine = await setup.post(CHAT, ask('One.'));
    const bad = await setup.post(CHAT, ask('Two.'));
    const received = await eventsUntil(events, over(bad));
    expect(JSON.stringify(received)).not.toContain(fine);
    expect((await setup.api('live?status=teapot')).status).toBe(400);
  });

  test('a hundred exchanges at once are all sent, each finally as done', async () => {
    const events = await listen();
    const ids = await Promise.all(
      Array.from({ length: 100 }, (_, i) => setup.post(CHAT, ask(`Number ${i}.`))),
    );
    const waiting = new Set(ids);
    await eventsUntil(events, (event) => {
      if (event.type === 'row' && event.row.state === 'done') waiting.delete(event.row.id);
      return waiting.size === 0;
    });
  });

  test('disconnected pages leave nothing behind: a new page always finds room', async () => {
    for (let i = 0; i < 150; i++) {
      const abort = new AbortController();
      const response = await setup.api('live', { signal: abort.signal });
      expect(response.status).toBe(200);
      abort.abort();
    }
    await (await listen()).return(undefined);
  });

  test('the feed reports samples that retention removes', async () => {
    const own = await startApiSetup({ samples: { mode: 'all', max_count: 0, max_bytes: 1 } });
    try {
      const events = eventsIn<LiveEvent>(await own.api('live'));
      const gone: string[] = [];
      // Retention runs with every batch of 500 and every half minute; the first run comes with the first sample.
      const id = await own.post(CHAT, ask('Too much.'));
      await eventsUntil(events, (event) => {
        if (event.type === 'gone') gone.push(...event.ids);
        return gone.length > 0;
      });
      expect(gone).toEqual([id]);
    } finally {
      await own.stop();
    }
  });
});

describe('with several processes on one port', () => {
  test('the feed shows rows of all processes; jobs are refused with a message', async () => {
    const own = await startApiSetup({ workers: 2 });
    try {
      const events = eventsIn<LiveEvent>(await own.api('live'));
      // Each request uses a new connection, so that both processes get some.
      const ids = await Promise.all(
        Array.from({ length: 30 }, (_, i) =>
          own.post(CHAT, ask(`Number ${i}.`), { connection: 'close' }),
        ),
      );
      const waiting = new Set(ids);
      await eventsUntil(events, (event) => {
        if (event.type === 'row' && event.row.state === 'done') waiting.delete(event.row.id);
        return waiting.size === 0;
      });
      const refused = await own.send('POST', 'replay', { id: ids[0] });
      expect(refused.status).toBe(409);
      expect(await refused.text()).toContain('hopgate replay');
      expect(await own.json('info')).toMatchObject({ limits: { jobs: 0 } });
    } finally {
      await own.stop();
    }
  });
});

describe('the end of the server', () => {
  test('the server does not wait for pages that follow the list', async () => {
    const gateway = await startGateway({ ...setup.config, limits: { drain: 600 } });
    const own = client(gateway);
    const streams = await Promise.all([own.api('live'), own.api('live')]);
    const readers = streams.map(async (stream) => (await stream.text()).length);
    gateway.signal('SIGTERM');
    expect(await gateway.exited).toBe(0);
    await Promise.all(readers);
    await gateway.stop();
  });
});
