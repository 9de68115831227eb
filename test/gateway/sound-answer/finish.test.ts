/**
 * An answer whose last word says of its calls what is not so: opencode ends its work at `stop`, and asks for ever at
 * `tool_calls`; agents on Messages end theirs at `end_turn` (https://github.com/BerriAI/litellm/issues/34692,
 * https://github.com/anthropics/claude-code/issues/16785).
 */

import { describe, expect, test } from 'bun:test';
import type { UpstreamContext } from '../../../src/codecs/codec.ts';
import { openaiChat } from '../../../src/codecs/openai-chat/index.ts';
import { Notes } from '../../../src/conversation/notes.ts';
import { NO_PROFILE } from '../../../src/conversation/profile-facts.ts';
import { SseParser } from '../../../src/lib/bytes/sse.ts';
import { scriptedGateway } from '../scripted.ts';
import { WAYS } from './ways.ts';

const ASKED = {
  model: 'm',
  messages: [{ role: 'user', content: 'hi' }],
  tools: [{ type: 'function', function: { name: 'run', parameters: { type: 'object' } } }],
};
const CALL = { index: 0, id: 'x', type: 'function', function: { name: 'run', arguments: '{}' } };
const USAGE = { prompt_tokens: 7, completion_tokens: 3, total_tokens: 10 };

interface Choice {
  readonly delta: { readonly content?: string; readonly tool_calls?: readonly (typeof CALL)[] };
  readonly finish_reason: string | null;
}
const chunk = (choices: readonly object[], more = {}) =>
  `data: ${JSON.stringify({ id: 'c', object: 'chat.completion.chunk', created: 1, model: 'm', choices, ...more })}\n\n`;
const said = (delta: object, finish_reason: string | null = null) =>
  chunk([{ index: 0, delta, finish_reason }]);
const usage = chunk([], { usage: USAGE });
const done = 'data: [DONE]\n\n';

/** Answers with a call or with words alone, that end with this reason. */
const ENDS: Readonly<Record<string, (delta: object, reason: string) => string>> = {
  'a chunk of its own': (delta, reason) => said(delta) + said({}, reason) + done,
  'in the last piece': (delta, reason) => said(delta, reason) + done,
  'with usage behind it': (delta, reason) => said(delta) + said({}, reason) + usage + done,
  'without [DONE]': (delta, reason) => said(delta) + said({}, reason) + usage,
};
const CALLED = { role: 'assistant', content: 'So.', tool_calls: [CALL] };
const SPOKEN = { role: 'assistant', content: 'All is done.' };
const WRONG = [
  ['a call that ends with stop', CALLED, 'stop', 'tool_calls'],
  ['a call that ends with a word of the vendor’s', CALLED, 'completed', 'tool_calls'],
  ['words alone that end with tool_calls', SPOKEN, 'tool_calls', 'stop'],
  ['words alone that end with tool_use', SPOKEN, 'tool_use', 'stop'],
] as const;
const RIGHT = [
  ['a call', CALLED, 'tool_calls'],
  ['a call that a limit cut off', CALLED, 'length'],
  ['words', SPOKEN, 'stop'],
  ['words with a reason of the vendor’s', SPOKEN, 'completed'],
] as const;

const pieces = (text: string, size: number) =>
  Array.from({ length: Math.ceil(text.length / size) }, (_, i) =>
    text.slice(i * size, (i + 1) * size),
  );

/** Pieces of one call, put together. */
const joined = (calls: readonly (typeof CALL)[]) =>
  calls.slice(0, 1).map((call) => ({
    ...call,
    function: { ...call.function, arguments: calls.map((one) => one.function.arguments).join('') },
  }));

function read(text: string) {
  const chunks = text
    .split('\n')
    .filter((line) => line.startsWith('data: {'))
    .map((line) => JSON.parse(line.slice(6)) as { choices: readonly Choice[]; usage?: object });
  const choices = chunks.flatMap((one) => one.choices);
  return {
    reasons: choices.flatMap(({ finish_reason }) => finish_reason ?? []),
    words: choices.map(({ delta }) => delta.content ?? '').join(''),
    calls: joined(choices.flatMap(({ delta }) => delta.tool_calls ?? [])),
    usage: chunks.flatMap((one) => one.usage ?? []),
  };
}

describe.each(WAYS)('%s', (_, FEATURES) => {
  for (const [place, stream] of Object.entries(ENDS)) {
    describe(`streamed, the reason stands ${place}`, () => {
      test.each(WRONG)('%s', async (_, delta, reason, right) => {
        const text = stream(delta, reason);
        for (const size of [1, 7, 64, 4000]) {
          const gateway = scriptedGateway('openai-chat', [{ sse: pieces(text, size) }], FEATURES);
          const asked = { ...ASKED, stream: true, stream_options: { include_usage: true } };
          const answer = await gateway.ask('openai-chat', asked);
          const got = read(answer.text);
          expect(got.reasons).toEqual([right]);
          expect(got.words).toBe(delta.content);
          expect(got.calls).toEqual(delta === CALLED ? [CALL] : []);
          expect(got.usage).toHaveLength(text.includes(usage) ? 1 : 0);
          expect(answer.text).toEndWith(done);
          const names = gateway.summaries[0]?.notes.map(({ name }) => name);
          expect(names).toContain('tool_call_rewritten');
        }
      });

      test.each(RIGHT)('%s: the bytes are the vendor’s', async (_, delta, reason) => {
        const text = stream(delta, reason);
        const gateway = scriptedGateway('openai-chat', [{ sse: pieces(text, 7) }], FEATURES);
        const answer = await gateway.ask('openai-chat', { ...ASKED, stream: true });
        expect(answer.text).toBe(text);
      });
    });
  }

  describe('whole', () => {
    const whole = (
      { tool_calls, ...message }: { role: string; tool_calls?: readonly object[] },
      reason: string,
    ) => ({
      id: 'c',
      object: 'chat.completion',
      created: 1,
      model: 'm',
      choices: [
        {
          index: 0,
          message: {
            ...message,
            ...(tool_calls && {
              tool_calls: tool_calls.map((call) => ({ ...call, index: undefined })),
            }),
          },
          finish_reason: reason,
        },
      ],
      usage: USAGE,
    });

    test.each(WRONG)('%s', async (_, delta, reason, right) => {
      const given = JSON.parse(JSON.stringify(whole(delta, reason)));
      const gateway = scriptedGateway('openai-chat', [{ json: given }], FEATURES);
      const { choices, usage } = JSON.parse((await gateway.ask('openai-chat', ASKED)).text);
      expect(choices[0].finish_reason).toBe(right);
      expect(choices[0].message).toMatchObject(given.choices[0].message);
      expect(usage).toMatchObject(USAGE);
    });

    test.each(RIGHT)('%s: the bytes are the vendor’s', async (_, delta, reason) => {
      const given = whole(delta, reason);
      const gateway = scriptedGateway('openai-chat', [{ json: given }], FEATURES);
      expect((await gateway.ask('openai-chat', ASKED)).text).toBe(JSON.stringify(given));
    });
  });

  test('a right end of words does not decode the request', () => {
    const context: UpstreamContext = {
      get sent(): never {
        throw new Error('the request was decoded');
      },
      target: { provider: 'up', model: 'm', protocol: 'openai-chat', profile: NO_PROFILE },
      notes: new Notes(),
    };
    const decoder = openaiChat.decodeStream(context);
    const bytes = Buffer.from(said(SPOKEN) + said({}, 'stop') + done);
    const events = new SseParser().push(bytes).flatMap((frame) => [...decoder.push(frame)]);
    expect(events.at(-2)).toEqual({ type: 'finish', reason: 'stop' });
    const message = { role: 'assistant', content: 'All is done.' };
    const choices = [{ index: 0, message, finish_reason: 'stop' }];
    expect(openaiChat.decodeReply({ id: 'c', model: 'm', choices }, context).finish).toBe('stop');
  });

  describe('Messages', () => {
    const MESSAGES = {
      model: 'm',
      max_tokens: 9,
      messages: ASKED.messages,
      tools: [{ name: 'run', input_schema: { type: 'object' } }],
    };
    const CALLING = { type: 'tool_use', id: 'toolu_1', name: 'run', input: {} };
    const SEARCHING = { ...CALLING, type: 'server_tool_use', id: 'srvtoolu_1', name: 'web_search' };
    const CALLED_BY_CODE = {
      ...CALLING,
      caller: { type: 'code_execution_20250825', tool_id: 's' },
    };
    const SAYING = { type: 'text', text: 'All is done.' };
    const messageOf = (block: object, stop_reason: string | null) => ({
      id: 'msg_1',
      type: 'message',
      role: 'assistant',
      model: 'm',
      content: [block],
      stop_reason,
      stop_sequence: null,
      usage: { input_tokens: 7, output_tokens: 3 },
    });
    const event = (type: string, more: object = {}) =>
      `event: ${type}\ndata: ${JSON.stringify({ type, ...more })}\n\n`;
    const stream = (block: object, stop_reason: string | null) =>
      [
        event('message_start', { message: { ...messageOf(block, null), content: [] } }),
        event('content_block_start', { index: 0, content_block: block }),
        event('content_block_stop', { index: 0 }),
        event('message_delta', {
          delta: { stop_reason, stop_sequence: null },
          usage: { output_tokens: 3 },
        }),
        event('message_stop'),
      ].join('');
    const reasonsOf = (text: string) =>
      [...text.matchAll(/"stop_reason":("\w+"|null)/g)].map(([, word]) => JSON.parse(word!));

    const WRONG_WORDS = [
      ['a call that ends with end_turn', CALLING, 'end_turn', 'tool_use'],
      ['a call that ends with Chat’s stop', CALLING, 'stop', 'tool_use'],
      ['a call that ends with Chat’s tool_calls', CALLING, 'tool_calls', 'tool_use'],
      ['words alone that end with tool_use', SAYING, 'tool_use', 'end_turn'],
      ['words alone that end with Chat’s stop', SAYING, 'stop', 'end_turn'],
      ['words that Chat’s length cut off', SAYING, 'length', 'max_tokens'],
      ['words that Chat’s filter cut off', SAYING, 'content_filter', 'refusal'],
    ] as const;
    const NO_WORDS = [
      ['a call without a word', CALLING, null, 'tool_use'],
      ['words without a word', SAYING, null, 'end_turn'],
    ] as const;
    const RIGHT_WORDS = [
      ['a call', CALLING, 'tool_use'],
      ['a call that a limit cut off', CALLING, 'max_tokens'],
      ['words', SAYING, 'end_turn'],
      ['a call that the vendor runs', SEARCHING, 'pause_turn'],
      ['a call that the vendor ran', SEARCHING, 'end_turn'],
      ['a call whose result the vendor’s code has', CALLED_BY_CODE, 'end_turn'],
      ['words with a word that is new', SAYING, 'out_of_luck'],
      ['a call with a word that is new', CALLING, 'out_of_luck'],
    ] as const;

    test.each([...WRONG_WORDS, ...NO_WORDS])('streamed: %s', async (_, block, reason, right) => {
      for (const size of [1, 7, 64, 4000]) {
        const sse = pieces(stream(block, reason), size);
        const gateway = scriptedGateway('anthropic-messages', [{ sse }], FEATURES);
        const { text } = await gateway.ask('anthropic-messages', { ...MESSAGES, stream: true });
        expect(reasonsOf(text).at(-1)).toBe(right);
        expect(text.match(/"output_tokens":3/g)?.length).toBeGreaterThanOrEqual(2);
        expect(text).toEndWith(event('message_stop'));
        const names = gateway.summaries[0]?.notes.map(({ name }) => name);
        expect(names).toContain('tool_call_rewritten');
      }
    });

    test.each(WRONG_WORDS)('whole: %s', async (_, block, reason, right) => {
      const json = messageOf(block, reason);
      const gateway = scriptedGateway('anthropic-messages', [{ json }], FEATURES);
      const { text } = await gateway.ask('anthropic-messages', MESSAGES);
      expect(JSON.parse(text)).toMatchObject({ ...json, stop_reason: right });
    });

    test.each(RIGHT_WORDS)('%s: the bytes are the vendor’s', async (_, block, reason) => {
      const sse = stream(block, reason);
      const json = messageOf(block, reason);
      const script = [{ sse: pieces(sse, 7) }, { json }];
      const gateway = scriptedGateway('anthropic-messages', script, FEATURES);
      const streamed = await gateway.ask('anthropic-messages', { ...MESSAGES, stream: true });
      expect(streamed.text).toBe(sse);
      expect((await gateway.ask('anthropic-messages', MESSAGES)).text).toBe(JSON.stringify(json));
    });
  });
});
