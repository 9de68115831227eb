/** What was said goes into spans only where it is asked for: masked, bounded, and in the form of the conventions. */

import { describe, expect, test } from 'bun:test';
import { CODECS } from '../../../src/app/codecs.ts';
import { traceRecording } from '../../../src/app/telemetry/exchange-trace.ts';
import { type ContentRules, messageContent } from '../../../src/app/telemetry/message-content.ts';
import type { ProtocolName } from '../../../src/conversation/types.ts';
import { ClientRequest } from '../../../src/gateway/client-request.ts';
import type { Exchange, Summary } from '../../../src/gateway/types.ts';
import { ExchangeTrace } from '../../../src/telemetry/trace.ts';

const RULES: ContentRules = {
  unrecorded: new Set(),
  literals: ['the-own-secret'],
  withoutTexts: false,
  withoutImages: false,
};

const TOOL = { name: 'Bash', description: 'd', schema: { type: 'object', properties: {} } };

/** The same conversation for each protocol. */
const REQUESTS: Readonly<Record<ProtocolName, object>> = {
  'openai-chat': {
    model: 'm',
    messages: [
      { role: 'system', content: 'Be kind.' },
      { role: 'user', content: 'List the files.' },
      {
        role: 'assistant',
        content: 'Yes.',
        tool_calls: [
          { id: 'c1', type: 'function', function: { name: 'Bash', arguments: '{"command":"ls"}' } },
        ],
      },
      { role: 'tool', tool_call_id: 'c1', content: 'a.txt' },
    ],
    tools: [{ type: 'function', function: { name: TOOL.name, parameters: TOOL.schema } }],
  },
  'openai-responses': {
    model: 'm',
    instructions: 'Be kind.',
    input: [
      { role: 'user', content: 'List the files.' },
      { role: 'assistant', content: 'Yes.' },
      { type: 'function_call', call_id: 'c1', name: 'Bash', arguments: '{"command":"ls"}' },
      { type: 'function_call_output', call_id: 'c1', output: 'a.txt' },
    ],
  },
  'anthropic-messages': {
    model: 'm',
    max_tokens: 5,
    system: 'Be kind.',
    messages: [
      { role: 'user', content: 'List the files.' },
      {
        role: 'assistant',
        content: [
          { type: 'text', text: 'Yes.' },
          { type: 'tool_use', id: 'c1', name: 'Bash', input: { command: 'ls' } },
        ],
      },
      { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'c1', content: 'a.txt' }] },
    ],
  },
  'google-gemini': {
    model: 'm',
    systemInstruction: { parts: [{ text: 'Be kind.' }] },
    contents: [
      { role: 'user', parts: [{ text: 'List the files.' }] },
      {
        role: 'model',
        parts: [
          { text: 'Yes.' },
          { functionCall: { id: 'c1', name: 'Bash', args: { command: 'ls' } } },
        ],
      },
      {
        role: 'user',
        parts: [{ functionResponse: { id: 'c1', name: 'Bash', response: { result: 'a.txt' } } }],
      },
    ],
  },
};

const NAMES = Object.keys(REQUESTS) as ProtocolName[];

interface Told {
  readonly status?: number;
  readonly rules?: Partial<ContentRules>;
  readonly text?: string;
  readonly stream?: boolean;
}

/** The attributes of an exchange with this request. */
function content(
  protocol: ProtocolName,
  body: object,
  { status = 200, rules = {}, text = 'One file.', stream = false }: Told = {},
) {
  const codec = CODECS[protocol];
  const trace = new ExchangeTrace({ ratio: 1, trustSampled: false }, undefined);
  const request = new ClientRequest(codec, Buffer.from(JSON.stringify(body)));
  const exchange = { trace, protocol: codec } as unknown as Exchange;
  const recording = traceRecording(exchange, true)!;
  const type = stream ? 'text/event-stream' : 'application/json';
  recording.clientStart(status, new Headers({ 'content-type': type }));
  const client = {
    request: request.conversation,
    requestId: 'req_1',
    provider: 'v',
    notes: { add() {} } as never,
  };
  if (stream) {
    const encoder = codec.encodeStream(client);
    for (const event of [
      { type: 'start', id: 'a', model: 'm' },
      { type: 'block-start', index: 0, head: { type: 'text' } },
      { type: 'delta', index: 0, text },
      { type: 'block-stop', index: 0 },
      { type: 'finish', reason: 'stop' },
      { type: 'end' },
    ] as const) {
      recording.clientChunk(encoder.event(event));
    }
  } else {
    const reply = {
      id: 'a',
      model: 'm',
      blocks: [{ type: 'text', text }],
      finish: 'stop',
    } as const;
    recording.clientChunk(Buffer.from(JSON.stringify(codec.encodeReply(reply, client))));
  }
  const summary = { exchange, request, finish: 'stop', route: 'private' } as unknown as Summary;
  const found = messageContent(summary, { ...RULES, ...rules });
  const parsed = (value: unknown) =>
    typeof value === 'string' ? (JSON.parse(value) as Record<string, unknown>[]) : undefined;
  return {
    system: parsed(found.systemInstructions),
    input: parsed(found.inputMessages),
    output: parsed(found.outputMessages),
    all: JSON.stringify(found),
  };
}

describe.each(NAMES)('%s', (protocol) => {
  test.each([false, true])('streamed: %p: what was asked, called and answered', (stream) => {
    const { system, input, output, all } = content(protocol, REQUESTS[protocol], { stream });
    expect(all).toContain('Be kind.');
    if (system !== undefined) expect(system).toEqual([{ type: 'text', content: 'Be kind.' }]);
    const messages = input!.filter(({ role }) => role !== 'system' && role !== 'developer');
    expect(messages[0]).toEqual({
      role: 'user',
      parts: [{ type: 'text', content: 'List the files.' }],
    });
    expect(messages.flatMap(({ parts }) => parts)).toContainEqual({
      type: 'tool_call',
      id: 'c1',
      name: 'Bash',
      arguments: { command: 'ls' },
    });
    expect(messages.at(-1)).toMatchObject({
      role: 'tool',
      parts: [{ type: 'tool_call_response', id: 'c1' }],
    });
    expect(JSON.stringify(messages.at(-1))).toContain('a.txt');
    expect(output).toEqual([
      {
        role: 'assistant',
        parts: [{ type: 'text', content: 'One file.' }],
        finish_reason: 'stop',
      },
    ]);
  });
});

const asked = (text: unknown) => ({ model: 'm', messages: [{ role: 'user', content: text }] });

test('credentials are masked, those of the configuration and those that look like one', () => {
  const key = `sk-ant-api03-${'a1B2'.repeat(12)}`;
  const { all } = content('openai-chat', asked(`My key is ${key}, the other the-own-secret.`), {
    text: `Yours is ${key}.`,
  });
  expect(all).toContain('My key is');
  expect(all).not.toContain(key);
  expect(all).not.toContain('the-own-secret');
});

test('a credential across the end of a text that is cut does not remain in part', () => {
  const key = `sk-ant-api03-${'a1B2'.repeat(12)}`;
  for (const before of [8150, 8170, 8185]) {
    const { all } = content('openai-chat', asked(`${'x '.repeat(before / 2)}${key} more`));
    expect(all).not.toContain('a1B2');
  }
});

test('texts are cut, and of many messages the last ones stay', () => {
  const long = content('openai-chat', asked('y'.repeat(100_000)));
  expect(long.all.length).toBeLessThan(20_000);
  expect(long.all).toContain('(100000 characters)');
  const messages = Array.from({ length: 2000 }, (_, i) => ({
    role: i % 2 === 0 ? 'user' : 'assistant',
    content: `number ${i} ${'z'.repeat(200)}`,
  }));
  const { input, all } = content('openai-chat', { model: 'm', messages });
  expect(JSON.stringify(input).length).toBeLessThan(80_000);
  expect(all).toContain('number 1999');
  expect(all).not.toContain('number 0 ');
});

test('bytes of images are never there', () => {
  const data = Buffer.from('picture'.repeat(50)).toString('base64');
  const parts = [
    { type: 'text', text: 'Look.' },
    { type: 'image_url', image_url: { url: `data:image/png;base64,${data}` } },
    { type: 'image_url', image_url: { url: 'https://x.example/a.png' } },
  ];
  const { all } = content('openai-chat', asked(parts));
  expect(all).not.toContain(data);
  expect(all).toContain('https://x.example/a.png');
  const without = content('openai-chat', asked(parts), { rules: { withoutImages: true } });
  expect(without.all).not.toContain('https://x.example/a.png');
});

test.each([
  ['texts are redacted in samples', { withoutTexts: true }],
  ['the route has no samples', { unrecorded: new Set(['private']) }],
])('%s: nothing is there', (_, rules) => {
  expect(content('openai-chat', asked('Hello'), { rules }).all).toBe('{}');
});

test('a failed exchange has what was asked and no answer', () => {
  const { input, output } = content('openai-chat', asked('Hello'), { status: 502 });
  expect(input).toHaveLength(1);
  expect(output).toBeUndefined();
});

test('without the option nothing of an answer is kept, and its stream goes the shorter way', () => {
  const trace = new ExchangeTrace({ ratio: 1, trustSampled: false }, undefined);
  const recording = traceRecording({ trace } as unknown as Exchange)!;
  recording.clientStart(200, new Headers());
  recording.clientChunk('data: x\n\n');
  expect([recording.ignoresClient, trace.answer]).toEqual([true, undefined]);
});

test('an answer without an end is kept up to a bound', () => {
  const trace = new ExchangeTrace({ ratio: 1, trustSampled: false }, undefined);
  const recording = traceRecording({ trace } as unknown as Exchange, true)!;
  recording.clientStart(200, new Headers());
  for (let i = 0; i < 100; i++) recording.clientChunk(new Uint8Array(100_000));
  const kept = trace.answer!.chunks.reduce((sum, { length }) => sum + length, 0);
  expect(kept).toBeLessThan(1_300_000);
});
