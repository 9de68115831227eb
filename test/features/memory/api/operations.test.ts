/** The memory API over HTTP: imports that break off, changes, lists of spaces, and errors in plain words. */

import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import type { JsonObject } from '../../../../src/lib/json/json.ts';
import { type InProcess, startInProcess } from '../../../support/in-process.ts';

let open: InProcess;
let keyed: InProcess;

beforeAll(async () => {
  const config = {
    providers: { demo: { protocol: 'openai-chat', base_url: 'demo:', models: ['demo'] } },
    samples: { mode: 'off' },
  };
  open = await startInProcess(config);
  keyed = await startInProcess({
    ...config,
    auth: {
      keys: [
        { name: 'ann', key: 'key-of-ann', spaces: ['ann-*'] },
        { name: 'all', key: 'key-of-all' },
      ],
    },
  });
});
afterAll(() => Promise.all([open?.stop(), keyed?.stop()]));

async function ask(
  method: string,
  path: string,
  body?: unknown,
  { gateway = open, headers = {} }: { gateway?: InProcess; headers?: Record<string, string> } = {},
): Promise<{ status: number; body: JsonObject; message: string }> {
  const text =
    typeof body === 'string' ? body : body === undefined ? undefined : JSON.stringify(body);
  const response = await fetch(`${gateway.url}/v1/memory${path}`, { method, headers, body: text });
  const reported = (await response.json()) as JsonObject;
  const { message = '' } = (reported.error ?? {}) as { message?: string };
  return { status: response.status, body: reported, message };
}
const LINES = { headers: { 'content-type': 'application/x-ndjson' } };
const line = (text: unknown) => JSON.stringify({ text });

const countOf = async (space: string) => {
  const spaces = (await ask('GET', '?limit=1000')).body.spaces as readonly JsonObject[];
  return spaces.find((one) => one.space === space)?.events;
};

describe('an import with a wrong line', () => {
  test.each([
    ['no JSON', '{"text":', 3],
    ['no text', '{"source":"Ann"}', 3],
    ['an unknown field', '{"text":"x","wrong":1}', 3],
    ['beyond a limit', line('x'.repeat(8001)), 3],
    ['far behind', 'no JSON', 1203],
  ])('%s: the lines before it are stored, and the error says so', async (name, wrong, at) => {
    const space = encodeURIComponent(`import ${name}`);
    const before = Array.from({ length: at - 1 }, (_, i) => line(`event ${i}`));
    const body = [...before, wrong, line('behind')].join('\n');
    const answer = await ask('POST', `/${space}/events`, body, LINES);
    expect(answer.status).toBeGreaterThanOrEqual(400);
    expect(JSON.stringify(answer.body).toLowerCase()).toContain(`line ${at}`);
    expect(answer.message).toContain(`${at - 1} added, 0 known`);
    expect(await countOf(`import ${name}`)).toBe(at - 1);
  });
});

describe('forgetting', () => {
  const texts = async (space: string) => {
    const { body } = await ask('GET', `/${space}/events?order=asc`);
    return (body.events as readonly { text: string }[]).map(({ text }) => text);
  };
  const filled = async (space: string) => {
    const events = ['The PIN of my card is 4711.', 'My card is blue.', 'Rex is a dog.'];
    const { body } = await ask('POST', `/${space}/events`, {
      events: events.map((text) => ({ text })),
    });
    return (body.events as readonly { id: string }[]).map(({ id }) => id);
  };

  test('by a text: only what holds all of its words, and first as a list of what would go', async () => {
    await filled('forget-text');
    const query = 'PIN of my card';
    const dry = await ask('POST', '/forget-text/forget', { query, dry_run: true });
    expect(dry.body).toMatchObject({
      forgotten: 0,
      events: [{ text: 'The PIN of my card is 4711.' }],
    });
    expect(await texts('forget-text')).toHaveLength(3);
    const { status, body } = await ask('POST', '/forget-text/forget', { query });
    expect([status, body.forgotten]).toEqual([200, 1]);
    expect(await texts('forget-text')).toEqual(['My card is blue.', 'Rex is a dog.']);
  });

  test('by ids: each once, and unknown ones count nothing', async () => {
    const ids = await filled('forget-ids');
    const given = [ids[2], ids[2], 'mem_unknown'];
    const { body } = await ask('POST', '/forget-ids/forget', { ids: given });
    expect(body.forgotten).toBe(1);
    expect(await texts('forget-ids')).toHaveLength(2);
  });

  test.each([[{}], [{ ids: ['mem_a'], query: 'x' }], [{ query: 5 }], [{ ids: ['a'], all: true }]])(
    'neither a text nor ids, or both, or anything else is refused: %j',
    async (body) => {
      await filled('forget-wrong');
      expect((await ask('POST', '/forget-wrong/forget', body)).status).toBe(400);
      expect((await texts('forget-wrong')).length).toBeGreaterThanOrEqual(3);
    },
  );

  test('a key forgets nothing in a space that it may not use', async () => {
    const as = (key: string) => ({ gateway: keyed, headers: { authorization: `Bearer ${key}` } });
    const add = { events: [{ id: 'mem_1', text: 'a secret' }] };
    await ask('POST', '/bob-1/events', add, as('key-of-all'));
    const body = { ids: ['mem_1'] };
    expect((await ask('POST', '/bob-1/forget', body, as('key-of-ann'))).status).toBe(403);
    expect((await ask('POST', '/bob-1/forget', body, as('key-of-all'))).body.forgotten).toBe(1);
  });
});

describe('changing an event', () => {
  test('PATCH changes the given fields, and recall finds only the new text', async () => {
    const { body: made } = await ask('POST', '/p/events', {
      text: 'the boat is red',
      source: 'Ann',
      time: 1_790_000_000_000,
      tags: ['boats'],
    });
    const changed = await ask('PATCH', `/p/events/${made.id}`, {
      text: 'the boat is blue',
      importance: 1,
    });
    expect(changed).toMatchObject({
      status: 200,
      body: { ...made, text: 'the boat is blue', importance: 1 },
    });
    expect((await ask('GET', `/p/events/${made.id}`)).body).toEqual(changed.body);
    const found = async (query: string) =>
      ((await ask('POST', '/p/recall', { query })).body.events as JsonObject[]).map(
        ({ text }) => text,
      );
    expect(await found('blue')).toEqual(['the boat is blue']);
    expect(await found('red')).toEqual([]);
    expect(await countOf('p')).toBe(1);
  });

  test('an invalid change is refused with a readable error', async () => {
    const { body: made } = await ask('POST', '/q/events', { text: 'one' });
    expect(await ask('PATCH', '/q/events/mem_none', { text: 'x' })).toMatchObject({ status: 404 });
    expect(await ask('PATCH', `/q/events/${made.id}`, {})).toMatchObject({ status: 400 });
    expect(await ask('PATCH', `/q/events/${made.id}`, { id: 'mem_1' })).toMatchObject({
      status: 400,
    });
    const again = await ask('POST', '/q/events', { id: made.id, text: 'another' });
    expect(again).toMatchObject({ status: 409, body: { error: { code: 'event_exists' } } });
    expect(again.message).toContain('PATCH');
    expect((await ask('POST', '/q/events', { id: made.id, text: 'one' })).status).toBe(200);
    // An export from before a change can still be added.
    const lines = JSON.stringify({ id: made.id, text: 'another' });
    expect((await ask('POST', '/q/events', lines, LINES)).body).toEqual({ added: 0, known: 1 });
  });
});

describe('the list of spaces', () => {
  test('contains the spaces that the key may use, in pages', async () => {
    const as = (key: string) => ({
      gateway: keyed,
      headers: { authorization: `Bearer key-of-${key}` },
    });
    for (const space of ['ann-1', 'ann-2', 'bob-1', 'ann-3']) {
      await ask('POST', `/${space}/events`, { text: 'x' }, as('all'));
    }
    await ask('POST', '/ann-2/events', { text: 'y' }, as('all'));
    expect((await ask('GET', '', undefined, as('ann'))).body).toEqual({
      spaces: [
        { space: 'ann-1', events: 1 },
        { space: 'ann-2', events: 2 },
        { space: 'ann-3', events: 1 },
      ],
      next_after: null,
    });
    const first = await ask('GET', '?limit=2', undefined, as('all'));
    expect(first.body.next_after).toBe('ann-2');
    const rest = await ask('GET', '?limit=2&after=ann-2', undefined, as('all'));
    expect((rest.body.spaces as JsonObject[]).map(({ space }) => space)).toEqual([
      'ann-3',
      'bob-1',
    ]);
    expect((await ask('GET', '', undefined, { gateway: keyed })).status).toBe(401);
    await ask('DELETE', '/bob-1', undefined, as('all'));
    expect(JSON.stringify((await ask('GET', '', undefined, as('all'))).body)).not.toContain('bob');
  });
});

describe('names in paths', () => {
  test.each(['a b', 'a/b', 'a%2Fb', '中文 ☂', 'a+b', 'events'])(
    '%s is decoded once',
    async (space) => {
      const path = `/${encodeURIComponent(space)}/events`;
      const { body: made } = await ask('POST', path, { text: 'x' });
      expect(await countOf(space)).toBe(1);
      expect((await ask('GET', `${path}/${made.id}`)).body).toEqual(made);
    },
  );

  test.each(['/%zz/events', '/%FF/export'])('%s: an error that names the space', async (path) => {
    const { status, body } = await ask('GET', path);
    expect(status).toBe(400);
    expect(body.error).toMatchObject({ type: 'invalid_request_error', param: 'space' });
  });

  test('an id that is not percent-encoded UTF-8: an error that names the id', async () => {
    const { status, body } = await ask('GET', '/a/events/%zz');
    expect(status).toBe(400);
    expect(body.error).toMatchObject({ type: 'invalid_request_error', param: 'id' });
  });
});

test('every error has a readable message', async () => {
  const wrong: [string, unknown, string][] = [
    ['recall', { query: '' }, "'query' must not be empty."],
    ['recall', {}, "'query' is missing. A question or any text."],
    ['recall', { query: 'x', limit: 0 }, "'limit' must be at least 1."],
    ['recall', { query: 'x', limit: 1.5 }, "'limit' must be a whole number."],
    ['recall', { query: 7 }, "'query' must be text (a JSON string)."],
    [
      'recall',
      { query: 'x', lmit: 1 },
      "'lmit' is not known here. Known fields: query, limit, max_tokens, since, until, time_zone.",
    ],
    ['events', {}, "'text' is missing. The text to remember."],
    ['events', { text: 'x', importance: 2 }, "'importance' must be at most 1."],
    ['events', { text: 'x', tags: 'a' }, "'tags' must be a list."],
    ['events', { text: 'x', tags: [1] }, "'tags[0]' must be text (a JSON string)."],
    ['events', { text: 'x', id: 'y' }, "'id' must be mem_ followed by up to 64 of 0-9a-z."],
    [
      'events',
      { text: 'x', time: {} },
      "'time' must be milliseconds since 1970 or an ISO 8601 time.",
    ],
    ['events', { events: [] }, "'events' must not be empty."],
    ['events', { events: [7] }, "'events[0]' must be an object."],
    ['events', [], 'The body must be a JSON object.'],
  ];
  for (const [path, body, message] of wrong) {
    expect(await ask('POST', `/w/${path}`, body)).toMatchObject({ status: 400, message });
  }
  const long = await ask('POST', '/w/events', { text: 'x', ['y'.repeat(1e6)]: 1 });
  expect(long.message.length).toBeLessThan(500);
});

test('a misspelt header is refused by name, a foreign one is ignored', async () => {
  const chat = (headers: Record<string, string>) =>
    fetch(`${open.url}/v1/chat/completions`, {
      method: 'POST',
      headers,
      body: JSON.stringify({ model: 'demo', messages: [{ role: 'user', content: 'hello' }] }),
    });
  for (const name of ['x-hopgate-memory-spce', 'x-hopgate-memoryspace', 'x-hopgate-recal']) {
    const response = await chat({ [name]: 'alice' });
    expect(response.status).toBe(400);
    expect(await response.text()).toContain('Do you mean x-hopgate-');
  }
  const other = await chat({ 'x-hopgate-edge-region': 'north', 'x-hopgate-space': 'alice' });
  expect([other.status, other.headers.get('x-hopgate-notes')]).toEqual([
    200,
    expect.stringContaining('unknown_header_ignored=2'),
  ]);
  // Together with a known one, and however many there are.
  const crowd = Object.fromEntries(Array.from({ length: 60 }, (_, i) => [`x-hopgate-q${i}`, '1']));
  const many = await chat({ ...crowd, 'x-hopgate-tool-events': 'true' });
  expect(many.headers.get('x-hopgate-notes')).toContain('unknown_header_ignored=8');
  const plain = await chat({});
  expect(plain.headers.get('x-hopgate-notes') ?? '').not.toContain('unknown_header');
});
