/** Server tools in the real pipeline: passthrough and translation, retries, and joined hops, streamed or not. */

import { describe, expect, test } from 'bun:test';
import { existsSync, readFileSync } from 'node:fs';
import type { Feature } from '../../../src/features/feature.ts';
import { leakedCalls } from '../../../src/features/leaked-calls/index.ts';
import { HOPS } from '../../../src/features/server-tools/hop-ledger.ts';
import { serverTools } from '../../../src/features/server-tools/index.ts';
import { toolRegistry } from '../../../src/features/server-tools/registry.ts';
import type { ServerTool } from '../../../src/features/server-tools/tool.ts';
import { toolPairing } from '../../../src/features/tool-pairing/index.ts';
import type { JsonObject } from '../../../src/lib/json/json.ts';
import { type Scripted, scriptedGateway } from '../../gateway/scripted.ts';
import { memoryRoom } from '../../support/entries.ts';
import type { SuiteProtocol as ProtocolName } from '../../support/suite-protocols.ts';
import { fakeSearch, fakeTool } from './script.ts';
import { readBySdk } from './sdk.ts';

const chunk = (delta: unknown, finish: string | null = null) =>
  `data: ${JSON.stringify({ id: 'c', object: 'chat.completion.chunk', created: 1, model: 'm', choices: [{ index: 0, delta, finish_reason: finish }] })}\n\n`;
const DONE = 'data: [DONE]\n\n';
const callOf = (name: string, id: string, index = 0) => ({
  index,
  id,
  type: 'function',
  function: { name, arguments: '{"query":"news"}' },
});
const calls = (...list: readonly ReturnType<typeof callOf>[]): Scripted => ({
  sse: [
    chunk({ role: 'assistant', content: 'Let me see.' }),
    ...list.map((call) => chunk({ tool_calls: [call] })),
    chunk({}, 'tool_calls'),
    DONE,
  ],
});
const says = (text: string): Scripted => ({
  sse: [chunk({ role: 'assistant', content: text }), chunk({}, 'stop'), DONE],
});
const whole = (message: unknown, finish: string): Scripted => ({
  json: {
    id: 'c',
    object: 'chat.completion',
    created: 1,
    model: 'm',
    choices: [{ index: 0, message, finish_reason: finish }],
    usage: { prompt_tokens: 5, completion_tokens: 2, total_tokens: 7 },
  },
});

const CLIENTS: Readonly<Record<ProtocolName, JsonObject>> = {
  'openai-chat': {
    messages: [{ role: 'user', content: 'hi' }],
    web_search_options: {},
    tools: [{ type: 'function', function: { name: 'Bash', parameters: { type: 'object' } } }],
  },
  'openai-responses': {
    input: 'hi',
    tools: [
      { type: 'web_search' },
      { type: 'function', name: 'Bash', parameters: { type: 'object' } },
    ],
  },
  'anthropic-messages': {
    max_tokens: 9,
    messages: [{ role: 'user', content: 'hi' }],
    tools: [
      { type: 'web_search_20250305', name: 'web_search' },
      { name: 'Bash', input_schema: { type: 'object' } },
    ],
  },
};

function ask(
  client: ProtocolName,
  script: Scripted[],
  body: JsonObject = CLIENTS[client],
  tools: readonly ServerTool[] = [fakeSearch()],
  upstream: ProtocolName = 'openai-chat',
  around: { readonly before?: Feature; readonly behind?: Feature } = {},
) {
  const feature = serverTools({
    registry: toolRegistry(tools),
    ledger: memoryRoom(HOPS),
    client,
    owner: '',
    limits: { rounds: 8 },
    log: () => {},
  });
  const features = [around.before, feature, around.behind].filter((one) => one !== undefined);
  const gateway = scriptedGateway(upstream, script, features);
  return { gateway, answer: gateway.ask(client, { model: 'm', stream: true, ...body }) };
}

describe.each(Object.keys(CLIENTS) as ProtocolName[])('%s', (client) => {
  test('two hops, streamed', async () => {
    const { gateway, answer } = ask(client, [calls(callOf('web_search', 'c1')), says('Rain [1].')]);
    const { text, reset } = await answer;
    expect(reset).toBe(false);
    const read = await readBySdk(client, text);
    expect(read.text).toContain('Let me see.');
    expect(read.text).toContain('Rain');
    expect(read.cited).toEqual(['https://a.example/1']);
    expect(read.calls).toEqual([]);
    expect(gateway.sent).toHaveLength(2);
  });

  test('two hops, whole', async () => {
    const { answer } = ask(
      client,
      [
        whole(
          { role: 'assistant', content: 'Let me see.', tool_calls: [callOf('web_search', 'c1')] },
          'tool_calls',
        ),
        whole({ role: 'assistant', content: 'Rain [1].' }, 'stop'),
      ],
      { ...CLIENTS[client], stream: false },
    );
    const { status, text } = await answer;
    expect(status).toBe(200);
    const reply = JSON.parse(text);
    expect(text).toContain('Let me see.');
    expect(text).toContain('https://a.example/1');
    const used = reply.usage.prompt_tokens ?? reply.usage.input_tokens;
    expect(used).toBe(10);
  });

  test('a model that takes no tools answers without those of the gateway', async () => {
    const { tools: _, web_search_options: __, ...body } = CLIENTS[client];
    const { gateway, answer } = ask(
      client,
      [{ status: 400, json: { error: { message: 'm does not support tools' } } }, says('Rain.')],
      body,
      [fakeTool('search', { inject: 'force' })],
    );
    const { text, headers } = await answer;
    expect((await readBySdk(client, text)).text).toContain('Rain.');
    expect(gateway.sent.map((sent) => 'tools' in (sent as object))).toEqual([true, false]);
    expect(headers.get('x-hopgate-notes')).toContain('tool_dropped');
  });

  test('failed tries leave no trace, in the first hop and in the second', async () => {
    const cut: Scripted = { sse: [chunk({ role: 'assistant' })], cut: true };
    const script = [cut, calls(callOf('web_search', 'c1')), cut, says('Rain [1].')];
    const { gateway, answer } = ask(client, script);
    const { text, reset } = await answer;
    expect(reset).toBe(false);
    const read = await readBySdk(client, text);
    expect(read.searches).toBe(client === 'openai-chat' ? 0 : 1);
    expect(read.cited).toHaveLength(1);
    const [, first, ...second] = gateway.sent as JsonObject[];
    expect(gateway.sent[0]).toEqual(first);
    expect(second[0]).toEqual(second[1]!);
    expect((second[1]!.messages as unknown[]).length).toBe(3);
  });

  test('a turn with server calls and client calls ends with the client’s calls', async () => {
    const turn = calls(callOf('web_search', 's1'), callOf('Bash', 'b1', 1));
    const { gateway, answer } = ask(client, [turn]);
    const { text, reset } = await answer;
    expect(reset).toBe(false);
    const read = await readBySdk(client, text);
    expect(read.calls).toEqual(['b1']);
    expect(gateway.sent).toHaveLength(1);
    const message = {
      role: 'assistant',
      content: null,
      tool_calls: ['web_search', 'Bash'].map((name, i) => callOf(name, `x${i}`, i)),
    };
    const unstreamed = await ask(client, [whole(message, 'tool_calls')], {
      ...CLIENTS[client],
      stream: false,
    }).answer;
    expect(unstreamed.status).toBe(200);
    expect(unstreamed.text).toContain('"x1"');
    expect(unstreamed.text).not.toContain('"x0"');
  });

  test('an answer without a call is passed on unchanged', async () => {
    const { gateway, answer } = ask(client, [says('Just so.')]);
    expect((await readBySdk(client, (await answer).text)).text).toBe('Just so.');
    expect(gateway.sent).toHaveLength(1);
  });
});

describe.each(Object.keys(CLIENTS) as ProtocolName[])('broken arguments, %s', (client) => {
  const around = { before: leakedCalls(() => {}), behind: toolPairing };
  const written = (name: string, input: string) => ({
    ...callOf(name, 'c1'),
    function: { name, arguments: input },
  });
  for (const input of ['{broken', '{"query": "x" "y" nonsense', '[1, 2]', 'search for x']) {
    test(`broken arguments of a server tool (${input}): the model gets an error and continues`, async () => {
      for (const stream of [true, false]) {
        const call = written('web_search', input);
        const script = stream
          ? [calls(call), says('Without it, then.')]
          : [
              whole({ role: 'assistant', content: null, tool_calls: [call] }, 'tool_calls'),
              whole({ role: 'assistant', content: 'Without it, then.' }, 'stop'),
            ];
        const body = { ...CLIENTS[client], stream };
        const { gateway, answer } = ask(client, script, body, [fakeSearch()], undefined, around);
        const { status, text } = await answer;
        expect([status, text.includes('Without it, then.')]).toEqual([200, true]);
        expect(gateway.sent).toHaveLength(2);
        const [, second] = gateway.sent as { messages: { role: string; content: string }[] }[];
        const result = second!.messages.find(({ role }) => role === 'tool');
        // Some of the arguments can be repaired, and then the tool has run.
        expect(result?.content).toMatch(/not a JSON object|Text of A/);
        if (stream) expect((await readBySdk(client, text)).text).toContain('Without it');
      }
    });
  }

  test("broken arguments of a client's own tool are a provider error, as without server tools", async () => {
    const call = written('Bash', '{broken');
    const script = Array.from({ length: 4 }, () =>
      whole({ role: 'assistant', content: null, tool_calls: [call] }, 'tool_calls'),
    );
    const body = { ...CLIENTS[client], stream: false };
    const { answer } = ask(client, script, body, [fakeSearch()], undefined, around);
    const { status, text } = await answer;
    expect([status, text.includes('cannot be repaired')]).toEqual([502, true]);
  });
});

test("same protocol, forced tool, no call: the upstream's bytes pass unchanged", async () => {
  const script = says('Just so.');
  const bytes = 'sse' in script ? script.sse.join('') : '';
  const { answer } = ask('openai-chat', [script], { messages: [{ role: 'user', content: 'hi' }] }, [
    fakeTool('web_search'),
  ]);
  expect((await answer).text).toBe(bytes);
});

describe("Claude Code's own search request", () => {
  for (const name of ['websearch-glm-4.6', 'websearch-claude-sonnet-4-5']) {
    const url = new URL(
      `../../../../shared/captures/claude-code/${name}/03-v1_messages.json`,
      import.meta.url,
    );
    const there = existsSync(url);
    const run = there ? test : test.skip;
    run(there ? name : `SKIPPED: no capture ${name} here`, async () => {
      const { body } = JSON.parse(readFileSync(url, 'utf8'));
      const { gateway, answer } = ask('anthropic-messages', [says('Bun is out [1].')], body);
      const { text } = await answer;
      const read = await readBySdk('anthropic-messages', text);
      expect(read.searches).toBe(1);
      expect(read.cited).toEqual(['https://a.example/1']);
      expect(text).toContain('"type":"web_search_tool_result"');
      expect(text).toContain('{\\"query\\":\\"latest bun release\\"}');
      expect(gateway.sent).toHaveLength(1);
      expect(JSON.stringify(gateway.sent[0])).toContain('Text of A');
    });
  }
});

describe("Codex's request", () => {
  const url = new URL(
    '../../../../shared/captures/codex/websearch-cached-glm-4.6/01-v1_responses.json',
    import.meta.url,
  );
  const there = existsSync(url);
  const run = there ? test : test.skip;
  run(there ? 'is searched for' : 'SKIPPED: no capture of Codex here', async () => {
    const { body } = JSON.parse(readFileSync(url, 'utf8'));
    const script = [calls(callOf('web_search', 'c1')), says('Bun is out [1].')];
    const { gateway, answer } = ask('openai-responses', script, body);
    const read = await readBySdk('openai-responses', (await answer).text);
    expect(read.searches).toBe(1);
    const names = (gateway.sent[0] as { tools: { function: { name: string } }[] }).tools.map(
      (tool) => tool.function.name,
    );
    expect(names.filter((name) => name === 'web_search')).toHaveLength(1);
    expect(names.length).toBeGreaterThan(3);
  });
});

test('a fetched page is shown in the form of the client’s protocol', async () => {
  const page = {
    type: 'web_fetch_result',
    url: 'https://a.example/1',
    content: { type: 'document', source: { type: 'text', media_type: 'text/plain', data: 'Hi' } },
    retrieved_at: '2026-08-01T00:00:00Z',
  };
  const fetcher = fakeTool('web_fetch', {
    hosted: 'web_fetch',
    inject: 'declared',
    run: async () => ({
      ok: true,
      payload: {},
      text: 'Hi',
      shown: [
        {
          type: 'opaque',
          name: 'web_fetch_result',
          wire: { protocol: 'anthropic-messages', value: page },
        },
      ],
    }),
  });
  const { answer } = ask(
    'anthropic-messages',
    [calls(callOf('web_fetch', 'c1')), says('It says hi.')],
    {
      max_tokens: 9,
      messages: [{ role: 'user', content: 'Read it.' }],
      tools: [{ type: 'web_fetch_20250910', name: 'web_fetch' }],
    },
    [fetcher],
  );
  const { text } = await answer;
  expect(text).toContain('"type":"server_tool_use"');
  expect(text).toContain(`"type":"web_fetch_tool_result"`);
  expect(text).toContain(`"content":${JSON.stringify(page)}`);
  expect(text).toContain('"web_fetch_requests":1');
  await readBySdk('anthropic-messages', text);
});
