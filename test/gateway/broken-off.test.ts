/** Silence, cuts and disconnects outside a stream: in an error, a token count, the queue. */

import { expect, test } from 'bun:test';
import { CODECS } from '../../src/app/codecs.ts';
import { anthropicMessages } from '../../src/codecs/anthropic-messages/index.ts';
import { environmentFrom } from '../../src/config/environment.ts';
import { parseConfig } from '../../src/config/load.ts';
import type { Feature } from '../../src/features/feature.ts';
import { createTokenCounter } from '../../src/gateway/count-tokens/count-tokens.ts';
import { WITHOUT_KEY } from '../../src/keys/principal.ts';
import { routingTable } from '../../src/routing/index.ts';
import { ConcurrencyLimit } from '../../src/upstream/concurrency-limit.ts';
import { answerOf } from '../../src/upstream/fetch-transport.ts';
import { Upstream } from '../../src/upstream/upstream.ts';
import { scriptedGateway } from './scripted.ts';

const ASKED = { model: 'm', max_tokens: 9, messages: [{ role: 'user', content: 'hi' }] };

test('an error answer that never ends is that error, once its vendor was silent for too long', async () => {
  const gateway = scriptedGateway(
    'openai-chat',
    [
      {
        status: 400,
        stalls: '{"error":{"message":"No such field","type":"invalid_request_error"}}',
      },
    ],
    [],
    'timeouts: { idle: 0.2 }',
  );
  const answer = await gateway.ask('openai-chat', { ...ASKED, max_tokens: undefined });
  expect(answer.status).toBe(400);
  expect(answer.text).toContain('No such field');
});

const READING: Feature = {
  name: 'reading',
  intercept: () => ({ event: (event) => event, end: () => [] }),
};

test.each([
  [1, 'forwarded', []],
  [40, 'forwarded', []],
  [1, 'read by a feature', [READING]],
  [40, 'read by a feature', [READING]],
] as const)(
  'a stream of Responses that breaks off behind %i frames of text goes on in its numbers, %s',
  async (deltas, _, features) => {
    let number = 0;
    const event = (type: string, members: object) => {
      const data = JSON.stringify({ type, sequence_number: number++, ...members });
      return `event: ${type}\ndata: ${data}\n\n`;
    };
    const response = { id: 'resp_1', object: 'response', status: 'in_progress', output: [] };
    const at = { item_id: 'msg_1', output_index: 0, content_index: 0 };
    const item = { id: 'msg_1', type: 'message', role: 'assistant', content: [] };
    const sse = [
      event('response.created', { response }),
      event('response.output_item.added', { output_index: 0, item }),
      event('response.content_part.added', { ...at, part: { type: 'output_text', text: '' } }),
      ...Array.from({ length: deltas }, () =>
        event('response.output_text.delta', { ...at, delta: 'x"sequence_number":7'.repeat(20) }),
      ),
    ];
    const gateway = scriptedGateway('openai-responses', [{ sse, cut: true }], features);
    const answer = await gateway.ask('openai-responses', { model: 'm', input: 'x', stream: true });
    const numbers = answer.text
      .split('\n')
      .filter((line) => line.startsWith('data: {'))
      .map((line) => JSON.parse(line.slice(6)).sequence_number);
    expect(answer.text).toContain('response.failed');
    expect(numbers).toEqual(numbers.map((_, i) => i));
    expect(numbers).toHaveLength(sse.length + 2);
  },
);

test('a client that leaves while it waits for its turn is told of as gone, not as a failure here', async () => {
  const slots = new ConcurrencyLimit(1);
  const leave = slots.take(new AbortController()) as () => void;
  const gateway = scriptedGateway('openai-chat', [], [], '', { slots });
  const abort = new AbortController();
  const waiting = gateway.ask('openai-chat', ASKED, abort.signal);
  abort.abort();
  expect((await waiting).status).toBe(499);
  // A client that left is no error in the log, the metrics or a sample.
  expect(gateway.summaries.map(({ status, error }) => [status, error])).toEqual([[499, undefined]]);
  leave();
  // The queue is empty, so no place in it can be lost.
  expect(typeof slots.take(new AbortController())).toBe('function');
});

test('a count that breaks off gives its place back: the next one is not left waiting', async () => {
  const loaded = parseConfig(
    'providers: { up: { protocol: anthropic-messages, base_url: "http://up.test", models: ["*"], concurrency: 1 } }',
    'test.yaml',
    environmentFrom({}, '/nowhere'),
  );
  if (!loaded.ok) throw new Error(JSON.stringify(loaded.problems));
  let asked = 0;
  const provider = loaded.config.providers.up!;
  const upstream = new Upstream(provider, async () => {
    asked++;
    const body = new ReadableStream<Uint8Array>({
      pull: (controller) => controller.error(new Error('reset by peer')),
    });
    return answerOf(new Response(body));
  });
  const table = routingTable(loaded.config);
  const count = createTokenCounter({
    protocols: CODECS,
    foreignIds: async () => [],
    services: () => ({ table, slots: new ConcurrencyLimit(0), upstream: () => upstream }),
  });
  for (let i = 1; i <= 2; i++) {
    const response = await count({
      id: 'req_1790000000000_abcdef',
      protocol: anthropicMessages,
      body: new TextEncoder().encode(JSON.stringify(ASKED)),
      headers: new Headers(),
      sessionId: '',
      search: '',
      signal: new AbortController().signal,
      principal: WITHOUT_KEY,
      owner: '',
      started: performance.now(),
    });
    expect(response.headers.get('x-hopgate-notes')).toBe('tokens_estimated');
    expect(asked).toBe(i);
  }
});
