/** Transcripts of exchanges with server tools: hops, held events, joined streams, limits. */

import { describe, expect, test } from 'bun:test';
import { HOPS, mayDeclareHosted } from '../../../src/features/server-tools/index.ts';
import { ToolError } from '../../../src/features/server-tools/tool.ts';
import type { JsonObject } from '../../../src/lib/json/json.ts';
import { memoryRoom } from '../../support/entries.ts';
import { eventsOf, exchange, expectLegal, fakeSearch, fakeTool, target, textOf } from './script.ts';

const ask = { messages: [{ role: 'user', content: 'What is new?' }] };
const search = (id: string, query = 'news') => ({
  call: 'web_search',
  id,
  input: JSON.stringify({ query }),
});

describe('a forced tool, a client that declared nothing', () => {
  test('the client sees one stream with the answer alone', async () => {
    const response = await exchange({
      client: 'openai-chat',
      body: ask,
      tools: [fakeTool('web_search')],
      hops: [
        { say: [{ text: 'Let me look.' }, search('c1')], usage: { input: 10, output: 2 } },
        { say: [{ text: 'It rains [1].' }], usage: { input: 20, output: 3 } },
      ],
    });
    expectLegal(response.events);
    expect(textOf(response.events)).toBe('Let me look.\n\nIt rains [1].');
    expect(response.sse).not.toContain('web_search');
    const usage = response.events.findLast((event) => event.type === 'usage');
    expect(usage).toEqual({
      type: 'usage',
      usage: expect.objectContaining({ input: 30, output: 5 }),
    });
    expect(response.bodies[0]!.tools).toHaveLength(1);
    expect(response.bodies[1]!.messages).toEqual([
      ...(response.bodies[0]!.messages as JsonObject[]),
      {
        role: 'assistant',
        content: 'Let me look.',
        tool_calls: [
          {
            id: 'c1',
            type: 'function',
            function: { name: 'web_search', arguments: '{"query":"news"}' },
          },
        ],
      },
      { role: 'tool', tool_call_id: 'c1', content: 'found: {"query":"news"}' },
    ]);
    const { messages: _a, ...first } = response.bodies[0]!;
    const { messages: _b, ...second } = response.bodies[1]!;
    expect(second).toEqual(first);
  });

  test('a call id that the upstream reuses is replaced, so that no history contains it twice', async () => {
    const response = await exchange({
      client: 'openai-chat',
      body: ask,
      tools: [fakeTool('web_search')],
      hops: [
        { say: [search('call_0', 'one')] },
        { say: [search('call_0', 'two'), search('call_0', 'three')] },
        { say: [{ text: 'Done.' }] },
      ],
    });
    const sent = response.bodies[2]!.messages as JsonObject[];
    const calls = sent.flatMap(({ tool_calls: list }) => (list ?? []) as { id: string }[]);
    const results = sent.flatMap(({ tool_call_id: id }) => (id === undefined ? [] : [id]));
    expect(calls.map(({ id }) => id)).toEqual(results as string[]);
    expect(new Set(results).size).toBe(3);
    expect(results[0]).toBe('call_0');
  });

  test('a Responses stream repeats the client’s request and numbers its events without gaps', async () => {
    const response = await exchange({
      client: 'openai-responses',
      body: { input: 'What is new?' },
      tools: [fakeTool('web_search')],
      upstream: target('openai-responses'),
      hops: [{ say: [{ text: 'Nothing.' }] }],
    });
    // The unchanged event would forward the upstream's bytes, which name the gateway's tools.
    expect(response.events[0]).toEqual(eventsOf({ say: [] })[0]!);
    expect(response.sse).toContain('"tools":[]');
    const numbers = [...response.sse.matchAll(/"sequence_number":(\d+)/g)].map(([, n]) =>
      Number(n),
    );
    expect(numbers).toEqual(numbers.map((_, at) => at));
  });

  test('the log events have their documented names', async () => {
    const response = await exchange({
      client: 'openai-chat',
      body: ask,
      tools: [fakeTool('web_search')],
      hops: [
        { say: [search('c1'), search('c2')] },
        { say: [search('c3')] },
        { say: [{ text: 'ok' }] },
      ],
    });
    expect(response.log.filter(({ event }) => event.startsWith('chat.process'))).toEqual([
      {
        event: 'chat.process.raw.cloned',
        fields: { endpoint: '/v1/chat/completions', hasMessages: true },
      },
      {
        event: 'chat.process.hop3.assembled',
        fields: {
          originalMessageCount: 1,
          assistantMessageCount: 1,
          toolMessageCount: 2,
          finalMessageCount: 4,
        },
      },
      {
        event: 'chat.process.hop3.assembled',
        fields: {
          originalMessageCount: 1,
          assistantMessageCount: 2,
          toolMessageCount: 3,
          finalMessageCount: 6,
        },
      },
    ]);
    const runs = response.log.filter(({ event }) => event === 'servertool.run');
    expect(runs.map(({ fields }) => fields.tool)).toEqual([
      'web_search',
      'web_search',
      'web_search',
    ]);
  });

  test('an answer without calls passes as the same events', async () => {
    const script = { say: [{ text: 'Just so.' }] };
    const response = await exchange({
      client: 'openai-chat',
      body: ask,
      tools: [fakeTool('web_search')],
      hops: [script],
    });
    expect(response.events).toEqual(eventsOf(script));
  });

  test('a client’s function of the same name is never taken for the server tool', async () => {
    const response = await exchange({
      client: 'openai-chat',
      body: {
        ...ask,
        tools: [{ type: 'function', function: { name: 'web_search', parameters: {} } }],
      },
      tools: [fakeTool('web_search')],
      hops: [{ say: [search('c1')] }],
    });
    expect(response.sent[0]!.tools).toHaveLength(1);
    expect(response.events.find((event) => event.type === 'finish')).toEqual({
      type: 'finish',
      reason: 'tool-calls',
    });
    expect(response.sse).toContain('web_search');
  });

  test('a stream that is cut inside a held call does not end normally', async () => {
    const response = await exchange({
      client: 'openai-chat',
      body: ask,
      tools: [fakeTool('web_search')],
      hops: [{ say: [search('c1')], cut: true }],
    });
    expect(response.events.map((event) => event.type)).toEqual(['start']);
  });
});

describe('tools that fail', () => {
  const failing = (run: () => Promise<never>) =>
    exchange({
      client: 'openai-chat',
      body: ask,
      tools: [fakeTool('web_search', { run, limits: { timeoutMs: 20 } })],
      hops: [{ say: [search('c1')] }, { say: [{ text: 'Sorry.' }] }],
    });
  const result = (response: Awaited<ReturnType<typeof failing>>) =>
    JSON.parse(
      (response.bodies[1]!.messages as { content: string }[])
        .at(-1)!
        .content.replace(/^Error: /, ''),
    );

  test('a tool that throws becomes a failed result, and the exchange continues', async () => {
    const response = await failing(() =>
      Promise.reject(new ToolError('No luck.', { retryable: true })),
    );
    expect(result(response)).toEqual({
      ok: false,
      tool: 'web_search',
      message: 'No luck.',
      retryable: true,
    });
    expect(textOf(response.events)).toBe('Sorry.');
  });

  test('the message of an unexpected error is not sent to the model', async () => {
    const response = await failing(() => Promise.reject(new TypeError('key sk-secret is bad')));
    expect(result(response).message).toBe('The tool failed (TypeError).');
  });

  test('a tool that never answers is stopped', async () => {
    const response = await failing(() => new Promise(() => {}));
    expect(result(response).message).toBe('No answer within 20 ms.');
  });

  test('arguments that are not JSON become an error for the model', async () => {
    const response = await exchange({
      client: 'openai-chat',
      body: ask,
      tools: [fakeTool('web_search')],
      hops: [
        { say: [{ call: 'web_search', id: 'c1', input: '{"query":' }] },
        { say: [{ text: 'ok' }] },
      ],
    });
    expect(JSON.stringify(response.bodies[1])).toContain('not a JSON object');
  });
});

describe('a vendor that takes so many tools', () => {
  const own = (count: number) =>
    Array.from({ length: count }, (_, at) => ({
      type: 'function',
      function: { name: `own_${at}`, parameters: { type: 'object', properties: {} } },
    }));
  test.each([
    [0, 4, ['t0', 't1', 't2', 't3'], 0],
    [2, 4, ['t0', 't1', 't2'], 1],
    [5, 4, [], 4],
    // The client's own are its own affair.
    [7, 4, [], 4],
  ])(
    'the client has %i, the gateway %i: it offers what fits',
    async (count, more, offered, left) => {
      const tools = Array.from({ length: more }, (_, at) => fakeTool(`t${at}`));
      const response = await exchange({
        client: 'openai-chat',
        body: { ...ask, tools: own(count) },
        tools,
        upstream: target('openai-chat', { maxTools: 5 }),
        hops: [{ say: [{ text: 'Hello.' }] }],
      });
      const sent = (response.bodies[0]!.tools ?? []) as readonly { function: { name: string } }[];
      const names = sent.map((tool) => tool.function.name);
      expect(names.filter((name) => name.startsWith('own_'))).toHaveLength(count);
      expect(names.filter((name) => !name.startsWith('own_'))).toEqual(offered);
      const dropped = response.notes.all.filter(({ name }) => name === 'tool_dropped');
      expect(dropped.map(({ what }) => what)).toEqual(left === 0 ? [] : [`${left} of the gateway`]);
    },
  );
});

describe('a selective tool', () => {
  const selective = () =>
    fakeTool('web_search', {
      inject: 'selective',
      aliases: ['google_search'],
      wanted: (text) => text.includes('search'),
    });
  const names = (body: JsonObject | undefined) =>
    ((body?.tools ?? []) as { function?: { name: string }; name?: string }[]).map(
      (tool) => tool.function?.name ?? tool.name,
    );

  test('stays where the history contains a hidden call of it', async () => {
    for (const upstream of ['openai-chat', 'anthropic-messages', 'openai-responses'] as const) {
      const ledger = memoryRoom(HOPS);
      const first = { role: 'user', content: 'search for the weather in Rome, please' };
      const answer = `${'It rains in Rome, and it will go on raining for a long time. '.repeat(3)}`;
      const given = { client: 'openai-chat', ledger, upstream: target(upstream) } as const;
      const response = await exchange({
        ...given,
        body: { messages: [first] },
        tools: [selective()],
        hops: [{ say: [search('c1')] }, { say: [{ text: answer }] }],
      });
      expect(names(response.bodies[0])).toEqual(['web_search']);
      const again = await exchange({
        ...given,
        body: {
          messages: [
            first,
            { role: 'assistant', content: answer },
            { role: 'user', content: 'Thanks, bye.' },
          ],
        },
        tools: [selective()],
        hops: [{ say: [{ text: 'Bye.' }] }],
      });
      expect(JSON.stringify(again.bodies[0])).toContain('web_search');
      expect(names(again.bodies[0])).toEqual(['web_search']);
    }
  });

  test('is not offered where the text does not call for it', async () => {
    const response = await exchange({
      client: 'openai-chat',
      body: {
        messages: [
          { role: 'user', content: 'hi' },
          { role: 'assistant', content: 'Hello.' },
          { role: 'user', content: 'Thanks, bye.' },
        ],
      },
      tools: [selective()],
      hops: [{ say: [{ text: 'Bye.' }] }],
    });
    expect(names(response.bodies[0])).toEqual([]);
  });
});

describe('limits', () => {
  test('rounds: the last hop has no server tools, and its calls do not run', async () => {
    let runs = 0;
    const response = await exchange({
      client: 'openai-chat',
      body: ask,
      tools: [
        fakeTool('web_search', {
          run: async () => {
            runs++;
            return { ok: true, payload: {}, text: 'x' };
          },
        }),
      ],
      hops: [
        { say: [search('c1')] },
        { say: [search('c2')] },
        { say: [{ text: 'Enough.' }, search('c3')] },
      ],
      options: { limits: { rounds: 2 } },
    });
    expect(response.bodies.map((body) => body.tools !== undefined)).toEqual([true, true, false]);
    expect(runs).toBe(2);
    expectLegal(response.events);
    expect(response.events.find((event) => event.type === 'finish')).toEqual({
      type: 'finish',
      reason: 'stop',
    });
  });

  test('no rounds: nothing is offered', async () => {
    const response = await exchange({
      client: 'openai-chat',
      body: ask,
      tools: [fakeTool('web_search')],
      hops: [{ say: [{ text: 'No.' }] }],
      options: { limits: { rounds: 0 } },
    });
    expect(response.bodies[0]).not.toHaveProperty('tools');
  });

  test('uses: the client’s max_uses leads to its protocol’s error', async () => {
    const response = await exchange({
      client: 'anthropic-messages',
      body: {
        ...ask,
        max_tokens: 99,
        tools: [{ type: 'web_search_20250305', name: 'web_search', max_uses: 1 }],
      },
      tools: [fakeSearch()],
      hops: [{ say: [search('c1'), search('c2')] }, { say: [{ text: 'ok' }] }],
    });
    expect(response.sse).toContain(
      '"content":{"type":"web_search_tool_result_error","error_code":"max_uses_exceeded"}',
    );
    expect(response.sse).toContain('"server_tool_use":{"web_search_requests":1');
  });

  test('uses: max_tool_calls limits the tools that a Responses client declared, for every upstream', async () => {
    for (const upstream of ['openai-chat', 'openai-responses'] as const) {
      let runs = 0;
      const run = async () => {
        runs++;
        return { ok: true, payload: {}, text: 'found' };
      };
      const response = await exchange({
        client: 'openai-responses',
        body: { input: 'hi', tools: [{ type: 'web_search' }], max_tool_calls: 2 },
        tools: [fakeSearch({ run })],
        upstream: target(upstream),
        hops: [
          { say: [search('c1'), search('c2'), search('c3')] },
          { say: [search('c4')] },
          { say: [{ text: 'ok' }] },
        ],
      });
      expect(runs).toBe(2);
      expect(JSON.stringify(response.bodies[1])).toContain('No more than 2 tool calls');
    }
  });

  test("Kimi's own declaration of a search is served too", async () => {
    const body = {
      messages: [{ role: 'user', content: 'hi' }],
      tools: [{ type: 'builtin_function', function: { name: '$web_search' } }],
    };
    expect(mayDeclareHosted(Buffer.from(JSON.stringify(body)), 'openai-chat')).toBe(true);
    for (const upstream of ['openai-chat', 'anthropic-messages', 'openai-responses'] as const) {
      const response = await exchange({
        client: 'openai-chat',
        body,
        tools: [fakeSearch()],
        upstream: target(upstream),
        hops: [{ say: [search('c1')] }, { say: [{ text: 'ok' }] }],
      });
      expect(JSON.stringify(response.bodies[1])).toContain('Text of A');
    }
  });

  test('total time: when it is used up, the next hop answers without tools', async () => {
    let time = 0;
    const response = await exchange({
      client: 'openai-chat',
      body: ask,
      tools: [
        fakeTool('web_search', {
          run: async () => {
            time += 5000;
            return { ok: true, payload: {}, text: 'x' };
          },
        }),
      ],
      hops: [{ say: [search('c1')] }, { say: [{ text: 'Done.' }] }],
      options: { limits: { rounds: 8, totalMs: 4000 }, now: () => time },
    });
    expect(response.bodies[1]).not.toHaveProperty('tools');
  });

  test('calls run in parallel, up to the limit', async () => {
    let running = 0;
    let most = 0;
    await exchange({
      client: 'openai-chat',
      body: ask,
      tools: [
        fakeTool('web_search', {
          run: async () => {
            most = Math.max(most, ++running);
            await Bun.sleep(2);
            running--;
            return { ok: true, payload: {}, text: 'x' };
          },
        }),
      ],
      hops: [
        { say: Array.from({ length: 9 }, (_, i) => search(`c${i}`)) },
        { say: [{ text: 'ok' }] },
      ],
      options: { limits: { rounds: 8, parallel: 3 } },
    });
    expect(most).toBe(3);
  });

  test('a client that goes away stops tools and hops', async () => {
    const abort = new AbortController();
    let stopped = false;
    const running = exchange({
      client: 'openai-chat',
      body: ask,
      signal: abort.signal,
      tools: [
        fakeTool('web_search', {
          run: (_args, { signal }) =>
            new Promise((_, reject) => {
              signal.addEventListener('abort', () => {
                stopped = true;
                reject(signal.reason);
              });
              abort.abort();
            }),
        }),
      ],
      hops: [{ say: [search('c1')] }],
    });
    await expect(running).rejects.toMatchObject({ status: 499 });
    expect(stopped).toBe(true);
  });
});

describe('a client that declared the hosted tool', () => {
  test('Messages: server_tool_use, its result and cited text', async () => {
    const response = await exchange({
      client: 'anthropic-messages',
      body: {
        ...ask,
        max_tokens: 99,
        tools: [{ type: 'web_search_20250305', name: 'web_search' }],
        tool_choice: { type: 'tool', name: 'web_search' },
      },
      tools: [fakeSearch()],
      hops: [
        { say: [{ reasoning: 'Hm.' }, search('c1')] },
        { say: [{ text: 'Rain [1]. Snow [2][9], sun[8].' }] },
      ],
    });
    expectLegal(response.events);
    const body = response.bodies[0]!;
    expect(body.tool_choice).toEqual({ type: 'function', function: { name: 'web_search' } });
    expect(response.bodies[1]!.tool_choice).toBe('auto');
    expect(response.sse).toContain('"type":"server_tool_use","id":"srvtoolu_hg');
    expect(response.sse).toContain('"page_age":"2026-07-14"');
    expect(textOf(response.events.filter((e) => 'index' in e && e.index > 1))).toContain(
      'Rain. Snow, sun',
    );
    expect(response.sse.match(/citations_delta/g)).toHaveLength(2);
    expect(response.sse).toContain('"server_tool_use":{"web_search_requests":1');
    expect(response.sse).not.toContain('pause_turn');
  });

  test('Responses: a web_search_call that is recognised later, and URL citations at the marks', async () => {
    const response = await exchange({
      client: 'openai-responses',
      body: {
        input: 'What is new?',
        tools: [{ type: 'web_search' }],
        include: ['web_search_call.action.sources'],
      },
      tools: [fakeSearch()],
      hops: [{ say: [search('c1')] }, { say: [{ text: 'Rain [1].' }] }],
    });
    expectLegal(response.events);
    expect(response.sse).toMatch(
      /"id":"ws_hg[0-9a-f]{24}","type":"web_search_call","status":"completed"/,
    );
    expect(response.sse).toContain('"sources":[{"type":"url","url":"https://a.example/1"}');
    expect(response.sse).toContain(
      '"annotation":{"type":"url_citation","start_index":5,"end_index":8,"title":"Page A","url":"https://a.example/1"}',
    );
    expect(response.sse).toContain('"text":"Rain [1]."');
  });

  test('Chat: annotations', async () => {
    const response = await exchange({
      client: 'openai-chat',
      body: { ...ask, web_search_options: {} },
      tools: [fakeSearch()],
      hops: [{ say: [search('c1')] }, { say: [{ text: 'Rain [1].' }] }],
    });
    expectLegal(response.events);
    expect(response.sse).toContain(
      '"annotations":[{"type":"url_citation","url_citation":{"start_index":5,"end_index":8,"title":"Page A","url":"https://a.example/1"}}]',
    );
    expect(response.sse).not.toContain('tool_calls');
  });

  test('a target with its own search keeps its tool', async () => {
    const response = await exchange({
      client: 'anthropic-messages',
      body: {
        ...ask,
        max_tokens: 99,
        tools: [{ type: 'web_search_20250305', name: 'web_search' }],
      },
      tools: [fakeSearch()],
      upstream: target('anthropic-messages', { hostedTools: ['web_search'] }),
      hops: [{ say: [{ text: 'Native.' }] }],
    });
    expect(response.bodies[0]!.tools).toEqual([
      { type: 'web_search_20250305', name: 'web_search' },
    ]);
  });

  test('a paused turn of a target with its own search is continued', async () => {
    const response = await exchange({
      client: 'anthropic-messages',
      body: {
        ...ask,
        max_tokens: 99,
        tools: [{ type: 'web_search_20250305', name: 'web_search' }],
      },
      tools: [fakeSearch()],
      upstream: target('anthropic-messages', { hostedTools: ['web_search'] }),
      hops: [{ say: [{ text: 'Looking' }], finish: 'pause' }, { say: [{ text: ' done.' }] }],
    });
    expectLegal(response.events);
    expect(response.sse).toContain('"stop_reason":"end_turn"');
    expect((response.bodies[1]!.messages as unknown[]).length).toBe(2);
  });
});

describe('a request that is itself a search', () => {
  const nested = {
    max_tokens: 99,
    messages: [{ role: 'user', content: 'Perform a web search for the query: bun 1.4' }],
    tools: [{ type: 'web_search_20250305', name: 'web_search', max_uses: 8 }],
    tool_choice: { type: 'auto' },
  };

  test('runs the search before the model is asked', async () => {
    const response = await exchange({
      client: 'anthropic-messages',
      body: nested,
      tools: [fakeSearch()],
      hops: [{ say: [{ text: 'Bun 1.4 is out [1].' }] }],
    });
    expectLegal(response.events);
    expect(response.bodies).toHaveLength(1);
    expect(JSON.stringify(response.bodies[0]!.messages)).toContain('{\\"query\\":\\"bun 1.4\\"}');
    expect(response.sse).toContain('"type":"web_search_tool_result"');
    expect(response.sse).toContain('{\\"query\\":\\"bun 1.4\\"}');
    expect(response.sse.match(/citations_delta/g)).toHaveLength(1);
    expect(response.sse).toContain('"stop_reason":"end_turn"');
  });

  test('is left to a target with its own search', async () => {
    const response = await exchange({
      client: 'anthropic-messages',
      body: nested,
      tools: [fakeSearch()],
      upstream: target('anthropic-messages', { hostedTools: ['web_search'] }),
      hops: [{ say: [{ text: 'x' }] }],
    });
    expect(response.bodies[0]!.messages).toHaveLength(1);
  });
});
