/** The API of the page through the compiled binary: lists, one exchange, bodies in every form, differences, exports. */

import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type {
  BlockView,
  ConversationView,
  DiffView,
  EventsView,
  Info,
  SampleDetail,
  SamplesPage,
  Stats,
} from '../../../src/ui/api/api.ts';
import { runBinary } from '../../support/binary.ts';
import { call, refuse, say, think } from '../../support/fake-upstream/index.ts';
import { startToolServers, type ToolServers, toolsOf } from '../../support/tool-servers.ts';
import { type ApiSetup, startApiSetup } from '../api-setup.ts';

setDefaultTimeout(60_000);

let tools: ToolServers;
let setup: ApiSetup;
beforeAll(async () => {
  tools = await startToolServers();
  setup = await startApiSetup({ server_tools: toolsOf(tools) });
});
afterAll(async () => {
  await setup.stop();
  await tools.stop();
});

const PATHS = {
  chat: '/v1/chat/completions',
  messages: '/v1/messages',
  responses: '/v1/responses',
} as const;

const recorded = async (id: string) => {
  await setup.rows(1, `q=${id}`);
  return id;
};

const file = (id: string, entry: string, name: string) =>
  readFileSync(join(setup.folder, entry, `${id}_${name}`));

/** Runs a command line as pasted into a shell; exit code and stderr. */
async function shell(line: string, more: Record<string, string> = {}): Promise<[number, string]> {
  const run = Bun.spawn(['sh', '-c', line], {
    env: { PATH: process.env.PATH, ...more },
    stdout: 'ignore',
    stderr: 'pipe',
    timeout: 10_000,
  });
  const message = await new Response(run.stderr).text();
  return [await run.exited, message];
}

/** A search run by the gateway between two hops, Messages in front, Chat behind. */
async function search(): Promise<string> {
  tools.slow(40);
  setup.upstream.enqueue(
    {
      ...call({ name: 'web_search', arguments: { query: 'tide' } }),
      usage: { input: 100, output: 20, cached: 40 },
      delivery: { paceMs: 5 },
    },
    say('High water at noon.', {
      usage: { input: 300, output: 30, cached: 100 },
      delivery: { paceMs: 15, piece: 3 },
    }),
  );
  return recorded(
    await setup.post(PATHS.messages, {
      model: 'via-chat',
      max_tokens: 300,
      stream: true,
      system: 'Be brief.',
      messages: [{ role: 'user', content: 'When is high tide?' }],
    }),
  );
}

describe('the info route', () => {
  test('the info route gives version, mode and targets, and reports that there are no keys and no prices', async () => {
    const info = await setup.json<Info>('info');
    expect(info).toMatchObject({
      samples: { mode: 'all', by_route: false, redact: [] },
      auth: false,
      key: '',
      sees: 'all',
      priced: false,
    });
    expect(info.targets.toSorted()).toEqual(['chat/m1', 'messages/m1', 'responses/m1']);
    expect(Math.abs(info.now - Date.now())).toBeLessThan(10_000);
  });
});

describe('the list', () => {
  test('the list filters, and refuses invalid filters with a message', async () => {
    setup.upstream.enqueue(refuse(400, {}, { error: { message: 'No such thing.' } }));
    const body = { model: 'via-chat', messages: [{ role: 'user', content: 'Fail.' }] };
    const bad = await recorded(await setup.post(PATHS.chat, body));
    const fine = await recorded(await setup.post(PATHS.chat, body));
    const ids = async (query: string) =>
      (await setup.json<SamplesPage>(`samples?${query}`)).rows.map(({ id }) => id);
    expect(await ids('status=400')).toEqual([bad]);
    expect(await ids(`q=${fine}`)).toEqual([fine]);
    expect(await ids('status=ok')).not.toContain(bad);
    expect(await ids('since=1h&until=1m')).toEqual([]);
    expect(await ids(`since=${Date.now() - 60_000}`)).toContain(fine);
    for (const query of [
      'status=teapot',
      'since=yesterdayish',
      'limit=0',
      'cursor=x',
      'limit=9e9',
    ]) {
      const response = await setup.api(`samples?${query}`);
      expect([query, response.status]).toEqual([query, 400]);
      expect(await response.json()).toMatchObject({ error: { kind: 'invalid_request' } });
    }
  });
});

describe('one exchange', () => {
  test('an exchange shows its hops in order of time, the tools between them, and the tokens of each', async () => {
    const id = await search();
    const detail = await setup.json<SampleDetail>(`samples/${id}`);
    expect(detail.row).toMatchObject({ id, status: 200, hops: 2, cost: null });
    expect(detail.hops.map(({ number }) => number)).toEqual([1, 2]);
    const [first, second] = detail.hops.map(({ tries }) => tries.at(-1)!);
    expect(first).toMatchObject({
      counted: true,
      request: 'provider-request',
      response: 'provider-response',
    });
    expect(second!.response).toBe('hop2-provider-response');
    const stage = (name: string | undefined) => detail.meta.edges.find((one) => one.stage === name);
    const timesOf = ({ request, response }: typeof first & object) => {
      const { at, first, until } = stage(response)!;
      return [stage(request)!.at!, at!, first!, until!];
    };
    expect(stage('provider-response')).toMatchObject({
      target: 'chat/m1',
      protocol: 'openai-chat',
      status: 200,
      file: expect.stringMatching(/\.sse$/),
    });
    const [run] = detail.meta.tools!;
    expect(run).toMatchObject({ name: 'web_search', hop: 1 });
    const ran = [run!.at!, run!.at! + run!.ms!];
    const times = [...timesOf(first!).slice(0, 3), ...ran, ...timesOf(second!)];
    expect(times).toEqual(times.toSorted((a, b) => a - b));
    expect(run!.ms).toBeGreaterThan(30);
    expect(detail.hops.map(({ usage }) => usage)).toMatchObject([
      { input: 60, cacheRead: 40, output: 20 },
      { input: 200, cacheRead: 100, output: 30 },
    ]);
    expect(detail.hops.map(({ finish }) => finish)).toEqual(['tool-calls', 'stop']);
    expect(detail.diff).toEqual({ a: 'client-request', b: 'provider-request' });
    expect(detail.sendable).toContain('hop2-provider-request');
    expect(stage('client-response')!.until!).toBeGreaterThanOrEqual(times.at(-1)!);
  });

  test('failed tries come before the successful one', async () => {
    setup.upstream.enqueue(refuse(503, {}, { error: { message: 'Busy.' } }), say('Now.'));
    const body = { model: 'via-chat', messages: [{ role: 'user', content: 'Twice.' }] };
    const id = await recorded(await setup.post(PATHS.chat, body));
    const { hops, meta } = await setup.json<SampleDetail>(`samples/${id}`);
    expect(hops).toHaveLength(1);
    expect(hops[0]!.tries).toMatchObject([
      { counted: false, response: 'try1-provider-error' },
      { counted: true, response: 'provider-response' },
    ]);
    const answers = meta.edges.filter(({ stage }) => /provider-(?:response|error)$/.test(stage));
    expect(answers.map(({ status }) => status)).toEqual([503, 200]);
  });

  test('an unknown id is not found', async () => {
    for (const id of ['req_1_aaaaaa', 'x', '', '..%2f..%2fetc%2fpasswd', '%00', 'req_1']) {
      const response = await setup.api(`samples/${id}`);
      expect([id, response.status === 404 || id === '']).toEqual([id, true]);
    }
    expect((await setup.api('samples/%E0%A4%A')).status).toBe(400);
  });
});

describe('a body', () => {
  test('a body is sent unchanged, whole or in ranges, as text that no browser renders as a page', async () => {
    const html = '<script>alert(1)</script><img src=x onerror=alert(2)>';
    const body = { model: 'via-chat', messages: [{ role: 'user', content: html }] };
    const id = await recorded(await setup.post(PATHS.chat, body));
    const response = await setup.api(`samples/${id}/edges/client-request`);
    expect(await response.text()).toBe(JSON.stringify(body));
    expect(response.headers.get('content-type')).toBe('text/plain; charset=utf-8');
    expect(response.headers.get('x-content-type-options')).toBe('nosniff');
    expect(response.headers.get('content-security-policy')).toContain("default-src 'none'");
    expect(response.headers.get('cache-control')).toBe('no-store');
    const whole = JSON.stringify(body);
    const part = await setup.api(`samples/${id}/edges/client-request?from=10&bytes=7`);
    expect(await part.text()).toBe(whole.slice(10, 17));
    expect(part.headers.get('x-hopgate-bytes')).toBe(String(whole.length));
    expect((await setup.api(`samples/${id}/edges/client-request?from=-1`)).status).toBe(400);
    const past = await setup.api(`samples/${id}/edges/client-request?from=99999`);
    expect([past.status, await past.text()]).toEqual([200, '']);
    for (const stage of ['meta', 'nothing', '..%2fmeta', '__proto__']) {
      expect((await setup.api(`samples/${id}/edges/${stage}`)).status).toBe(404);
    }
  });

  test('a body is read as a conversation in every protocol, on both sides', async () => {
    for (const [entry, path] of Object.entries(PATHS)) {
      for (const provider of ['chat', 'messages', 'responses']) {
        for (const stream of [true, false]) {
          setup.upstream.enqueue(think('Thinking.', `Hello from ${provider}.`));
          const model = `via-${provider}`;
          const messages = [{ role: 'user', content: 'Say <b>hello</b>.' }];
          const body =
            entry === 'responses'
              ? { model, stream, input: messages }
              : { model, stream, max_tokens: 100, messages };
          const id = await recorded(await setup.post(path, body));
          const read = (stage: string) =>
            setup.json<ConversationView>(`samples/${id}/edges/${stage}/conversation`);
          for (const stage of ['client-request', 'provider-request']) {
            const { kind, turns, problem } = await read(stage);
            expect([kind, problem]).toEqual(['request', null]);
            expect(turns.at(-1)).toMatchObject({
              role: 'user',
              blocks: [{ type: 'text', text: 'Say <b>hello</b>.' }],
            });
          }
          for (const stage of ['provider-response', 'client-response']) {
            const view = await read(stage);
            expect(view).toMatchObject({ kind: 'reply', complete: true, problem: null });
            expect(view.finish).toBe('stop');
            const texts = view.turns[0]!.blocks.filter((block) => block.type === 'text');
            expect(texts.map((block) => (block as { text: string }).text).join('')).toBe(
              `Hello from ${provider}.`,
            );
          }
        }
      }
    }
  });

  test('media appear only by kind and size, and calls with arguments, results and positions', async () => {
    const data = Buffer.from('not really a picture').toString('base64');
    const id = await recorded(
      await setup.post(PATHS.messages, {
        model: 'via-messages',
        max_tokens: 100,
        tools: [{ name: 'look', description: 'Looks.', input_schema: { type: 'object' } }],
        messages: [
          {
            role: 'user',
            content: [
              { type: 'image', source: { type: 'base64', media_type: 'image/png', data } },
              { type: 'text', text: 'x'.repeat(50) },
            ],
          },
          {
            role: 'assistant',
            content: [{ type: 'tool_use', id: 'toolu_1', name: 'look', input: { at: 'it' } }],
          },
          {
            role: 'user',
            content: [{ type: 'tool_result', tool_use_id: 'toolu_1', content: 'A <i>cat</i>.' }],
          },
        ],
      }),
    );
    const path = `samples/${id}/edges/client-request/conversation?text=10`;
    const view = await setup.json<ConversationView>(path);
    expect(JSON.stringify(view)).not.toContain(data);
    const blocks = view.turns.flatMap((turn) => turn.blocks as readonly BlockView[]);
    expect(blocks).toMatchObject([
      { type: 'media', media: 'image', mime: 'image/png', at: '/messages/0/content/0' },
      { type: 'text', text: 'x'.repeat(10), chars: 50, at: '/messages/0/content/1' },
      { type: 'tool-call', id: 'toolu_1', name: 'look', text: '{"at":"it"', chars: 11 },
      { type: 'tool-result', call_id: 'toolu_1', content: [{ type: 'text', text: 'A <i>cat</' }] },
    ]);
    expect(view.tools).toEqual([
      { type: 'function', name: 'look', description: 'Looks.', schema: { type: 'object' } },
    ]);
    expect(view.settings).toMatchObject({ maxTokens: 100 });
  });

  test('a history that the decoder refuses is shown repaired, with the problem', async () => {
    const id = await recorded(
      await setup.post(PATHS.chat, {
        model: 'via-chat',
        messages: [
          { role: 'user', content: 'Go.' },
          { role: 'assistant', content: null, tool_calls: [{ function: { arguments: 7 } }] },
          { role: 'user', content: 'Well?' },
        ],
      }),
    );
    const view = await setup.json<ConversationView>(
      `samples/${id}/edges/client-request/conversation`,
    );
    expect(view.problem?.kind).toBe('invalid_request');
    expect(view.turns.map(({ role }) => role)).toContain('user');
  });

  test('a cut stream is shown up to the cut, and not as complete', async () => {
    setup.upstream.enqueue(
      say('A sentence in many pieces.', { delivery: { piece: 2, cut: { at: 5, by: 'truncate' } } }),
    );
    const id = await recorded(
      await setup.post(PATHS.chat, {
        model: 'via-chat',
        stream: true,
        messages: [{ role: 'user', content: 'Go on.' }],
      }),
    );
    const view = await setup.json<ConversationView>(
      `samples/${id}/edges/provider-response/conversation`,
    );
    expect(view.complete).toBe(false);
    expect(view.finish).toBeNull();
    expect(
      'A sentence in many pieces.'.startsWith((view.turns[0]!.blocks[0] as { text: string }).text),
    ).toBe(true);
  });

  test('an error answer is shown as an error', async () => {
    setup.upstream.enqueue(refuse(400, {}, { error: { message: 'Too <b>bold</b>.' } }));
    const body = { model: 'via-chat', messages: [{ role: 'user', content: 'Fail.' }] };
    const id = await recorded(await setup.post(PATHS.chat, body));
    for (const stage of ['provider-error', 'client-response']) {
      const view = await setup.json<ConversationView>(`samples/${id}/edges/${stage}/conversation`);
      expect(view.problem).toMatchObject({ status: 400 });
      expect(view.problem!.message).toContain('Too <b>bold</b>.');
    }
  });
});

describe('the events of a stream', () => {
  test('events are complete, in order and with times, and add up to the answer', async () => {
    const id = await search();
    for (const stage of ['hop2-provider-response', 'client-response']) {
      const view = await setup.json<EventsView>(`samples/${id}/edges/${stage}/events`);
      expect(view.total).toBe(view.events.length);
      // The first delta of Chat begins its block, too.
      const deltas = view.events
        .filter(({ name }) => ['content_block_delta', 'block-start', 'delta'].includes(name))
        .map(({ says }) => says.replace(/^text · /, ''));
      expect(deltas.join('')).toEndWith('High water at noon.');
      const times = view.events.map(({ at }) => at!);
      expect(times).toEqual(times.toSorted((a, b) => a - b));
      // They arrived separately: pieces of three characters, 15 ms apart.
      expect(times.at(-1)! - times[0]!).toBeGreaterThan(60);
      const data = view.events.map((event) => event.data).join('');
      const body = file(
        id,
        stage.startsWith('client') ? 'anthropic-messages' : 'anthropic-messages',
        `${stage}.sse`,
      ).toString();
      expect(body.replace(/^(data|event): ?|\n/gm, '')).toContain(data.slice(0, 50));
      const few = await setup.json<EventsView>(`samples/${id}/edges/${stage}/events?limit=3`);
      expect(few).toEqual({ total: view.total, events: view.events.slice(0, 3) });
    }
    const none = await setup.json<EventsView>(`samples/${id}/edges/client-request/events`);
    expect(none).toEqual({ total: 0, events: [] });
  });

  test('an event without a name of its own does not say its type twice', async () => {
    const sayings = async (path: string, body: object) => {
      setup.upstream.enqueue(say('Noon.'));
      const id = await recorded(await setup.post(path, { ...body, stream: true }));
      const view = await setup.json<EventsView>(`samples/${id}/edges/client-response/events`);
      return view.events.map(({ name, says }) => `${name}: ${says}`);
    };
    const messages = [{ role: 'user', content: 'When?' }];
    const unnamed = await sayings(PATHS.chat, { model: 'via-chat', messages });
    expect(unnamed.join('\n')).not.toMatch(/^([a-z-]+): \1/m);
    expect(unnamed).toContain('block-start: text · Noon.');
    const named = { model: 'via-messages', max_tokens: 100, messages };
    expect(await sayings(PATHS.messages, named)).toContain('content_block_start: block-start text');
  });
});

describe('differences', () => {
  test('differences equal those of the command line, with the rules behind them', async () => {
    const id = await search();
    const diff = await setup.json<DiffView>(`samples/${id}/diff`);
    const { stdout } = await runBinary(['samples', 'diff', id, '--dir', setup.folder, '--json']);
    expect(diff).toMatchObject(
      JSON.parse(stdout, (key, value) => (key === 'id' ? undefined : value)),
    );
    expect(diff.total).toBe(diff.changes.length);
    const same = await setup.json<DiffView>(`samples/${id}/diff?a=client-request&b=client-request`);
    expect(same).toMatchObject({ identical: true, changes: [] });
    expect((await setup.api(`samples/${id}/diff?a=nothing`)).status).toBe(404);
  });

  test('a huge value is cut, with its full size', async () => {
    const body = {
      model: 'via-messages',
      messages: [{ role: 'user', content: 'y'.repeat(50_000) }],
    };
    const id = await recorded(await setup.post(PATHS.chat, body));
    const { changes } = await setup.json<DiffView>(`samples/${id}/diff`);
    const cut = changes.filter(({ before_chars, after_chars }) => before_chars ?? after_chars);
    expect(cut.length).toBeGreaterThan(0);
    for (const { before, after } of cut) {
      expect(JSON.stringify(before ?? after).length).toBeLessThan(21_000);
    }
  });
});

describe('export', () => {
  test('an export is a download that the command line imports; a redacted one holds no text', async () => {
    const body = { model: 'via-chat', messages: [{ role: 'user', content: 'A private matter.' }] };
    const id = await recorded(await setup.post(PATHS.chat, body));
    const whole = await setup.api(`samples/${id}/export`);
    expect(whole.headers.get('content-disposition')).toBe(`attachment; filename="${id}.json"`);
    expect(await whole.text()).toContain('A private matter.');
    const redacted = await setup.api(`samples/${id}/export?redact=1`);
    const text = await redacted.text();
    expect(text).not.toContain('private');
    expect(JSON.parse(text)).toMatchObject({ hopgate_sample: 1, meta: { id } });
  });

  test('the curl command line repeats the request, whatever the body holds', async () => {
    const hostile = `It's "quoted"; $(touch /tmp/hopgate-curl) \`id\` \\ \n ' ; exit 3 #`;
    const body = { model: 'via-chat', messages: [{ role: 'user', content: hostile }] };
    const id = await recorded(await setup.post(PATHS.chat, body));
    const line = await (await setup.api(`samples/${id}/curl`)).text();
    const requestCount = setup.upstream.modelRequests.length;
    expect(await shell(line)).toEqual([0, '']);
    expect(setup.upstream.modelRequests.length).toBe(requestCount + 1);
    expect(setup.upstream.modelRequests.at(-1)!.body).toMatchObject({ messages: body.messages });
  });
});

describe('figures', () => {
  test('figures count the recorded exchanges; an invalid time is refused', async () => {
    await recorded(await setup.post(PATHS.chat, { model: 'via-chat', messages: [] }));
    const rows = await setup.rows(1);
    const stats = await setup.json<Stats>('stats?since=1h&buckets=7');
    expect(stats.all.requests).toBe(rows.length);
    expect(stats.buckets.reduce((sum, bucket) => sum + bucket.requests, 0)).toBe(rows.length);
    expect(stats.all.cost).toBeNull();
    expect(stats.all.total_ms!.p50).toBeGreaterThan(0);
    expect(stats.targets.map(({ target }) => target)).toContain('chat/m1');
    expect((await setup.api('stats?buckets=0')).status).toBe(400);
    expect((await setup.api('stats?since=1m&until=1h')).status).toBe(400);
  });
});

describe('prices', () => {
  test('prices give every hop and exchange its cost, in the page, the charts and the terminal', async () => {
    const prices = { 'm*': { input: 3, output: 15, cached: 0.3 } };
    const priced = await startApiSetup({ server_tools: toolsOf(tools) }, { prices });
    try {
      priced.upstream.enqueue(
        {
          ...call({ name: 'web_search', arguments: { query: 'tide' } }),
          usage: { input: 1000, output: 200, cached: 400 },
        },
        say('Noon.', { usage: { input: 3000, output: 100, cached: 1000 } }),
      );
      const body = { model: 'via-chat', messages: [{ role: 'user', content: 'Tide?' }] };
      const request = { ...body, tools: [], web_search_options: {} };
      const id = await priced.post(PATHS.chat, request);
      await priced.rows(1);
      const detail = await priced.json<SampleDetail>(`samples/${id}`);
      const usd = [
        (600 * 3 + 400 * 0.3 + 200 * 15) / 1e6,
        (2000 * 3 + 1000 * 0.3 + 100 * 15) / 1e6,
      ];
      expect(detail.hops.map(({ cost }) => cost!.toFixed(9))).toEqual(
        usd.map((cost) => cost.toFixed(9)),
      );
      const sum = usd[0]! + usd[1]!;
      expect(detail.row.cost).toBeCloseTo(sum, 12);
      const [row] = await priced.rows(1);
      expect(row!.cost).toBeCloseTo(sum, 12);
      expect((await priced.json<Stats>('stats')).all).toMatchObject({ unpriced: 0 });
      expect((await priced.json<Stats>('stats')).all.cost).toBeCloseTo(sum, 12);
      expect((await priced.json<Info>('info')).priced).toBe(true);

      const show = ['samples', 'show', id, '--config', priced.gateway.configPath];
      const { stdout } = await runBinary([...show, '--json']);
      expect(JSON.parse(stdout).cost).toBeCloseTo(sum, 12);
      expect(JSON.parse(stdout).per_hop).toMatchObject([{ hop: 1 }, { hop: 2, finish: 'stop' }]);
      const { stdout: reported } = await runBinary(show);
      expect(reported).toContain(`$${sum.toFixed(4)}`);
    } finally {
      await priced.stop();
    }
  });
});
