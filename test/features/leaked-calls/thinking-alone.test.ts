/** Thinking in tags at the start of an answer is moved, whether the request has tools or not. */

import { describe, expect, test } from 'bun:test';
import type { ProtocolName } from '../../../src/conversation/types.ts';
import { FAMILIES, leakedCalls } from '../../../src/features/leaked-calls/index.ts';
import type { Json, JsonObject } from '../../../src/lib/json/json.ts';
import { scriptedGateway } from '../../gateway/scripted.ts';
import { characters, eventsOf, type Played, type Playing, play, targetWith } from './transcript.ts';

const CLIENTS = ['anthropic-messages', 'openai-responses', 'google-gemini'] as const;

const seen = ({ blocks, text, reasoning, finish, notes }: Played) => ({
  blocks,
  text,
  reasoning,
  finish,
  notes,
});
const ask = (texts: readonly string[], playing: Playing = {}) =>
  play(eventsOf([{ text: texts }]), { client: 'anthropic-messages', ...playing });
const alone = (texts: readonly string[], playing: Playing = {}) =>
  ask(texts, { tools: [], ...playing });

/** MiniMax-M2 (`<think>` in `content` is its ordinary form), MiniMax-M3, Magistral, Hunyuan 3, K2 Horizon. */
const TAGS = [
  ['<think>', '</think>'],
  ['<mm:think>', '</mm:think>'],
  ['[THINK]', '[/THINK]'],
  ['<think:opensource>', '</think:opensource>'],
  ['<ifm|think>', '</ifm|think>'],
  ['<ifm|think_fast>', '</ifm|think_fast>'],
] as const;

describe.each(TAGS)('%s without tools', (open, close) => {
  const answers = [
    `${open}\nI should greet.\n${close}\n\nHello!`,
    `\n\n${open}I should greet.${close}Hello!\n\nHow are you?`,
    `${open}${close}Hello!`,
    `${open}Is a < b? [x] {y} <b>no</b>${close}\n\n{"title": "A greeting"}`,
    `${open}I should`,
    `${open}only thoughts${close}`,
    `${open}a${close}\n\nIn \`x\`:\n\n\`\`\`\n${open}b${close}\n\`\`\`\n`,
  ];

  test.each(answers)('%j: the same as with tools, whole and cut anywhere', (answer) => {
    const withTools = seen(ask([answer]));
    expect(seen(alone([answer]))).toEqual(withTools);
    for (let at = 1; at < answer.length; at++) {
      const pieces = [answer.slice(0, at), answer.slice(at)];
      expect(seen(alone(pieces))).toEqual(seen(ask(pieces)));
    }
    expect(seen(alone(characters(answer)))).toEqual(seen(ask(characters(answer))));
  });

  test('the thoughts are reasoning, and the answer is text', () => {
    const { text, reasoning, blocks, notes } = alone(characters(answers[0]!));
    expect({ text, reasoning, blocks }).toEqual({
      text: 'Hello!',
      reasoning: 'I should greet.',
      blocks: ['reasoning', 'text'],
    });
    expect(notes).toContain('leaked_thinking_moved');
  });

  test('a closer whose opener was in the prompt ends the thoughts of a whole answer', () => {
    const answer = `I should greet.\n${close}\n\nHello!`;
    const { text, reasoning } = alone([answer]);
    expect({ text, reasoning }).toEqual({ text: 'Hello!', reasoning: 'I should greet.' });
    expect(seen(alone([answer]))).toEqual(seen(ask([answer])));
  });

  test('tags behind words are text', () => {
    for (const answer of [
      `Models write ${open} first.`,
      `It is:\n\n${open}\nthoughts\n${close}\n\nthen the answer.`,
      `\`${open}\` opens and \`${close}\` closes.`,
    ]) {
      expect(alone(characters(answer)).same).toBe(true);
      expect(alone([answer]).text).toBe(answer);
    }
  });
});

test('calls that a model writes stay text where nothing can be called', () => {
  const call = '<tool_call>{"name": "exec_command", "arguments": {"cmd": "ls"}}</tool_call>';
  for (const pieces of [[call], characters(call), [`{"a":1}`], ['<|python_tag|>x']]) {
    expect(alone(pieces).same).toBe(true);
  }
});

test('the search is over with the first words', () => {
  const context = { target: targetWith(), client: 'anthropic-messages', hop: 1 } as const;
  const sent = { model: 'm', system: [], turns: [], tools: [], settings: { stream: true } };
  const notes = { add() {} } as never;
  const watches = (text: string) => {
    const interceptor = leakedCalls(() => {}).intercept!(sent, { ...context, notes })!;
    for (const event of eventsOf([{ text: [text] }]).slice(0, 3)) interceptor.event(event);
    return interceptor.fast!.watchedCharacters!();
  };
  expect(watches('Hello. ')).toBe('');
  expect(watches('<b')).toBe('');
  expect(watches('<thi')).toBeUndefined();
  expect(watches('\n')).toBeUndefined();
});

test('a profile decides, with and without tools', () => {
  const answer = characters('thoughts\n</think>\n\nHello!');
  const unopened = { profile: { leakFamilies: [...FAMILIES] } };
  expect(alone(answer, unopened).reasoning).toBe('thoughts');
  expect(seen(alone(answer, unopened))).toEqual(seen(ask(answer, unopened)));
  for (const leakFamilies of [[], ['glm', 'json']]) {
    expect(alone(['<think>a</think>b'], { profile: { leakFamilies } }).same).toBe(true);
  }
});

test('a Messages vendor, and a vendor of the client’s protocol, keep their text', () => {
  const text = ['<think>a</think>b'];
  expect(alone(text, { client: 'openai-chat', protocol: 'anthropic-messages' }).same).toBe(true);
  expect(alone(text, { client: 'openai-chat' }).same).toBe(true);
  expect(alone(text, { client: 'google-gemini', protocol: 'google-gemini' }).same).toBe(true);
});

describe('through the gateway', () => {
  const MESSAGES = [{ role: 'user', content: 'hi' }];
  const BODIES: Readonly<Record<'anthropic-messages' | 'openai-responses', JsonObject>> = {
    'anthropic-messages': { model: 'm', max_tokens: 99, messages: MESSAGES },
    'openai-responses': { model: 'm', input: 'hi' },
  };
  const content = '<think>\nI should greet.\n</think>\n\nHello!';
  const whole = {
    id: 'c',
    model: 'm',
    choices: [{ index: 0, message: { role: 'assistant', content }, finish_reason: 'stop' }],
  };
  const chunk = (delta: Json, finish: Json = null) =>
    `data: ${JSON.stringify({ id: 'c', model: 'm', choices: [{ index: 0, delta, finish_reason: finish }] })}\n\n`;
  const sse = [
    ...characters(content).map((one) => chunk({ content: one })),
    chunk({}, 'stop'),
    'data: [DONE]\n\n',
  ];
  const texts = (answer: string): string[] =>
    [...answer.matchAll(/"(?:thinking|text)":"((?:[^"\\]|\\.)*)"/g)].map(([, text]) => text!);

  for (const client of ['anthropic-messages', 'openai-responses'] as const) {
    for (const stream of [false, true]) {
      test(`${client}, ${stream ? 'streamed' : 'whole'}: no tag and no thought in the text`, async () => {
        const gateway = scriptedGateway(
          'openai-chat',
          [stream ? { sse } : { json: whole }],
          [leakedCalls(() => {})],
        );
        const { status, text } = await gateway.ask(client, { ...BODIES[client], stream });
        expect(status).toBe(200);
        expect(text).not.toContain('think>');
        if (!stream)
          expect(texts(text)).toEqual(expect.arrayContaining(['I should greet.', 'Hello!']));
        expect(text).toMatch(/thinking|reasoning/);
      });
    }
  }

  test('openai-chat: the vendor’s bytes', async () => {
    const gateway = scriptedGateway('openai-chat', [{ sse }], [leakedCalls(() => {})]);
    const body = { model: 'm', messages: MESSAGES, stream: true };
    expect((await gateway.ask('openai-chat', body)).text).toBe(sse.join(''));
  });
});

test.each(CLIENTS)('%s clients of a Chat vendor are looked after', (client: ProtocolName) => {
  expect(alone(['<think>a</think>b'], { client }).reasoning).toBe('a');
});
