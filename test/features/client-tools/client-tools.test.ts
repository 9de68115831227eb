/** Tools that clients of Responses run (shell, local_shell, apply_patch) at vendors that do not know them, by OpenAI's SDK. */

import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'bun:test';
import OpenAI from 'openai';
import { clientCallItem } from '../../../src/conversation/tools/client-tools.ts';
import type { JsonObject } from '../../../src/lib/json/json.ts';
import {
  type FakeUpstream,
  refuse,
  say,
  startFakeUpstream,
  toolNames,
} from '../../support/fake-upstream/index.ts';
import { type InProcess, startInProcess } from '../../support/in-process.ts';

/** The last one speaks Responses, and knows functions alone. */
const FUNCTIONS_ALONE = 'functions-alone';
const VENDORS = ['openai-chat', 'anthropic-messages', 'google-gemini', FUNCTIONS_ALONE] as const;
const protocolOf = (vendor: (typeof VENDORS)[number] | 'openai-responses') =>
  vendor === FUNCTIONS_ALONE ? 'openai-responses' : vendor;

let upstream: FakeUpstream;
let gateway: InProcess;
let openai: OpenAI;

beforeAll(async () => {
  upstream = await startFakeUpstream();
  gateway = await startInProcess({
    profiles: { [FUNCTIONS_ALONE]: { toolTypes: ['function'] } },
    providers: Object.fromEntries(
      [...VENDORS, 'openai-responses' as const].map((vendor) => [
        vendor,
        {
          protocol: protocolOf(vendor),
          base_url: upstream.baseUrl(protocolOf(vendor)),
          keys: ['sk-upstream'],
          models: [`m-${vendor}`, ...(vendor === 'openai-responses' ? ['m-history'] : [])],
          ...(vendor === FUNCTIONS_ALONE && { profile: vendor }),
        },
      ]),
    ),
    retry: { attempts: 1 },
  });
  openai = new OpenAI({ baseURL: `${gateway.url}/v1`, apiKey: 'none', maxRetries: 0 });
});
afterAll(async () => {
  await gateway.stop();
  await upstream.stop();
});
beforeEach(() => upstream.clear());

interface Case {
  readonly tool: JsonObject;
  readonly name: string;
  readonly given: JsonObject;
  /** What the client gets beside ids and status. */
  readonly item: JsonObject;
  /** The output that the client sends back, and what the model reads of it. */
  readonly output: JsonObject;
  readonly reads: string;
}

const CASES: readonly Case[] = [
  {
    tool: { type: 'shell', environment: { type: 'local' } },
    name: 'shell',
    given: { commands: ['ls', 'false'], timeout_ms: 500 },
    item: {
      type: 'shell_call',
      action: { commands: ['ls', 'false'], timeout_ms: 500, max_output_length: null },
      environment: { type: 'local' },
    },
    output: {
      type: 'shell_call_output',
      output: [
        { stdout: 'a.txt', stderr: '', outcome: { type: 'exit', exit_code: 0 } },
        { stdout: '', stderr: 'no', outcome: { type: 'exit', exit_code: 1 } },
        { stdout: '', stderr: '', outcome: { type: 'timeout' } },
      ],
    },
    reads: 'a.txt\nno\n(exit code 1)\n(timed out)',
  },
  {
    tool: { type: 'local_shell' },
    name: 'local_shell',
    given: { command: ['ls', '-l'], working_directory: '/tmp' },
    item: {
      type: 'local_shell_call',
      action: { type: 'exec', command: ['ls', '-l'], env: {}, working_directory: '/tmp' },
    },
    output: { type: 'local_shell_call_output', output: 'a.txt' },
    reads: 'a.txt',
  },
  {
    tool: { type: 'apply_patch' },
    name: 'apply_patch',
    given: { type: 'update_file', path: 'a.txt', diff: '@@\n-old\n+new "x"\n' },
    item: {
      type: 'apply_patch_call',
      operation: { type: 'update_file', path: 'a.txt', diff: '@@\n-old\n+new "x"\n' },
    },
    output: { type: 'apply_patch_call_output', status: 'failed', output: 'no such lines' },
    reads: 'no such lines',
  },
];

/** The finished response as the SDK has it, with each item as its event gave it. */
async function ask(body: JsonObject, stream: boolean): Promise<OpenAI.Responses.Response> {
  const request = body as unknown as OpenAI.Responses.ResponseCreateParamsNonStreaming;
  if (!stream) return openai.responses.create(request);
  const events = await openai.responses.create({ ...request, stream: true });
  const done: OpenAI.Responses.ResponseOutputItem[] = [];
  const added: string[] = [];
  let last: OpenAI.Responses.Response | undefined;
  for await (const event of events) {
    if (event.type === 'response.output_item.added') added.push(event.item.type);
    if (event.type === 'response.output_item.done') done.push(event.item);
    if (event.type === 'response.completed') last = event.response;
  }
  // Of a vendor's own items, the events have its ids.
  const known = ({ id: _, ...item }: OpenAI.Responses.ResponseOutputItem) => item;
  if (body.model === `m-${FUNCTIONS_ALONE}`)
    expect(last?.output.map(known)).toEqual(done.map(known));
  else expect(last?.output).toEqual(done);
  expect(added).toEqual(done.map(({ type }) => type));
  return last!;
}

const textsIn = (body: unknown): string => JSON.stringify(body);

describe.each(VENDORS)('at a vendor (%s)', (vendor) => {
  const model = `m-${vendor}`;

  for (const { tool, name, given, item, output, reads } of CASES) {
    for (const stream of [true, false]) {
      test(`${name} is a function, and its call the client's own item; streamed: ${stream}`, async () => {
        upstream.enqueue(
          {
            parts: [
              { kind: 'text', text: 'Let me see.' },
              { kind: 'call', name, arguments: JSON.stringify(given), id: 'call_1' },
            ],
            delivery: { split: (bytes) => [...bytes].map((byte) => Uint8Array.of(byte)) },
          },
          { parts: [{ kind: 'text', text: 'Done.' }] },
        );
        const input = [{ role: 'user', content: 'Do it.' }];
        const own = {
          type: 'function',
          name: 'own',
          parameters: { type: 'object' },
          strict: false,
        };
        const tools = [tool, own];
        const first = await ask({ model, input, tools }, stream);
        expect(upstream.refusals).toEqual([]);
        expect(toolNames(protocolOf(vendor), upstream.modelRequests[0]!.body)).toEqual([
          name,
          'own',
        ]);
        const call = first.output.at(-1)! as unknown as JsonObject;
        expect(call).toMatchObject({ ...item, status: 'completed' });
        expect(call.call_id).toBeString();
        const back = { ...output, call_id: call.call_id! };
        const second = await ask(
          { model, tools, input: [...input, ...first.output, back] as unknown as JsonObject[] },
          stream,
        );
        expect(upstream.refusals).toEqual([]);
        expect(textsIn(second.output)).toContain('"Done."');
        const sent = textsIn(upstream.modelRequests[1]!.body);
        expect(sent).toContain(JSON.stringify(reads).slice(1, -1));
        expect(sent.replaceAll('\\', '')).toContain(JSON.stringify(Object.values(given)[0]));
      });
    }
  }

  test('arguments that do not fit the tool are a failed answer, not a command', async () => {
    upstream.enqueue({
      parts: [{ kind: 'call', name: 'apply_patch', arguments: '{"path":"a.txt"}' }],
    });
    const response = await fetch(`${gateway.url}/v1/responses`, {
      method: 'POST',
      body: JSON.stringify({ model, input: 'x', tools: [{ type: 'apply_patch' }] }),
    });
    expect(response.status).toBe(502);
    expect(await response.text()).toContain('broken_tool_arguments');
    upstream.enqueue({ parts: [{ kind: 'call', name: 'shell', arguments: '{"path":"a.txt"}' }] });
    const answer = await fetch(`${gateway.url}/v1/responses`, {
      method: 'POST',
      body: JSON.stringify({ model, stream: true, input: 'x', tools: [{ type: 'shell' }] }),
    });
    let streamed = '';
    // The connection is reset behind the error.
    try {
      for await (const chunk of answer.body!) streamed += Buffer.from(chunk).toString();
    } catch {}
    expect(streamed).toContain('do not fit it');
    expect(streamed).not.toContain('"shell_call"');
    expect(streamed).not.toContain('response.completed');
  });

  test('a shell in a container of the vendor is left out, with a note', async () => {
    upstream.enqueue({ parts: [{ kind: 'text', text: 'x' }] });
    const tools = [{ type: 'shell', environment: { type: 'container_auto' } }];
    const response = await fetch(`${gateway.url}/v1/responses`, {
      method: 'POST',
      body: JSON.stringify({ model, input: 'x', tools }),
    });
    expect(response.headers.get('x-hopgate-notes')).toContain('hosted_tool_dropped');
    expect(toolNames(protocolOf(vendor), upstream.modelRequests[0]!.body)).toEqual([]);
  });

  const lookedAt = (screen: object) => {
    const call_id = 'call_1';
    return [
      { role: 'user', content: 'Look.' },
      {
        type: 'computer_call',
        id: 'cu_1',
        call_id,
        action: { type: 'screenshot' },
        status: 'completed',
        pending_safety_checks: [],
      },
      {
        type: 'computer_call_output',
        call_id,
        output: { type: 'computer_screenshot', ...screen },
      },
    ];
  };

  test('the screen in the output of a computer reaches the model', async () => {
    upstream.enqueue({ parts: [{ kind: 'text', text: 'x' }] });
    const data = Buffer.from('\x89PNG\r\n\x1a\n').toString('base64');
    await ask({ model, input: lookedAt({ image_url: `data:image/png;base64,${data}` }) }, false);
    expect(upstream.refusals).toEqual([]);
    expect(textsIn(upstream.modelRequests[0]!.body)).toContain(data);
  });

  test('a screen that only its vendor has is told to the model and in a note', async () => {
    upstream.enqueue({ parts: [{ kind: 'text', text: 'x' }] });
    const response = await fetch(`${gateway.url}/v1/responses`, {
      method: 'POST',
      body: JSON.stringify({ model, input: lookedAt({ file_id: 'file-screen' }) }),
    });
    expect(response.status).toBe(200);
    expect(upstream.refusals).toEqual([]);
    const sent = textsIn(upstream.modelRequests[0]!.body);
    if (protocolOf(vendor) === 'openai-responses') {
      expect(sent).toContain('file-screen');
      return;
    }
    expect(sent).toMatch(/The screen after an earlier action:.*\[image (?:not shown|omitted)\]/);
    expect(response.headers.get('x-hopgate-notes')).toContain('content_dropped');
  });
});

// Gemini's arguments come whole.
test.each(
  VENDORS.slice(0, 2).flatMap((vendor) => [true, false].map((stream) => [vendor, stream] as const)),
)('a call that is cut off at %s does nothing; streamed: %p', async (vendor, stream) => {
  for (const [name, cut] of [
    ['shell', '{"commands":["wipe bu'],
    ['local_shell', '{"command":["wipe","bu'],
    ['apply_patch', '{"type":"delete_file","path":"wipe'],
  ] as const) {
    upstream.enqueue({ parts: [{ kind: 'call', name, arguments: cut }], finish: 'length' });
    const response = await fetch(`${gateway.url}/v1/responses`, {
      method: 'POST',
      body: JSON.stringify({ model: `m-${vendor}`, stream, input: 'x', tools: [{ type: name }] }),
    });
    const text = await response.text();
    expect(text).toContain('incomplete');
    expect(text).not.toContain('wipe');
  }
});

test('at a vendor of Responses nothing changes', async () => {
  upstream.enqueue({ parts: [{ kind: 'text', text: 'x' }] });
  const input = [
    { role: 'user', content: 'Do it.' },
    { type: 'shell_call', call_id: 'call_1', action: { commands: ['ls'] }, status: 'completed' },
    { type: 'shell_call_output', call_id: 'call_1', output: [] },
  ];
  const tools = [{ type: 'shell' }, { type: 'apply_patch' }];
  await openai.responses.create({ model: 'm-openai-responses', input, tools } as never);
  expect(upstream.modelRequests[0]!.body).toMatchObject({ input, tools });
});

const refused = (message: string) =>
  refuse(
    400,
    {},
    { error: { message, type: 'invalid_request_error', param: 'tools', code: null } },
  );

const KEEN = { model: 'm-openai-responses', input: 'x' };

test('a request for a refused tool alone reads the refusal', async () => {
  upstream.enqueue(refused("Tool 'image_generation' is not supported with gpt-5.3-codex-spark."));
  const asked = openai.responses.create({
    ...KEEN,
    tools: [{ type: 'image_generation' }],
  } as never);
  expect(await asked.catch(String)).toContain('is not supported with');
});

test('a refused item of the history is mended in a request without tools', async () => {
  const message = 'invalid "custom_tool_call" item: missing field `id`';
  upstream.enqueue(refused(message), say('x'));
  const call = { type: 'custom_tool_call', call_id: 'call_1', name: 'apply_patch', input: 'x' };
  const output = { type: 'custom_tool_call_output', call_id: 'call_1', output: 'Done.' };
  const input = [{ role: 'user', content: 'x' }, call, output];
  await openai.responses.create({ model: 'm-history', input } as never);
  const { body } = upstream.modelRequests.at(-1)!;
  expect(JSON.stringify(body)).toContain('"function_call"');
  expect(JSON.stringify(body)).not.toContain('custom_tool_call');
});

// https://github.com/diegosouzapw/OmniRoute/issues/5251
test('a vendor that no longer knows one of them gets that one as a function, and the others as they are', async () => {
  const gone = (type: string) => refused(`The ${type} tool is no longer supported.`);
  upstream.enqueue(gone('local_shell'), gone('image_generation'), say('x'), say('y'));
  const patch = { type: 'custom', name: 'apply_patch' };
  const tools = [{ type: 'local_shell' }, { type: 'image_generation' }, patch];
  for (let i = 0; i < 2; i++) await openai.responses.create({ ...KEEN, tools } as never);
  expect(upstream.modelRequests).toHaveLength(4);
  for (const { body } of upstream.modelRequests.slice(2)) {
    expect((body as { tools: JsonObject[] }).tools).toMatchObject([
      { type: 'function', name: 'local_shell' },
      patch,
    ]);
  }
});

test('the output of local_shell finds its call by the id of the item', async () => {
  upstream.enqueue({ parts: [{ kind: 'text', text: 'x' }] });
  const input = [
    { role: 'user', content: 'Do it.' },
    {
      type: 'local_shell_call',
      id: 'lsh_1',
      call_id: 'call_1',
      action: { type: 'exec', command: ['ls'], env: {} },
      status: 'completed',
    },
    { type: 'local_shell_call_output', id: 'lsh_1', output: 'a.txt' },
  ];
  await openai.responses.create({
    model: 'm-openai-chat',
    input,
    tools: [{ type: 'local_shell' }],
  } as never);
  const { messages } = upstream.modelRequests[0]!.body as { messages: JsonObject[] };
  expect(messages.at(-1)).toMatchObject({ role: 'tool', tool_call_id: 'call_1', content: 'a.txt' });
});

test('a choice of such a tool is one of the function', async () => {
  upstream.enqueue({
    parts: [{ kind: 'call', name: 'shell', arguments: '{"commands":["ls"]}', id: 'call_1' }],
  });
  await openai.responses.create({
    model: 'm-openai-chat',
    input: 'x',
    tools: [{ type: 'shell' }],
    tool_choice: { type: 'shell' },
  } as never);
  expect(upstream.modelRequests[0]!.body).toMatchObject({
    tool_choice: { type: 'function', function: { name: 'shell' } },
  });
});

test.each([
  ['shell', { commands: 'ls' }, { action: { commands: ['ls'] } }],
  ['shell', { command: ['ls'] }, { action: { commands: ['ls'] } }],
  ['local-shell', { command: 'ls | wc' }, { action: { command: ['sh', '-c', 'ls | wc'] } }],
  ['apply-patch', { type: 'delete_file', path: 'a' }, { operation: { type: 'delete_file' } }],
  ['apply-patch', { operation: { type: 'delete_file', path: 'a' } }, { operation: { path: 'a' } }],
  ['shell', {}, undefined],
  ['shell', { commands: [] }, undefined],
  ['shell', { commands: [1] }, undefined],
  ['local-shell', { command: [] }, undefined],
  ['apply-patch', { type: 'create_file', path: 'a' }, undefined],
  ['apply-patch', { type: 'rename', path: 'a', diff: '' }, undefined],
  ['apply-patch', { type: 'delete_file', path: '' }, undefined],
] as const)('%s with %j', (kind, given, item) => {
  const read = () => clientCallItem(kind, JSON.stringify(given));
  if (item === undefined) expect(read).toThrow();
  else expect(read()).toMatchObject(item);
});
