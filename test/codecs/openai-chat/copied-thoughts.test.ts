/** Thoughts that come in a field and as a copy in tags: each client gets them once, and none of them as text of the answer. */

import { describe, expect, test } from 'bun:test';
import type { ProtocolName } from '../../../src/conversation/protocol-names.ts';
import { leakedCalls } from '../../../src/features/leaked-calls/index.ts';
import type { JsonObject } from '../../../src/lib/json/json.ts';
import { scriptedGateway } from '../../gateway/scripted.ts';

const SCHEMA = { type: 'object' };
const ASKED: Readonly<Record<string, JsonObject>> = {
  'openai-chat': {
    messages: [{ role: 'user', content: 'hi' }],
    tools: [{ type: 'function', function: { name: 'run', parameters: SCHEMA } }],
  },
  'openai-responses': { input: 'hi' },
  'anthropic-messages': { max_tokens: 9, messages: [{ role: 'user', content: 'hi' }] },
};
const CLIENTS = Object.keys(ASKED) as ProtocolName[];
const WAYS = { 'read by no feature': [], 'read by one': [leakedCalls(() => {})] };

type Delta = Readonly<Record<string, string>>;
const field = (text: string): Delta => ({ reasoning_content: text });
const says = (text: string): Delta => ({ content: text });
const both = (text: string, tagged = text): Delta => ({ ...field(text), ...says(tagged) });

const THOUGHT = 'Let me think about this. '.repeat(20).trim();
const words = (text: string) => text.match(/\s*\S+/g)!;

/** The thought is "Let me think" or THOUGHT, the text "Hi there". */
const COPIES: Readonly<Record<string, readonly Delta[]>> = {
  'in the same chunks': [
    both('Let', '<think>\nLet'),
    both(' me'),
    both(' think'),
    says('\n</think>\n\n'),
    says('Hi'),
    says(' there'),
  ],
  'in the same chunks, the end with the text': [
    both('Let', '<think>Let'),
    both(' me think', ' me think</think>\n\nHi'),
    says(' there'),
  ],
  'behind the field': [
    field('Let me'),
    field(' think'),
    says('<think>'),
    says('Let me think'),
    says('</think>'),
    says('\n\n'),
    says('Hi'),
    says(' there'),
  ],
  'behind the field, in tags that come in pieces': [
    field('Let me think'),
    ...'\n<mm:think>Let me think</mm:think>Hi'.split('').map(says),
    says(' there'),
  ],
  'that is long': [
    ...words(THOUGHT).map((word, i) => both(word, i === 0 ? `<think>${word}` : word)),
    says('</think>Hi there'),
  ],
  'that is shorter': [field('Let me think'), says('<thinking>Let me</thinking>'), says('Hi there')],
  'that nothing closes': [
    field(THOUGHT),
    says(`<think>${THOUGHT}`),
    says('\n\nHi'),
    says(' there'),
  ],
  'that is empty': [field('Let me think'), says('<think>\n\n</think>\n\nHi there')],
};
const details = (text: string): Delta =>
  ({ reasoning_details: [{ type: 'reasoning.text', text }] }) as JsonObject as Delta;
/** Pieces that each begin with all before them. The thought is "Let me think", the text "Hi there". */
const REPEATED: Readonly<Record<string, (text: string) => Delta>> = {
  'in reasoning_content': field,
  'in reasoning': (text) => ({ reasoning: text }),
  'in reasoning_details': details,
};
const NO_COPIES: Readonly<Record<string, readonly Delta[]>> = {
  'a text': [field('Let me think'), says('Hi'), says(' there')],
  'a text that begins like a tag': [field('Let me think'), says('<th'), says('ead> is a tag')],
  'a tag in the middle': [field('Let me think'), says('In '), says('<think>Let me think</think>')],
  'a tag that nothing closes': [field('Let me think'), says('<think>'), says('Let me')],
  'thoughts that begin alike': [field('Ha '), field('Ha ha ha '), field('Ha '), says('Hi')],
  'no thoughts': [says('<thin'), says('ker>Hi')],
  'white space that does not end': [field('Let me'), ...Array(30).fill(says(' '.repeat(50)))],
  'white space that does not end in a tag': [
    field('Let me'),
    says('<think>'),
    ...Array(30).fill(says('\n'.repeat(50))),
  ],
};

const chunk = (delta: JsonObject, finish_reason: string | null = null) => ({
  id: 'c',
  object: 'chat.completion.chunk',
  created: 1,
  model: 'm',
  choices: [{ index: 0, delta, finish_reason }],
});
const sse = (deltas: readonly Delta[]) =>
  [
    chunk({ role: 'assistant', content: '' }),
    ...deltas.map((each) => chunk(each)),
    chunk({}, 'stop'),
  ]
    .map((each) => `data: ${JSON.stringify(each)}\n\n`)
    .concat('data: [DONE]\n\n')
    .join('');
const joined = (deltas: readonly Delta[], key: string) =>
  deltas.map((delta) => delta[key] ?? '').join('');
const whole = (deltas: readonly Delta[]) => ({
  id: 'c',
  object: 'chat.completion',
  created: 1,
  model: 'm',
  choices: [
    {
      index: 0,
      message: {
        role: 'assistant',
        content: joined(deltas, 'content'),
        reasoning_content: joined(deltas, 'reasoning_content'),
      },
      finish_reason: 'stop',
    },
  ],
});

/** What a client reads in an answer: the values of these members, joined in each kind. */
function read(text: string): { thoughts: string; said: string } {
  const values = (names: string) =>
    [...text.matchAll(new RegExp(`"(?:${names})":("(?:[^"\\\\]|\\\\.)*")`, 'g'))]
      .map(([, value]) => JSON.parse(value!) as string)
      .join('');
  const deltas = [
    ...text.matchAll(/"type":"response\.(\w+)\.delta".*?"delta":("(?:[^"\\]|\\.)*")/g),
  ];
  const of = (kind: string) =>
    deltas
      .flatMap(([, name, value]) => (name!.startsWith(kind) ? [JSON.parse(value!)] : []))
      .join('');
  return {
    thoughts: values('reasoning_content|thinking') + of('reasoning'),
    said: deltas.length > 0 ? of('output') : values('content|text'),
  };
}

for (const [way, FEATURES] of Object.entries(WAYS)) {
  describe(way, () => {
    for (const client of CLIENTS) {
      const ask = async (deltas: readonly Delta[], stream: boolean, size = 10_000) => {
        const text = sse(deltas);
        const pieces = Array.from({ length: Math.ceil(text.length / size) }, (_, i) =>
          text.slice(i * size, (i + 1) * size),
        );
        const script = stream ? { sse: pieces } : { json: whole(deltas) };
        const gateway = scriptedGateway('openai-chat', [script], FEATURES);
        const answer = await gateway.ask(client, { model: 'm', stream, ...ASKED[client] });
        return { text: answer.text, notes: gateway.summaries[0]!.notes.map(({ name }) => name) };
      };
      test.each(Object.entries(COPIES))(`${client}: a copy %s is left out`, async (_, deltas) => {
        const thoughts = joined(deltas, 'reasoning_content');
        for (const size of [1, 50, 10_000]) {
          const { text, notes } = await ask(deltas, true, size);
          expect(read(text)).toEqual({ thoughts, said: 'Hi there' });
          expect(notes).toContain('leaked_thinking_moved');
        }
        const { text, notes } = await ask(deltas, false);
        expect(text).toContain('"Hi there"');
        expect(text.split(JSON.stringify(thoughts).slice(1, -1)).length).toBe(2);
        expect(notes).toContain('leaked_thinking_moved');
      });
    }

    for (const client of CLIENTS) {
      test.each(Object.entries(REPEATED))(
        `${client}: thoughts whose pieces repeat all before them come once (%s)`,
        async (_, thought) => {
          const pieces = ['Let me t', 'Let me think', 'Let me think'].map(thought);
          const script = { sse: [sse([...pieces, says('Hi'), says(' there')])] };
          const gateway = scriptedGateway('openai-chat', [script], FEATURES);
          const answer = await gateway.ask(client, { model: 'm', stream: true, ...ASKED[client] });
          const asField = /"reasoning":|"type":"reasoning.text","text":/g;
          expect(read(answer.text.replaceAll(asField, '"thinking":'))).toEqual({
            thoughts: 'Let me think',
            said: 'Hi there',
          });
          expect(gateway.summaries[0]!.notes.map(({ name }) => name)).toContain(
            'leaked_thinking_moved',
          );
        },
      );
    }

    test.each(Object.entries(NO_COPIES))('%s is no copy: the bytes stay', async (_, deltas) => {
      // Tags of other thoughts are another feature's.
      if (way === 'read by one' && joined(deltas, 'content').startsWith('<think>')) return;
      for (const size of [1, 10_000]) {
        const text = sse(deltas);
        const pieces = Array.from({ length: Math.ceil(text.length / size) }, (_, i) =>
          text.slice(i * size, (i + 1) * size),
        );
        const gateway = scriptedGateway('openai-chat', [{ sse: pieces }], FEATURES);
        const asked = { model: 'm', stream: true, ...ASKED['openai-chat'] };
        expect((await gateway.ask('openai-chat', asked)).text).toBe(text);
      }
      const gateway = scriptedGateway('openai-chat', [{ json: whole(deltas) }], FEATURES);
      const { text } = await gateway.ask('openai-chat', { model: 'm', ...ASKED['openai-chat'] });
      expect(text).toBe(JSON.stringify(whole(deltas)));
    });
  });
}
