/** Reasoning that Chat clients drop between two requests, and what each vendor gets back. */

import { describe, expect, test } from 'bun:test';
import { ANSWERS } from '../../../src/features/reasoning-memory/index.ts';
import type { JsonObject } from '../../../src/lib/json/json.ts';
import { memoryRoom } from '../../support/entries.ts';
import {
  type ChatMessage,
  CLAUDE,
  call,
  chatReply,
  chatStream,
  DEEPSEEK,
  GEMINI,
  messagesReply,
  OPENAI,
  Session,
  seal,
} from './scripts.ts';

const messages = (body: JsonObject) => body.messages as unknown as ChatMessage[];

/** Random ids, as vendors make them. */
const A = 'call_00_4f9a1c7be2d84b55a1';
const B = 'call_00_9d3e0b61c87f42aa9c';

const streamed = (thought: string, id: string) =>
  chatStream(
    [
      { reasoning_content: thought.slice(0, 4) },
      { reasoning_content: thought.slice(4) },
      { content: 'Looking.' },
      { tool_calls: [{ index: 0, ...call(id) }] },
    ],
    'tool_calls',
  );

describe('reasoning_content', () => {
  test('dropped reasoning comes back in a tool loop, streamed or not', async () => {
    const session = new Session();
    await session.ask(DEEPSEEK, streamed('I read a first', A));
    const second = await session.ask(
      DEEPSEEK,
      chatReply({ reasoning_content: 'and then b', tool_calls: [call(B)] }),
    );
    expect(messages(second)[1]).toMatchObject({
      reasoning_content: 'I read a first',
      content: 'Looking.',
    });
    const third = await session.ask(DEEPSEEK, chatReply({ content: 'done' }));
    expect(messages(third)[1]?.reasoning_content).toBe('I read a first');
    expect(messages(third)[3]?.reasoning_content).toBe('and then b');
    expect(messages(third)[2]).toEqual({ role: 'tool', tool_call_id: A, content: `found ${A}` });
  });

  test('reasoning that the client returned stays unchanged', async () => {
    const session = new Session();
    await session.ask(DEEPSEEK, streamed('I read a first', A));
    session.messages[1] = { ...session.messages[1]!, reasoning_content: 'the client’s own' };
    const second = await session.ask(DEEPSEEK, chatReply({ content: 'done' }));
    expect(messages(second)).toEqual(session.messages.slice(0, 3));
  });

  test('a plain answer gets its reasoning if the vendor wants it on every answer', async () => {
    const session = new Session();
    const thought = { reasoning_content: 'easy', content: 'Hello.' };
    await session.ask(DEEPSEEK, chatReply(thought));
    const again = await session.say('go on').ask(DEEPSEEK, chatReply({ content: 'x' }));
    expect(messages(again)[1]?.reasoning_content).toBe('easy');
    const other = new Session();
    const vendor = { ...DEEPSEEK, model: 'deepseek-reasoner' };
    await other.ask(vendor, chatReply(thought));
    const next = await other.say('go on').ask(vendor, chatReply({ content: 'x' }));
    expect(messages(next)[1]?.reasoning_content).toBeUndefined();
  });

  test('another owner’s answer with the same id is not found', async () => {
    const ledger = memoryRoom(ANSWERS);
    const mine = new Session(ledger, { owner: 'a' });
    await mine.ask(DEEPSEEK, streamed('my secret', A));
    const other = new Session(ledger, { owner: 'b' });
    other.messages.push(...mine.messages.slice(1));
    const sent = await other.ask(DEEPSEEK, chatReply({ content: 'done' }));
    expect(JSON.stringify(sent)).not.toContain('my secret');
    expect(messages(sent)[1]?.reasoning_content).toBe(' ');
  });

  test('sequential ids are matched together with the text before them', async () => {
    const ledger = memoryRoom(ANSWERS);
    const first = new Session(ledger);
    await first.ask(DEEPSEEK, streamed('about a', 'call_0'));
    const second = new Session(ledger);
    second.messages[0] = { role: 'user', content: 'something else' };
    await second.ask(DEEPSEEK, streamed('about b', 'call_0'));
    const done = chatReply({ content: 'done' });
    expect(messages(await first.ask(DEEPSEEK, done))[1]?.reasoning_content).toBe('about a');
    expect(messages(await second.ask(DEEPSEEK, done))[1]?.reasoning_content).toBe('about b');
  });

  test('a call recovered from text is found by the id that the client saw', async () => {
    const session = new Session();
    const leak = '<tool_call>{"name":"read","arguments":{"path":"a"}}</tool_call>';
    await session.ask(
      { ...DEEPSEEK, profile: 'none' },
      chatStream([{ reasoning_content: 'hm, a' }, { content: leak }], 'stop'),
    );
    expect(session.messages[1]?.tool_calls).toHaveLength(1);
    const sent = await session.ask(DEEPSEEK, chatReply({ content: 'done' }));
    expect(messages(sent)[1]?.reasoning_content).toBe('hm, a');
  });
});

describe('thought signatures of calls', () => {
  const signature = { google: { thought_signature: 'Eq8BCgIk' } };

  for (const kind of ['streamed', 'whole']) {
    test(`signatures come back on their own call (${kind})`, async () => {
      const session = new Session();
      const calls = [
        call('function-call-1', { extra_content: signature }),
        call('function-call-2'),
      ];
      await session.ask(
        GEMINI,
        kind === 'whole'
          ? chatReply({ tool_calls: calls })
          : chatStream(
              [{ tool_calls: calls.map((one, index) => ({ index, ...one })) }],
              'tool_calls',
            ),
      );
      const sent = await session.ask(GEMINI, chatReply({ content: 'done' }));
      expect(messages(sent)[1]?.tool_calls?.map((one) => one.extra_content)).toEqual([
        signature,
        undefined,
      ]);
    });
  }

  test('signatures go only to their maker and owner', async () => {
    const session = new Session();
    await session.ask(GEMINI, chatReply({ tool_calls: [call(A, { extra_content: signature })] }));
    const sent = await session.ask(DEEPSEEK, chatReply({ content: 'done' }));
    expect(JSON.stringify(sent)).not.toContain('Eq8BCgIk');
  });
});

const thinkingUse = (n: number, id: string) =>
  messagesReply([
    { type: 'thinking', thinking: `thought ${n}`, signature: seal(n) },
    { type: 'text', text: 'Looking.' },
    { type: 'tool_use', id, name: 'read', input: { path: 'a' } },
  ]);

describe('thinking with a signature, behind a Chat client', () => {
  const effort = { reasoning_effort: 'low', max_completion_tokens: 8000 };

  test('thinking goes back to its maker unchanged, and stays on in the loop', async () => {
    const session = new Session(undefined, { more: effort });
    await session.ask(CLAUDE, thinkingUse(1, 'toolu_01XyZabcdefghijkl29'));
    const sent = await session.ask(CLAUDE, messagesReply([{ type: 'text', text: 'done' }]));
    expect(messages(sent)[1]?.content).toEqual([
      { type: 'thinking', thinking: 'thought 1', signature: seal(1) },
      { type: 'text', text: 'Looking.' },
      { type: 'tool_use', id: 'toolu_01XyZabcdefghijkl29', name: 'read', input: { path: 'a' } },
    ]);
    expect(sent.thinking).toMatchObject({ type: 'enabled' });
  });

  test('stored thinking replaces text that lost its signature', async () => {
    const session = new Session(undefined, { more: effort });
    await session.ask(CLAUDE, thinkingUse(1, 'toolu_01XyZabcdefghijkl29'));
    session.messages[1] = { ...session.messages[1]!, reasoning_content: 'thought 1' };
    const sent = await session.ask(CLAUDE, messagesReply([{ type: 'text', text: 'done' }]));
    expect((messages(sent)[1]!.content as JsonObject[])[0]).toEqual({
      type: 'thinking',
      thinking: 'thought 1',
      signature: seal(1),
    });
  });

  test("A → B → A in one tool loop: each vendor gets its own reasoning and none of the other's", async () => {
    const session = new Session(undefined, { more: effort });
    await session.ask(CLAUDE, thinkingUse(1, 'toolu_01XyZabcdefghijkl29'));
    const atB = await session.ask(DEEPSEEK, streamed('now b thinks', B));
    expect(JSON.stringify(atB)).not.toContain('thought 1');
    expect(JSON.stringify(atB)).not.toContain(seal(1));
    expect(messages(atB)[1]?.reasoning_content).toBe(' ');
    const atA = await session.ask(CLAUDE, thinkingUse(2, 'toolu_02XyZabcdefghijkl30'));
    const text = JSON.stringify(atA);
    expect(text).toContain(seal(1));
    expect(text).not.toContain('now b thinks');
    const backAtB = await session.ask(DEEPSEEK, chatReply({ content: 'done' }));
    expect(messages(backAtB)[3]?.reasoning_content).toBe('now b thinks');
    expect(JSON.stringify(backAtB)).not.toContain('thought');
  });

  test('a model of another maker at the same aggregator gets no foreign reasoning', async () => {
    const session = new Session();
    const or = { name: 'or', protocol: 'openai-chat', profile: 'openrouter' } as const;
    const details = [{ type: 'reasoning.text', text: 'hm', signature: 'sig', index: 0 }];
    await session.ask(
      { ...or, model: 'anthropic/claude-sonnet-4.5' },
      chatReply({ reasoning: 'hm', reasoning_details: details, tool_calls: [call(A)] }),
    );
    const done = chatReply({ content: 'done' });
    const elsewhere = await session.ask({ ...or, model: 'google/gemini-3-pro' }, done);
    expect(JSON.stringify(elsewhere)).not.toContain('sig');
    const home = await session.ask({ ...or, model: 'anthropic/claude-opus-4.5' }, done);
    expect(messages(home)[1]).toMatchObject({ reasoning: 'hm', reasoning_details: details });
  });
});

describe('encrypted reasoning of Responses, behind a Chat client', () => {
  test('encrypted reasoning precedes the call that it led to', async () => {
    const session = new Session(undefined, { more: { reasoning_effort: 'low' } });
    const output = [
      {
        type: 'reasoning',
        id: 'rs_1',
        summary: [{ type: 'summary_text', text: 'short' }],
        encrypted_content: 'gAAAAAB',
      },
      {
        type: 'function_call',
        id: 'fc_1',
        call_id: A,
        name: 'read',
        arguments: '{}',
        status: 'completed',
      },
    ];
    const reply = (items: JsonObject[]) => ({
      json: {
        id: 'resp_1',
        object: 'response',
        created_at: 1,
        status: 'completed',
        model: 'm',
        output: items,
        usage: { input_tokens: 1, output_tokens: 1, total_tokens: 2 },
      },
    });
    await session.ask(OPENAI, reply(output));
    const text = { type: 'output_text', text: 'done', annotations: [] };
    const sent = await session.ask(
      OPENAI,
      reply([
        { type: 'message', id: 'msg_1', role: 'assistant', status: 'completed', content: [text] },
      ]),
    );
    const input = sent.input as JsonObject[];
    const at = input.findIndex((item) => item.type === 'reasoning');
    expect(input[at]).toMatchObject({
      summary: [{ type: 'summary_text', text: 'short' }],
      encrypted_content: 'gAAAAAB',
    });
    expect(input[at + 1]).toMatchObject({ type: 'function_call', call_id: A });
  });
});
