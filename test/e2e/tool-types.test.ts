/** Codex at a vendor of Responses that knows function tools alone: its tools are functions there, and its own here. */

import { afterAll, afterEach, beforeAll, describe, expect, test } from 'bun:test';
import type { JsonObject } from '../../src/lib/json/json.ts';
import { allProviders, type Gateway, startGateway } from '../support/binary.ts';
import { type FakeUpstream, refuse, startFakeUpstream } from '../support/fake-upstream/index.ts';

let upstream: FakeUpstream;
let gateway: Gateway;

const parameters = { type: 'object', properties: { q: { type: 'string' } } };
const TOOLS = [
  { type: 'function', name: 'plain', parameters, strict: false },
  {
    type: 'namespace',
    name: 'mcp__idea',
    description: 'of an editor',
    tools: [{ type: 'function', name: 'find', parameters, strict: false }],
  },
  { type: 'tool_search', execution: 'client', description: 'more tools', parameters },
  { type: 'web_search' },
  { type: 'custom', name: 'apply_patch', description: 'a patch', format: { type: 'text' } },
];

/** As Codex 0.150 sends it: tools in the input, and a history of calls of all kinds. */
const INPUT = [
  {
    type: 'additional_tools',
    role: 'developer',
    tools: [
      {
        type: 'namespace',
        name: 'functions',
        description: 'all',
        tools: [{ type: 'custom', name: 'exec', description: 'code', format: { type: 'text' } }],
      },
    ],
  },
  { role: 'user', content: 'go' },
  { type: 'custom_tool_call', call_id: 'c0', name: 'exec', namespace: 'functions', input: 'hi()' },
  { type: 'custom_tool_call_output', call_id: 'c0', output: 'said hi' },
  {
    type: 'tool_search_call',
    call_id: 'c1',
    execution: 'client',
    status: 'completed',
    arguments: { q: 'late' },
  },
  {
    type: 'tool_search_output',
    call_id: 'c1',
    execution: 'client',
    status: 'completed',
    tools: [{ type: 'function', name: 'late', parameters, strict: false, defer_loading: true }],
  },
  { type: 'agent_message', content: [{ type: 'input_text', text: 'a helper is done' }] },
  { type: 'function_call', call_id: 'c2', name: 'find', namespace: 'mcp__idea', arguments: '{}' },
  { type: 'function_call_output', call_id: 'c2', output: 'found' },
];

const KNOWN = ['message', 'function_call', 'function_call_output', 'reasoning'];

/** Only functions, plain names and plain items. */
const isPlain = ({ tools, input }: JsonObject): boolean =>
  (tools as JsonObject[]).every(
    ({ type, defer_loading: deferred }) => type === 'function' && deferred === undefined,
  ) &&
  (input as JsonObject[]).every(
    ({ type = 'message', namespace }) => KNOWN.includes(`${type}`) && namespace === undefined,
  );

const ANSWER = {
  parts: [
    { kind: 'call', name: 'functions__exec', arguments: '{"input":"ls()"}', id: 'call_1' },
    { kind: 'call', name: 'mcp__idea__find', arguments: '{"q":"x"}', id: 'call_2' },
    { kind: 'call', name: 'tool_search', arguments: '{"q":"y"}', id: 'call_3' },
    { kind: 'call', name: 'plain', arguments: '{}', id: 'call_4' },
  ],
} as const;

const outputOf = (text: string, stream: boolean): JsonObject[] => {
  if (!stream) return (JSON.parse(text) as { output: JsonObject[] }).output;
  const last = text.split('\n').findLast((line) => line.startsWith('data: {'))!;
  const event = JSON.parse(last.slice(6)) as { response: { output: JsonObject[] } };
  return event.response.output;
};

describe.each([false, true])('streamed: %p', (stream) => {
  beforeAll(async () => {
    upstream = await startFakeUpstream({ models: ['m1', 'gemini-3-m1'] });
    gateway = await startGateway(allProviders(upstream));
  }, 120_000);
  afterEach(() => upstream.clear());
  afterAll(async () => {
    await gateway?.stop();
    await upstream?.stop();
  });

  test('it is refused once, then asked with functions, and its calls come back as what Codex declared', async () => {
    let refused = 0;
    upstream.answerWith(({ body }) => {
      if (isPlain(body)) return { parts: [...ANSWER.parts] };
      refused++;
      const error = { message: 'Invalid', type: 'invalid_request_error', param: 'tools.1.type' };
      return refuse(400, {}, { error: { ...error, code: 'invalid_string' } });
    });
    const ask = () =>
      fetch(`${gateway.url}/v1/responses`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({
          model: 'via-responses',
          input: INPUT,
          tools: TOOLS,
          tool_choice: 'auto',
          store: false,
          stream,
        }),
      });
    for (let turn = 0; turn < 2; turn++) {
      const answer = await ask();
      expect(answer.status).toBe(200);
      const output = outputOf(await answer.text(), stream);
      expect(
        output.map(({ type, name, namespace, input, arguments: given }) =>
          [type, name, namespace, input ?? given].filter((part) => part !== undefined),
        ),
      ).toEqual([
        ['custom_tool_call', 'exec', 'functions', 'ls()'],
        ['function_call', 'find', 'mcp__idea', '{"q":"x"}'],
        ['tool_search_call', { q: 'y' }],
        ['function_call', 'plain', '{}'],
      ]);
    }
    expect(refused).toBe(1);
    const sent = upstream.received.at(-1)!;
    expect((sent.body.tools as JsonObject[]).map(({ name }) => name)).toEqual([
      'plain',
      'mcp__idea__find',
      'tool_search',
      'apply_patch',
      'functions__exec',
      'late',
    ]);
    expect(JSON.stringify(sent.body.input)).toContain('a helper is done');
    expect(sent.body.input).toContainEqual({
      type: 'function_call',
      call_id: 'c0',
      name: 'functions__exec',
      arguments: '{"input":"hi()"}',
    });
  });
});
