/** Tool calls that a model leaks as text arrive as calls, through the binary, for every kind of client. */

import { afterAll, beforeAll, describe, expect } from 'bun:test';
import OpenAI from 'openai';
import { type Gateway, startGateway, threeProviders } from '../support/binary.ts';
import { type FakeUpstream, startFakeUpstream } from '../support/fake-upstream/index.ts';
import { fixtureTest, type LeakCase, leakCases } from '../support/fixtures.ts';

let upstream: FakeUpstream;
let gateway: Gateway;

beforeAll(async () => {
  upstream = await startFakeUpstream();
  gateway = await startGateway(threeProviders(upstream));
}, 120_000);
afterAll(async () => {
  await gateway?.stop();
  await upstream?.stop();
});

interface Expected {
  kind: string;
  content?: string;
  calls: { name: string; arguments: unknown }[];
}

/** What an OpenAI client reads from a leaked answer split into pieces of this size. */
async function hear(leak: LeakCase, piece: number, stream: boolean) {
  upstream.clear();
  upstream.enqueue({
    parts: [
      ...(leak.reasoning ? [{ kind: 'reasoning' as const, text: leak.reasoning }] : []),
      { kind: 'text', text: leak.text },
    ],
    delivery: { piece },
  });
  const client = new OpenAI({ apiKey: 'k', baseURL: `${gateway.url}/v1`, maxRetries: 0 });
  const body = {
    model: 'via-chat',
    messages: [{ role: 'user' as const, content: 'x' }],
    tools: (leak.tools ?? []).map((tool) => ({
      type: 'function' as const,
      function: tool as never,
    })),
  };
  const completion = stream
    ? await client.chat.completions.stream(body).finalChatCompletion()
    : await client.chat.completions.create(body);
  const { message, finish_reason } = completion.choices[0]!;
  const calls = (message.tool_calls ?? []).map((call) => {
    if (call.type !== 'function') throw new Error('a custom call where none was offered');
    return { name: call.function.name, arguments: JSON.parse(call.function.arguments) as unknown };
  });
  return { content: (message.content ?? '').trim(), calls, finish: finish_reason };
}

describe('leaked calls', () => {
  for (const [how, piece, stream] of [
    ['in token-like pieces', 5, true],
    ['one character at a time', 1, true],
    ['whole', 5, false],
  ] as const) {
    fixtureTest(
      `${how}: what is a call becomes one, what only looks so stays text`,
      async () => {
        const wrong: unknown[] = [];
        for (const leak of leakCases()) {
          const wanted = leak.expect as unknown as Expected;
          if (wanted.kind !== 'calls' && wanted.kind !== 'unchanged') continue;
          const reply = await hear(leak, piece, stream);
          const content = wanted.kind === 'unchanged' ? leak.text.trim() : wanted.content?.trim();
          const good =
            Bun.deepEquals(reply.calls, wanted.calls) &&
            (content === undefined || reply.content === content) &&
            reply.finish === (wanted.calls.length > 0 ? 'tool_calls' : 'stop');
          if (!good) wrong.push({ id: leak.id, wanted, heard: reply });
        }
        expect(wrong).toEqual([]);
      },
      120_000,
    );
  }
});
