/** What an answer is shows in its first bytes: vendors and relays label streams as JSON, and JSON as streams. */

import { describe, expect, test } from 'bun:test';
import { formOf, isEvents } from '../../src/gateway/stream/quiet-bytes.ts';
import { saying } from './raw-upstream.ts';
import { scriptedGateway } from './scripted.ts';

const TYPES = [
  'application/json',
  'text/plain',
  'application/octet-stream',
  '',
  'text/event-stream',
];
const CLIENTS: readonly ('openai-chat' | 'anthropic-messages')[] = [
  'openai-chat',
  'anthropic-messages',
];
const chunk = (delta: object, finish_reason: string | null) =>
  `data: ${JSON.stringify({ id: 'c', object: 'chat.completion.chunk', created: 1, model: 'm', choices: [{ index: 0, delta, finish_reason }] })}\n\n`;
const SSE = [
  ': hello\n\n',
  chunk({ role: 'assistant', content: 'Hel' }, null),
  chunk({ content: 'lo.' }, null),
  chunk({}, 'stop'),
  'data: [DONE]\n\n',
];
const JSON_ANSWER = JSON.stringify({
  id: 'c',
  object: 'chat.completion',
  created: 1,
  model: 'm',
  choices: [{ index: 0, message: { role: 'assistant', content: 'Hello.' }, finish_reason: 'stop' }],
});
const BODIES = {
  events: SSE,
  'events byte by byte': [...SSE.join('')],
  'events behind blank lines': ['\n\n', ...SSE],
  JSON: [JSON_ANSWER],
  'JSON byte by byte': [...JSON_ANSWER],
  'events behind a byte order mark': [`\ufeff${SSE.join('')}`],
  'JSON behind a byte order mark': [`\ufeff${JSON_ANSWER}`],
};

const textOf = (raw: string): string =>
  [...raw.matchAll(/"(?:content|text)":"([^"]*)"/g)].map(([, text]) => text).join('');

describe.each(TYPES)('content-type %j', (type) => {
  for (const [name, sse] of Object.entries(BODIES)) {
    for (const client of CLIENTS) {
      test.each([true, false])(`${name} for ${client}, stream: %p`, async (stream) => {
        const gateway = scriptedGateway('openai-chat', [{ sse, type }]);
        const body = { model: 'up/m', max_tokens: 9, messages: [{ role: 'user', content: 'x' }] };
        const answer = await gateway.ask(client, { ...body, stream });
        expect([answer.status, answer.reset, textOf(answer.text)]).toEqual([200, false, 'Hello.']);
        expect(/^\ufeff?{/.test(answer.text)).toBe(!stream);
        expect(gateway.sent).toHaveLength(1);
      });
    }
  }
});

const GEMINI = JSON.stringify({
  candidates: [{ content: { role: 'model', parts: [{ text: 'Hello.' }] }, finishReason: 'STOP' }],
});
const behindHead = (text: string) => text.slice(text.indexOf('\r\n\r\n') + 4);
const VENDORS = {
  'openai-responses': (stream: boolean) => behindHead(saying('openai-responses', stream, 'Hello.')),
  'anthropic-messages': (stream: boolean) =>
    behindHead(saying('anthropic-messages', stream, 'Hello.')),
  'google-gemini': (stream: boolean) => (stream ? `data: ${GEMINI}\r\n\r\n` : GEMINI),
};
describe.each(Object.keys(VENDORS) as (keyof typeof VENDORS)[])('a vendor of %s', (vendor) => {
  test.each(TYPES)('content-type %j: events and JSON, asked for or not', async (type) => {
    for (const client of CLIENTS) {
      for (const [events, stream] of [
        [true, true],
        [true, false],
        [false, true],
        [false, false],
      ] as const) {
        const gateway = scriptedGateway(vendor, [{ sse: [VENDORS[vendor](events)], type }]);
        const body = { model: 'up/m', max_tokens: 9, messages: [{ role: 'user', content: 'x' }] };
        const answer = await gateway.ask(client, { ...body, stream });
        expect([answer.status, answer.reset, textOf(answer.text)]).toEqual([200, false, 'Hello.']);
        expect(/^\ufeff?{/.test(answer.text)).toBe(!stream);
        expect(gateway.sent).toHaveLength(1);
      }
    }
  });
});

test('neither a stream nor JSON is an error, whatever its type', async () => {
  for (const type of TYPES) {
    const script = [1, 2].map(() => ({ sse: ['<html>oops</html>'], type }));
    const gateway = scriptedGateway('openai-chat', script);
    const body = { model: 'up/m', stream: true, messages: [{ role: 'user', content: 'x' }] };
    expect((await gateway.ask('openai-chat', body)).status).toBe(502);
  }
});

test('the type decides where the bytes say nothing', () => {
  const bytes = (text: string) => Buffer.from(text);
  expect(formOf(bytes('\ufeffdata: {}'))).toBe('events');
  expect(formOf(bytes('\ufeff \n{"a":1}'))).toBe('json');
  expect(formOf(bytes('\ufeff'))).toBeUndefined();
  expect(formOf(bytes('ev'))).toBe('events');
  expect(formOf(bytes('data'))).toBe('events');
  expect(formOf(bytes('dataset'))).toBeUndefined();
  expect(isEvents('text/event-stream', bytes('\n'))).toBe(true);
  expect(isEvents('application/json', undefined)).toBe(false);
});
