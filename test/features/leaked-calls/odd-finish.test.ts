/** A Chat answer whose `finish_reason` says of calls what is not so: opencode ends its work at `stop`, and asks for ever at `tool_calls`. */

import { describe, expect, test } from 'bun:test';
import type { UpstreamContext } from '../../../src/codecs/codec.ts';
import { openaiChat } from '../../../src/codecs/openai-chat/index.ts';
import { Notes } from '../../../src/conversation/notes.ts';
import { NO_PROFILE } from '../../../src/conversation/target.ts';
import { leakedCalls } from '../../../src/features/leaked-calls/index.ts';
import { SseParser } from '../../../src/lib/bytes/sse.ts';
import { scriptedGateway } from '../../gateway/scripted.ts';

const FEATURES = [leakedCalls(() => {})];
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
