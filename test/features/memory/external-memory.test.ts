/** An external memory service: the requests it gets, the forms of its responses, and its failures. */

import { afterEach, describe, expect, test } from 'bun:test';
import { DEFAULT_LIMITS } from '../../../src/features/memory/event.ts';
import {
  type ExternalOptions,
  externalMemory,
  readExternalEvents,
} from '../../../src/features/memory/external-memory.ts';
import type { Json } from '../../../src/lib/json/json.ts';
import { watched } from './support.ts';

const NOW = 1_790_000_000_000;
const servers: { stop(force: boolean): unknown }[] = [];
const open: { close(): Promise<void> }[] = [];
afterEach(async () => {
  for (const one of open.splice(0)) await one.close();
  for (const server of servers.splice(0)) server.stop(true);
});

interface ServiceRequest {
  readonly method: string;
  readonly path: string;
  readonly authorization: string | null;
  readonly body: Json;
}

function store(
  answer: (request: ServiceRequest) => Response | Promise<Response>,
  more: Partial<ExternalOptions> = {},
) {
  const requests: ServiceRequest[] = [];
  const server = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    async fetch(request) {
      const one = {
        method: request.method,
        path: new URL(request.url).pathname,
        authorization: request.headers.get('authorization'),
        body: (await request.json()) as Json,
      };
      requests.push(one);
      return answer(one);
    },
  });
  servers.push(server);
  const watch = watched();
  const url = `http://127.0.0.1:${server.port}/memo`;
  const memory = externalMemory({
    url,
    captureUrl: url,
    timeoutMs: 500,
    limits: DEFAULT_LIMITS,
    observer: watch,
    now: () => NOW,
    ...more,
  });
  open.push(memory);
  return { memory, requests, watch };
}

describe('an external memory', () => {
  test('gets {space, query, limit} with its key, and its events are returned in its order', async () => {
    const { memory, requests, watch } = store(
      () =>
        Response.json({
          events: [
            { id: 'e1', text: '喜欢猫', time: 5_000_000_000_000, score: 0.4, tags: ['a', 3] },
            '怕狗',
          ],
        }),
      { key: { reveal: () => 'memo-secret' } },
    );
    expect(await memory.recall('s', { query: '宠物', limit: 3 })).toEqual([
      {
        id: 'e1',
        text: '喜欢猫',
        time: 5_000_000_000_000,
        score: 0.4,
        tags: ['a'],
        importance: 0.5,
      },
      { id: 'mem_external2', text: '怕狗', time: NOW, score: 0.5, tags: [], importance: 0.5 },
    ]);
    expect(requests).toEqual([
      {
        method: 'POST',
        path: '/memo',
        authorization: 'Bearer memo-secret',
        body: { space: 's', query: '宠物', limit: 3 },
      },
    ]);
    expect(watch.kinds).toEqual(['external']);
    expect(await memory.recall('s', { query: 'x', limit: 1 })).toHaveLength(1);
  });

  test('gets captured events in the background, one call for each space', async () => {
    const { memory, requests, watch } = store(() => new Response(null, { status: 204 }));
    await memory.capture('a', [{ text: 'one', source: 'Ann', time: 7 }, { text: ' ' }]);
    await memory.capture('b', [{ text: 'two', time: 8 }]);
    await memory.capture('a', [{ text: 'three', time: 9 }]);
    expect(requests).toEqual([]);
    await memory.close();
    const event = { tags: [], importance: 0.5 };
    expect(requests.map(({ body }) => body)).toEqual([
      {
        space: 'a',
        events: [
          { ...event, text: 'one', source: 'Ann', time: 7 },
          { ...event, text: 'three', time: 9 },
        ],
      },
      { space: 'b', events: [{ ...event, text: 'two', time: 8 }] },
    ]);
    expect(watch.outcomes).toEqual({ stored: 3 });
  });

  test('that fails gets each event again until the tries are used up', async () => {
    let fails = 1;
    const { memory, requests, watch } = store(({ body }) => {
      const bad = (body as { space: string }).space === 'b' && fails-- > 0;
      return new Response(null, { status: bad ? 503 : 200 });
    });
    await memory.capture('a', [{ text: 'one' }]);
    await memory.capture('b', [{ text: 'two' }]);
    for (let tries = 0; watch.outcomes.stored !== 2 && tries < 100; tries++) await Bun.sleep(30);
    expect(requests.map(({ body }) => (body as { space: string }).space)).toEqual(['a', 'b', 'b']);
    expect(watch.problems).toEqual(['The external memory answered 503.']);
    fails = 99;
    await memory.capture('b', [{ text: 'three' }]);
    await memory.close();
    expect(watch.outcomes).toEqual({ stored: 2, dropped: 1 });
  });

  test.each<[string, () => Response | Promise<Response>, number, RegExp]>([
    ['answers 500', () => new Response('boom', { status: 500 }), 502, /answered 500/],
    ['redirects', () => Response.redirect('http://127.0.0.1:1/'), 502, /answered 302/],
    ['answers no JSON', () => new Response('<html>'), 502, /without \{"events"/],
    [
      'answers too much',
      () => new Response('x'.repeat(3 * 2 ** 20)),
      502,
      /more than 2097152 bytes/,
    ],
    [
      'is silent',
      () => Bun.sleep(5000).then(() => new Response()),
      504,
      /in time \(memory\.timeout\)/,
    ],
  ])('a service that %s gives a readable error', async (_name, answer, status, textPart) => {
    const { memory, watch } = store(answer);
    const failure = memory.recall('s', { query: 'x' });
    await expect(failure).rejects.toMatchObject({
      status,
      message: expect.stringMatching(textPart),
    });
    expect(watch.kinds).toEqual(['failed']);
  });

  test('that cannot be reached gives an error without its address', async () => {
    const { memory } = store(() => new Response(), { url: 'http://127.0.0.1:1/?key=topsecret' });
    const failure = await memory.recall('s', { query: 'x' }).catch((thrown) => thrown as Error);
    expect(failure).toMatchObject({ status: 502 });
    expect(String(failure)).not.toContain('topsecret');
  });

  test('is asked to erase, and queued events are removed', async () => {
    const { memory, requests } = store(() => new Response());
    await memory.capture('s', [{ text: 'waits' }]);
    await memory.capture('t', [{ text: 'stays' }]);
    expect(await memory.erase('s')).toBeUndefined();
    await memory.close();
    expect(requests.map(({ method, body }) => [method, (body as { space: string }).space])).toEqual(
      [
        ['DELETE', 's'],
        ['POST', 't'],
      ],
    );
  });
});

describe('events in other forms', () => {
  const read = (answer: Json) => readExternalEvents(answer, DEFAULT_LIMITS, NOW);

  test.each<[string, Json]>([
    ['a list alone', ['x']],
    ['memories', { memories: [{ memory: 'x' }] }],
    ['one level down', { data: { events: [{ content: 'x' }] } }],
    ['results', { results: [{ summary: 'x', text: '' }] }],
  ])('%s', (_name, answer) => {
    expect(read(answer)).toMatchObject([{ text: 'x' }]);
  });

  test('times in seconds, milliseconds and ISO; speakers; entries that are not events are skipped', () => {
    const events = read({
      events: [
        { text: 'a', timestamp: 1_790_000_000 },
        { text: 'b', created_at: '2026-01-02T03:04:05Z', speaker: 'Ann' },
        { text: 'c', time: 1_790_000_000_000, weight: 3 },
        { text: 'd', time: 'soon', similarity: 0.25 },
        null,
        5,
        { note: 'x' },
      ],
    });
    expect(events.map(({ text, time }) => [text, time])).toEqual([
      ['a', 1_790_000_000_000],
      ['b', Date.parse('2026-01-02T03:04:05Z')],
      ['c', 1_790_000_000_000],
      ['d', NOW],
    ]);
    expect(events[1]!.source).toBe('Ann');
    expect([events[2]!.importance, events[3]!.score]).toEqual([1, 0.25]);
  });

  test.each<Json>([{}, 'x', 5, { events: 'x' }, { error: 'no' }])(
    '%j is not an answer',
    (answer) => {
      expect(() => read(answer)).toThrow(/without/);
    },
  );
});
