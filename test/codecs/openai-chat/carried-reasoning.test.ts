/** Several sealed reasoning blocks in one Chat message: each seal comes back with its own text, or with none. */

import { describe, expect, test } from 'bun:test';
import fc from 'fast-check';
import { openaiChat } from '../../../src/codecs/openai-chat/index.ts';
import { openaiResponses } from '../../../src/codecs/openai-responses/index.ts';
import type { Reply, StreamEvent } from '../../../src/conversation/events.ts';
import { replyEvents } from '../../../src/conversation/reply-builder.ts';
import { openSeal, wrapSeal } from '../../../src/conversation/seal.ts';
import type { Block, ReasoningBlock, Sealed } from '../../../src/conversation/types.ts';
import type { Json, JsonObject } from '../../../src/lib/json/json.ts';
import { client, NOTHING_SENT, upstream } from './recorded.ts';
import { encodeAll } from './streams.ts';

interface Message {
  readonly content: string | null;
  readonly reasoning_content?: string;
  readonly reasoning_details?: readonly JsonObject[];
}

const reply = (blocks: readonly Block[]): Reply => ({
  id: 'msg_1',
  model: 'm',
  blocks,
  finish: 'stop',
});

const whole = (blocks: readonly Block[]): Message => {
  const { choices } = openaiChat.encodeReply(reply(blocks), client(NOTHING_SENT)) as unknown as {
    choices: readonly [{ message: Message }];
  };
  return choices[0].message;
};

/** A stream's deltas joined as clients join them: details with one index are one detail. */
function streamed(events: Iterable<StreamEvent>): Message {
  let content = '';
  let text = '';
  const details: JsonObject[] = [];
  for (const line of encodeAll([...events]).split('\n\n')) {
    if (!line.startsWith('data: {')) continue;
    const delta = JSON.parse(line.slice(6)).choices[0]?.delta ?? {};
    content += delta.content ?? '';
    text += delta.reasoning_content ?? '';
    for (const detail of delta.reasoning_details ?? []) {
      expect(details[detail.index]).toBeUndefined();
      details[detail.index] = detail;
    }
  }
  return {
    content,
    ...(text === '' ? {} : { reasoning_content: text }),
    ...(details.length === 0 ? {} : { reasoning_details: details }),
  };
}

function givenBack(message: object): readonly ReasoningBlock[] {
  const messages = [
    { role: 'user', content: 'x' },
    { role: 'assistant', content: 'y', ...message },
  ];
  const { turns } = openaiChat.decodeRequest({ model: 'm', messages } as Json);
  return turns[1]!.blocks.filter((block) => block.type === 'reasoning');
}

const signed = (value: string): Sealed => ({
  protocol: 'anthropic-messages',
  provider: 'a',
  kind: 'signature',
  value,
});
const encrypted = (value: string): Sealed => ({
  protocol: 'openai-responses',
  provider: 'r',
  kind: 'encrypted',
  value,
});
const old = (sealed: Sealed) => ({
  type: 'reasoning.encrypted',
  data: wrapSeal(sealed),
  format: 'hopgate',
  index: 0,
});

const sealed: fc.Arbitrary<Sealed> = fc.record({
  protocol: fc.constantFrom('anthropic-messages' as const, 'openai-responses' as const),
  provider: fc.constantFrom('a', 'b.c'),
  kind: fc.constantFrom('signature' as const, 'encrypted' as const),
  value: fc.string({ minLength: 1, unit: 'grapheme' }),
});
const thought: fc.Arbitrary<ReasoningBlock> = fc.oneof(
  fc.record({
    type: fc.constant('reasoning' as const),
    text: fc.string({ unit: 'grapheme', maxLength: 12 }),
    sealed,
  }),
  fc.record({
    type: fc.constant('reasoning' as const),
    text: fc.constant(''),
    sealed: fc.record({
      protocol: fc.constant('anthropic-messages' as const),
      kind: fc.constant('redacted' as const),
      value: fc.string({ minLength: 1 }),
    }),
  }),
);
const answer = fc.array(fc.oneof(thought, fc.constant<Block>({ type: 'text', text: 'words' })), {
  maxLength: 6,
});

describe('thoughts that a client returns unchanged', () => {
  test('each seal comes back with its own text, from streams and whole replies', () => {
    fc.assert(
      fc.property(answer, (blocks) => {
        const thoughts = blocks.filter((block) => block.type === 'reasoning');
        const message = whole(blocks);
        expect(givenBack(message)).toEqual(thoughts);
        const { reasoning_content, reasoning_details } = streamed(replyEvents(reply(blocks)));
        expect(reasoning_content).toEqual(message.reasoning_content);
        expect(reasoning_details).toEqual(message.reasoning_details);
      }),
    );
  });

  test('unsealed text between sealed texts stays unsealed', () => {
    const blocks: ReasoningBlock[] = [
      { type: 'reasoning', text: 'aa', sealed: signed('A') },
      { type: 'reasoning', text: 'plain' },
      { type: 'reasoning', text: 'b', sealed: signed('B') },
    ];
    expect(givenBack(whole(blocks))).toEqual(blocks);
  });

  test('a seal that replaces an earlier one of its block is the only one sent', () => {
    const { reasoning_details } = streamed([
      { type: 'start', id: 'i', model: 'm' },
      { type: 'block-start', index: 0, head: { type: 'reasoning' } },
      { type: 'delta', index: 0, text: 'a' },
      { type: 'sealed', index: 0, sealed: signed('early') },
      { type: 'delta', index: 0, text: 'b' },
      { type: 'sealed', index: 0, sealed: signed('late') },
      { type: 'block-stop', index: 0 },
    ]);
    expect(reasoning_details?.map(({ data }) => openSeal(String(data))?.value)).toEqual(['late']);
    expect(givenBack({ reasoning_content: 'ab', reasoning_details })).toEqual([
      { type: 'reasoning', text: 'ab', sealed: signed('late') },
    ]);
  });
});

describe('text that does not fit its seals', () => {
  test('an envelope without a span covers the whole text', () => {
    const message = { reasoning_content: 'hm', reasoning_details: [old(signed('A'))] };
    expect(givenBack(message)).toEqual([{ type: 'reasoning', text: 'hm', sealed: signed('A') }]);
  });

  test('two signatures without spans seal nothing', () => {
    const reasoning_details = [old(signed('A')), old(signed('B'))];
    expect(givenBack({ reasoning_content: 'aabb', reasoning_details })).toEqual([
      { type: 'reasoning', text: 'aabb' },
    ]);
    // Even without text, the loss is noted.
    expect(givenBack({ reasoning_details })).toEqual([{ type: 'reasoning', text: '' }]);
  });

  test('two encrypted payloads need no text: both go back', () => {
    const reasoning_details = [old(encrypted('E1')), old(encrypted('E2'))];
    expect(givenBack({ reasoning_content: 'short', reasoning_details })).toEqual([
      { type: 'reasoning', text: 'short', sealed: encrypted('E1') },
      { type: 'reasoning', text: '', sealed: encrypted('E2') },
    ]);
  });

  test('spans that overlap, run backwards or exceed the text are ignored', () => {
    const places = fc.array(fc.record({ from: fc.nat({ max: 9 }), to: fc.nat({ max: 9 }) }), {
      minLength: 2,
      maxLength: 4,
    });
    fc.assert(
      fc.property(places, fc.string({ maxLength: 9 }), (spans, text) => {
        const reasoning_details = spans.map((span, i) => ({
          type: 'reasoning.encrypted',
          data: wrapSeal(signed(`${i}`), span),
        }));
        const blocks = givenBack({ reasoning_content: text, reasoning_details });
        let at = 0;
        const fit = spans.every(({ from, to }) => {
          const good = at <= from && from <= to && to <= text.length;
          at = to;
          return good;
        });
        const texts = blocks.flatMap((block) => (block.sealed === undefined ? [] : [block.text]));
        expect(texts).toEqual(fit ? spans.map(({ from, to }) => text.slice(from, to)) : []);
      }),
    );
  });
});

test('envelopes in an upstream’s answer belong to that upstream and go back to it', () => {
  const details = [old(signed('A')), { ...old(signed('B')), index: 1 }];
  const message = { role: 'assistant', content: 'x', reasoning_details: details };
  const body = { id: 'c', choices: [{ index: 0, message, finish_reason: 'stop' }] };
  const [block] = openaiChat.decodeReply(body, upstream()).blocks;
  expect(block).toMatchObject({
    sealed: { protocol: 'openai-chat', value: JSON.stringify(details) },
  });
});

test('parts of a summary are paragraphs in a stream and in the whole reply', () => {
  const summary = ['**A** one.', '**B** two.', '**C**'].map((text) => ({
    type: 'summary_text',
    text,
  }));
  const item = { id: 'rs_1', type: 'reasoning', summary, encrypted_content: 'E' };
  const content = {
    id: 'msg_1',
    type: 'message',
    role: 'assistant',
    status: 'completed',
    content: [{ type: 'output_text', text: 'ok', annotations: [] }],
  };
  const response = { id: 'resp_1', object: 'response', status: 'completed', model: 'm' };
  const context = upstream();
  const decoder = openaiResponses.decodeStream(context);
  const frames: JsonObject[] = [
    { type: 'response.created', response: { ...response, status: 'in_progress', output: [] } },
    { type: 'response.output_item.added', output_index: 0, item: { ...item, summary: [] } },
    ...summary.flatMap((part, summary_index) => [
      {
        type: 'response.reasoning_summary_part.added',
        output_index: 0,
        summary_index,
        part: { ...part, text: '' },
      },
      ...[part.text.slice(0, 3), part.text.slice(3)].map((delta) => ({
        type: 'response.reasoning_summary_text.delta',
        output_index: 0,
        summary_index,
        delta,
      })),
    ]),
    { type: 'response.output_item.done', output_index: 0, item },
    { type: 'response.output_item.added', output_index: 1, item: { ...content, content: [] } },
    { type: 'response.output_item.done', output_index: 1, item: content },
    { type: 'response.completed', response: { ...response, output: [item, content] } },
  ];
  const events = frames.flatMap((data) => [
    ...decoder.push({ event: String(data.type), data: JSON.stringify(data) } as never),
  ]);
  const message = streamed([...events, ...decoder.end()]);
  expect(message.reasoning_content).toBe('**A** one.\n\n**B** two.\n\n**C**');
  const { blocks } = openaiResponses.decodeReply({ ...response, output: [item, content] }, context);
  const { reasoning_content, reasoning_details } = whole(blocks);
  expect(message).toMatchObject({ reasoning_content, reasoning_details, content: 'ok' } as object);
});
