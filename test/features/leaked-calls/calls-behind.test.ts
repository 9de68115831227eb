/** What a vendor sends behind a call that is repaired reaches a client of the same protocol once. */

import { expect, test } from 'bun:test';
import { ChatCompletionStream } from 'openai/lib/ChatCompletionStream';
import { startInProcess } from '../../support/in-process.ts';

const chunk = (delta: object, finish: string | null = null) =>
  `data: ${JSON.stringify({ id: 'c', object: 'chat.completion.chunk', created: 1, model: 'm1', choices: [{ index: 0, delta, finish_reason: finish }] })}\n\n`;
const piece = (index: number, args: string, id?: string) =>
  chunk({
    tool_calls: [
      {
        index,
        ...(id && { id, type: 'function' }),
        function: { ...(id && { name: `tool_${id}` }), arguments: args },
      },
    ],
  });
const BEGIN = chunk({ role: 'assistant', content: '' });
const END = `${chunk({}, 'tool_calls')}data: [DONE]\n\n`;

const STREAMS: Readonly<Record<string, readonly string[]>> = {
  'a call behind one that lacks its bracket': [
    piece(0, '{"x":"1" ', 'a'),
    piece(1, '{"x":"2"}', 'b'),
  ],
  'interleaved calls': [
    piece(0, '{"x":', 'a'),
    piece(1, '{"x"', 'b'),
    piece(0, '"1",}'),
    piece(1, ':"2"}'),
  ],
  'both, and text': [
    piece(0, '{"x":"1"', 'a') + piece(1, '{"x":"2"', 'b'),
    chunk({ content: 'Said behind the calls.' }),
  ],
};

test.each(Object.entries(STREAMS))('%s', async (name, frames) => {
  const vendor = Bun.serve({
    port: 0,
    fetch: () =>
      new Response(BEGIN + frames.join('') + END, {
        headers: { 'content-type': 'text/event-stream' },
      }),
  });
  const gateway = await startInProcess({
    providers: {
      vendor: { protocol: 'openai-chat', base_url: `${vendor.url.origin}/v1`, models: ['m1'] },
    },
    samples: { mode: 'off' },
  });
  try {
    const answer = await fetch(`${gateway.url}/v1/chat/completions`, {
      method: 'POST',
      body: JSON.stringify({
        model: 'm1',
        stream: true,
        messages: [{ role: 'user', content: 'hi' }],
        tools: ['tool_a', 'tool_b'].map((tool) => ({
          type: 'function',
          function: { name: tool, parameters: { type: 'object' } },
        })),
      }),
    });
    const text = await answer.text();
    const lines = [...text.matchAll(/^data: (\{.*)$/gm)].map(([, line]) => `${line}\n`).join('');
    const folded = ChatCompletionStream.fromReadableStream(new Blob([lines]).stream());
    const { message } = (await folded.finalChatCompletion()).choices[0]!;
    const calls = (message.tool_calls ?? []).map((call) => {
      if (call.type !== 'function') throw new Error('a custom call where none was offered');
      return [call.id, call.function.name, JSON.parse(call.function.arguments) as unknown];
    });
    expect(calls).toEqual([
      ['a', 'tool_a', { x: '1' }],
      ['b', 'tool_b', { x: '2' }],
    ]);
    expect(message.content ?? '').toBe(name.includes('text') ? 'Said behind the calls.' : '');
  } finally {
    await gateway.stop();
    await vendor.stop(true);
  }
});
