/** Chunks of Chat in forms that its official helpers and others throw at: each client still gets the whole answer. */

import { describe, expect, test } from 'bun:test';
import OpenAI from 'openai';
import { scriptedGateway } from '../scripted.ts';
import { WAYS } from './ways.ts';

const USAGE = { prompt_tokens: 7, completion_tokens: 3, total_tokens: 10 };
const CALL = { id: 'call_1', type: 'function', function: { name: 'run', arguments: '{}' } };
const TOOLS = [{ type: 'function' as const, function: { name: 'run', parameters: {} } }];
const MESSAGES = [{ role: 'user' as const, content: 'hi' }];
const chunk = (choices?: readonly object[] | null, more: object = {}) => ({
  id: 'c',
  object: 'chat.completion.chunk',
  created: 1,
  model: 'm',
  ...(choices !== undefined && { choices }),
  ...more,
});
const says = (delta: object, finish_reason: string | null = null) =>
  chunk([{ index: 0, delta, finish_reason }]);
const BEGUN = says({ role: 'assistant', content: '' });
const WORDS = [says({ content: 'Hel' }), says({ content: 'lo' })];
const END = says({}, 'stop');
const COUNTED = chunk([], { usage: USAGE });

const ODD: Readonly<Record<string, readonly object[]>> = {
  'usage without choices': [BEGUN, ...WORDS, END, chunk(undefined, { usage: USAGE })],
  'usage with choices of null': [BEGUN, ...WORDS, END, chunk(null, { usage: USAGE })],
  'a first chunk without choices': [chunk(), BEGUN, ...WORDS, END, COUNTED],
  'an end without a delta': [
    BEGUN,
    ...WORDS,
    chunk([{ index: 0, finish_reason: 'stop' }]),
    COUNTED,
  ],
  'an end with a delta of null': [
    BEGUN,
    ...WORDS,
    chunk([{ index: 0, delta: null, finish_reason: 'stop' }]),
    COUNTED,
  ],
  'a message in place of deltas': [
    chunk([{ index: 0, message: { role: 'assistant', content: 'Hello' }, finish_reason: 'stop' }]),
    COUNTED,
  ],
  'choices without an index': [
    ...WORDS.map(({ choices }) => chunk(choices!.map((one) => ({ ...one, index: undefined })))),
    END,
    COUNTED,
  ],
  'an empty role': [
    says({ role: '', content: 'Hel' }),
    says({ role: '', content: 'lo' }),
    END,
    COUNTED,
  ],
  'an empty role later': [BEGUN, says({ role: '', content: 'Hel' }), WORDS[1]!, END, COUNTED],
  'a role in capitals': [says({ role: 'Assistant', content: 'Hello' }), END, COUNTED],
  'no role': [...WORDS, END, COUNTED],
};
const ODD_CALLS: Readonly<Record<string, readonly object[]>> = {
  'no role': [says({ tool_calls: [{ index: 0, ...CALL }] }), says({}, 'tool_calls'), COUNTED],
  'an empty role': [
    says({ role: '', tool_calls: [{ index: 0, ...CALL }] }),
    says({ role: '' }, 'tool_calls'),
    COUNTED,
  ],
  'an end without a delta': [
    BEGUN,
    says({ tool_calls: [{ index: 0, ...CALL }] }),
    chunk([{ index: 0, finish_reason: 'tool_calls' }]),
    COUNTED,
  ],
};
/** Mistral's content in parts (https://docs.mistral.ai/capabilities/reasoning). */
const IN_PARTS = [
  says({
    role: 'assistant',
    content: [{ type: 'thinking', thinking: [{ type: 'text', text: 'hm' }] }],
  }),
  says({ content: [{ type: 'text', text: 'Hel' }] }),
  WORDS[1]!,
  END,
  COUNTED,
];
const RIGHT: Readonly<Record<string, readonly object[]>> = {
  'parts of a kind that no text has': [
    BEGUN,
    ...WORDS,
    says({ content: [{ type: 'reference', reference_ids: [1] }] }),
    END,
  ],
  'what OpenAI sends': [BEGUN, ...WORDS, END, COUNTED],
  'what Azure sends': [chunk([], { id: '', prompt_filter_results: [] }), BEGUN, ...WORDS, END],
  'a role in each chunk': [
    says({ role: 'assistant', content: 'Hel' }),
    says({ role: 'assistant', content: 'lo' }),
    END,
  ],
  'a role of null behind the first': [BEGUN, says({ role: null, content: 'Hello' }), END],
};

const sse = (chunks: readonly object[]) =>
  `${chunks.map((one) => `data: ${JSON.stringify(one)}\n\n`).join('')}data: [DONE]\n\n`;
const pieces = (text: string, size: number) =>
  Array.from({ length: Math.ceil(text.length / size) }, (_, i) =>
    text.slice(i * size, (i + 1) * size),
  );

describe.each(WAYS)('%s', (_, FEATURES) => {
  async function through(chunks: readonly object[], size: number) {
    const script = [{ sse: pieces(sse(chunks), size) }];
    const gateway = scriptedGateway('openai-chat', script, FEATURES);
    const options = { stream: true, stream_options: { include_usage: true } };
    const asked = { model: 'm', messages: MESSAGES, tools: TOOLS, ...options };
    const { text } = await gateway.ask('openai-chat', asked);
    return { text, notes: gateway.summaries[0]?.notes.map(({ name }) => name) };
  }

  /** The answer as the official helper puts it together; it throws at what is missing. */
  async function read(text: string) {
    for (const line of text.split('\n').filter((one) => one.startsWith('data: {'))) {
      const { choices } = JSON.parse(line.slice(6));
      expect(choices).toBeArray();
      for (const { delta } of choices) expect([undefined, null, 'assistant']).toContain(delta.role);
    }
    const answer = new Response(text, { headers: { 'content-type': 'text/event-stream' } });
    const client = new OpenAI({ apiKey: 'x', fetch: () => Promise.resolve(answer) });
    const asked = { model: 'm', messages: MESSAGES, tools: TOOLS };
    return client.chat.completions.stream(asked).finalChatCompletion();
  }

  describe.each([1, 50, 10_000])('in pieces of %i', (size) => {
    test.each(Object.entries(ODD))('%s', async (_, chunks) => {
      const { text, notes } = await through(chunks, size);
      const { choices, usage } = await read(text);
      expect(choices).toMatchObject([
        { message: { role: 'assistant', content: 'Hello' }, finish_reason: 'stop' },
      ]);
      expect(usage).toMatchObject(USAGE);
      expect(notes).toContain('stream_mended');
    });

    test.each([
      ['a vendor that is known for them, without tools', 'mistral', {}],
      ['any vendor, with tools', 'none', { tools: TOOLS }],
    ])('content in parts is a text: %s', async (_, profile, more) => {
      const script = [{ sse: pieces(sse(IN_PARTS), size) }];
      const gateway = scriptedGateway('openai-chat', script, FEATURES, '', { profile });
      const asked = { model: 'm', messages: MESSAGES, stream: true, ...more };
      const { text } = await gateway.ask('openai-chat', asked);
      const [choice] = (await read(text)).choices;
      expect(choice).toMatchObject({ message: { content: 'Hello' }, finish_reason: 'stop' });
      expect(text).toContain('"reasoning_content":"hm"');
      expect(gateway.summaries[0]?.notes.map(({ name }) => name)).toContain('stream_mended');
    });

    test.each(Object.entries(ODD_CALLS))('a call with %s', async (_, chunks) => {
      const { text, notes } = await through(chunks, size);
      const { choices } = await read(text);
      expect(choices).toMatchObject([
        { message: { tool_calls: [CALL] }, finish_reason: 'tool_calls' },
      ]);
      expect(notes).toContain('stream_mended');
    });

    test.each(Object.entries(RIGHT))('%s: the bytes are the vendor’s', async (_, chunks) => {
      const { text, notes } = await through(chunks, size);
      expect(text).toBe(sse(chunks));
      expect(notes).toEqual([]);
    });
  });
});
