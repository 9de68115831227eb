/** A turn that keeps what its session's last turn held goes out as if nothing were kept: same bytes, same notes, for all pairs. */

import { describe, expect, test } from 'bun:test';
import fc from 'fast-check';
import { CODECS } from '../../src/app/codecs.ts';
import { Notes } from '../../src/conversation/notes.ts';
import { NO_PROFILE } from '../../src/conversation/profile-facts.ts';
import { PROTOCOL_NAMES, type ProtocolName } from '../../src/conversation/protocol-names.ts';
import { toolPairing } from '../../src/features/tool-pairing/index.ts';
import { SHORT_RESULTS, toolResults } from '../../src/features/tool-results/index.ts';
import { vendorFit } from '../../src/features/vendor-fit/index.ts';
import { clientRequest } from '../../src/gateway/client-request.ts';
import { Histories } from '../../src/gateway/histories/histories.ts';
import { prepare } from '../../src/gateway/prepare.ts';
import { wholeBytes } from '../../src/lib/bytes/byte-list.ts';
import type { JsonObject } from '../../src/lib/json/json.ts';
import { Abort } from '../../src/lib/loop/abort.ts';
import { memoryRoom } from '../support/entries.ts';

const MEGABYTE = 1024 * 1024;
/** Large enough to be kept. */
const INSTRUCTIONS = 'You are careful. — 你很仔细。\n'.repeat(2200);

interface Step {
  readonly id: string;
  readonly said: string;
  readonly thought: string;
  readonly result: string;
  readonly image: boolean;
}

interface Talk {
  readonly steps: readonly Step[];
  readonly tools: number;
  /** Messages from the end that hold a cache mark. */
  readonly marked: number;
  readonly first: string;
}

const mark = (yes: boolean) => (yes ? { cache_control: { type: 'ephemeral' } } : {});
const PIXEL =
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';
const schema = { type: 'object', properties: { path: { type: 'string' } }, required: ['path'] };
const names = (count: number) => Array.from({ length: count }, (_, i) => `tool_${i}`);

const BODIES: Readonly<Record<ProtocolName, (talk: Talk) => JsonObject>> = {
  'anthropic-messages': ({ steps, tools, marked, first }) => ({
    model: 'm',
    max_tokens: 100,
    system: [{ type: 'text', text: INSTRUCTIONS, ...mark(true) }],
    messages: [
      { role: 'user', content: first },
      ...steps.flatMap(({ id, said, thought, result, image }, i) => [
        {
          role: 'assistant',
          content: [
            ...(thought === '' ? [] : [{ type: 'thinking', thinking: thought, signature: 'c2ln' }]),
            ...(said === '' ? [] : [{ type: 'text', text: said }]),
            { type: 'tool_use', id, name: 'tool_0', input: { path: id, n: [1, { deep: said }] } },
          ],
        },
        {
          role: 'user',
          content: [
            {
              type: 'tool_result',
              tool_use_id: id,
              content: result,
              ...mark(i >= steps.length - marked),
            },
            ...(image
              ? [
                  {
                    type: 'image',
                    source: { type: 'base64', media_type: 'image/png', data: PIXEL },
                  },
                ]
              : []),
          ],
        },
      ]),
    ],
    tools: names(tools).map((name) => ({ name, description: name, input_schema: schema })),
  }),
  'openai-chat': ({ steps, tools, marked, first }) => ({
    model: 'm',
    messages: [
      { role: 'system', content: INSTRUCTIONS },
      { role: 'user', content: first },
      ...steps.flatMap(({ id, said, thought, result, image }, i) => [
        {
          role: 'assistant',
          content: said,
          ...(thought === '' ? {} : { reasoning_content: thought }),
          tool_calls: [
            { id, type: 'function', function: { name: 'tool_0', arguments: `{"path": "${id}"}` } },
            { id: `${id}b`, type: 'function', function: { name: 'tool_0', arguments: '{}' } },
          ],
        },
        { role: 'tool', tool_call_id: id, content: result },
        { role: 'tool', tool_call_id: `${id}b`, content: 'short' },
        ...(image
          ? [
              {
                role: 'user',
                content: [
                  { type: 'text', text: said, ...mark(i >= steps.length - marked) },
                  { type: 'image_url', image_url: { url: `data:image/png;base64,${PIXEL}` } },
                ],
              },
            ]
          : []),
      ]),
    ],
    tools: names(tools).map((name) => ({
      type: 'function',
      function: { name, parameters: schema },
    })),
  }),
  'openai-responses': ({ steps, tools, first }) => ({
    model: 'm',
    instructions: INSTRUCTIONS,
    store: false,
    input: [
      { type: 'message', role: 'user', content: [{ type: 'input_text', text: first }] },
      ...steps.flatMap(({ id, said, thought, result, image }) => [
        ...(thought === ''
          ? []
          : [
              {
                type: 'reasoning',
                id: `rs_${id}`,
                summary: [{ type: 'summary_text', text: thought }],
              },
            ]),
        { type: 'message', role: 'assistant', content: [{ type: 'output_text', text: said }] },
        { type: 'function_call', call_id: id, name: 'tool_0', arguments: `{"path":"${id}"}` },
        {
          type: 'function_call_output',
          call_id: id,
          output: image ? [{ type: 'input_text', text: result }] : result,
        },
      ]),
    ],
    tools: names(tools).map((name) => ({ type: 'function', name, parameters: schema })),
  }),
  'google-gemini': ({ steps, tools, first }) => ({
    model: 'm',
    stream: false,
    contents: [
      { role: 'user', parts: [{ text: first }] },
      ...steps.flatMap(({ id, said, thought, result, image }) => [
        {
          role: 'model',
          parts: [
            ...(thought === '' ? [] : [{ text: thought, thought: true }]),
            { text: said },
            // Clients may leave the ids out.
            { functionCall: { ...(image ? { id } : {}), name: 'tool_0', args: { path: id } } },
          ],
        },
        {
          role: 'user',
          parts: [
            {
              functionResponse: { ...(image ? { id } : {}), name: 'tool_0', response: { result } },
            },
          ],
        },
      ]),
    ],
    systemInstruction: { parts: [{ text: INSTRUCTIONS }] },
    tools: [{ functionDeclarations: names(tools).map((name) => ({ name, parameters: schema })) }],
  }),
};

/** What is sent for a body, and the notes of it. */
async function sent(
  client: ProtocolName,
  target: ProtocolName,
  text: string,
  histories?: Histories,
  owner = 'one',
) {
  const protocol = CODECS[client];
  const asker = { owner, protocol, sessionId: 'the-session' };
  const request = await clientRequest(protocol, Buffer.from(text), {
    histories,
    asker,
  });
  const notes = new Notes();
  const { body } = await prepare({
    request,
    target: { provider: 'p', model: 'other', protocol: target, profile: NO_PROFILE },
    protocol: CODECS[target],
    features: [
      toolPairing,
      toolResults({ limit: () => 8192, ledger: memoryRoom(SHORT_RESULTS) }),
      vendorFit(),
    ],
    notes,
    hop: { number: 1 },
    abort: new Abort(),
  });
  return { body: Buffer.from(wholeBytes(body)).toString(), notes: notes.all, request };
}

const words = fc.oneof(
  fc.string({ maxLength: 30 }),
  fc.constantFrom('', ' ', 'ü', 'plain words', '\n'),
);
const step: fc.Arbitrary<Step> = fc.record({
  id: fc.oneof(fc.constantFrom('same', 'functions.f:0', 'toolu_1'), fc.uuid()),
  said: words,
  thought: fc.constantFrom('', '', 'I think so.'),
  result: fc.oneof(
    words,
    fc.nat(3000).map((n) => 'result '.repeat(n)),
  ),
  image: fc.boolean(),
});

/** How the next turn differs from the last one. */
type Change = (talk: Talk) => Talk;
const change: fc.Arbitrary<Change> = fc.oneof(
  {
    weight: 4,
    arbitrary: step.map(
      (next): Change =>
        (talk) => ({ ...talk, steps: [...talk.steps, next] }),
    ),
  },
  fc.tuple(fc.nat(), step).map(
    ([at, other]): Change =>
      (talk) => ({ ...talk, steps: talk.steps.with(at % talk.steps.length, other) }),
  ),
  fc.nat().map(
    (at): Change =>
      (talk) => ({ ...talk, steps: talk.steps.slice(0, 1 + (at % talk.steps.length)) }),
  ),
  fc.nat().map(
    (at): Change =>
      (talk) => ({ ...talk, steps: talk.steps.slice(at % talk.steps.length) }),
  ),
  fc.constant<Change>((talk) => ({
    ...talk,
    first: `${talk.first}!`,
    steps: talk.steps.slice(-1),
  })),
  fc.nat(4).map(
    (tools): Change =>
      (talk) => ({ ...talk, tools }),
  ),
  fc.nat(3).map(
    (marked): Change =>
      (talk) => ({ ...talk, marked }),
  ),
);

const talk: fc.Arbitrary<Talk> = fc.record({
  steps: fc.array(step, { minLength: 1, maxLength: 14 }),
  tools: fc.nat(3),
  marked: fc.nat(3),
  first: fc.constantFrom('find out why', 'other words'),
});

describe.each([...PROTOCOL_NAMES])('%s', (client) => {
  test('each turn of random sessions goes out as from a cold gateway, to any protocol', async () => {
    const targets = fc.array(fc.constantFrom(...PROTOCOL_NAMES), { minLength: 1, maxLength: 3 });
    const limits = fc.constantFrom(64 * MEGABYTE, 64 * MEGABYTE, MEGABYTE);
    await fc.assert(
      fc.asyncProperty(
        talk,
        fc.array(change, { minLength: 1, maxLength: 6 }),
        targets,
        limits,
        async (start, changes, chosen, limit) => {
          const histories = new Histories(() => limit);
          const talks: Talk[] = [start, start];
          for (const next of changes) talks.push(next(talks.at(-1)!));
          for (const [i, one] of talks.entries()) {
            const text = JSON.stringify(BODIES[client](one), null, i % 5 === 4 ? 1 : undefined);
            const target = chosen[i % chosen.length]!;
            const warm = await sent(client, target, text, histories);
            const cold = await sent(client, target, text);
            expect(warm.body).toBe(cold.body);
            expect(warm.notes).toEqual(cold.notes);
            expect(warm.request.conversation).toEqual(cold.request.conversation);
          }
        },
      ),
      { numRuns: 40 },
    );
  }, 120_000);
});

const chat = (turns: number, first = 'hello') =>
  JSON.stringify(
    BODIES['openai-chat']({
      steps: Array.from({ length: turns }, (_, i) => ({
        id: `call_${i}`,
        said: `step ${i}`,
        thought: '',
        result: `result ${i}`,
        image: false,
      })),
      tools: 2,
      marked: 0,
      first,
    }),
  );

const askerOf = (owner: string, sessionId: string) => ({
  owner,
  sessionId,
  protocol: CODECS['openai-chat'],
});

describe('what is kept', () => {
  const messagesOf = async (histories: Histories, owner: string, session: string, text: string) => {
    const history = await histories.read(askerOf(owner, session), Buffer.from(text));
    return history?.pieces.value.messages as readonly object[];
  };

  test('serves the next turn of the same session', async () => {
    const histories = new Histories(() => 64 * MEGABYTE);
    const one = await messagesOf(histories, 'a', 's', chat(4));
    const two = await messagesOf(histories, 'a', 's', chat(5));
    expect(one.every((message, i) => message === two[i])).toBe(true);
  });

  test('of one owner never serves another', async () => {
    const histories = new Histories(() => 64 * MEGABYTE);
    const one = new Set(await messagesOf(histories, 'a', 's', chat(4)));
    const two = await messagesOf(histories, 'b', 's', chat(4));
    expect(two.some((message) => one.has(message))).toBe(false);
    // Names that run into each other are told apart.
    await messagesOf(histories, 'a","openai-chat","id x', '', chat(4));
    expect(histories.size).toBe(3);
  });

  test('of a client without session ids is found by its first messages', async () => {
    const histories = new Histories(() => 64 * MEGABYTE);
    const one = await messagesOf(histories, 'a', '', chat(4));
    await messagesOf(histories, 'a', '', chat(4, 'other'));
    const two = await messagesOf(histories, 'a', '', chat(5));
    expect(histories.size).toBe(2);
    expect(one.every((message, i) => message === two[i])).toBe(true);
  });

  test('of conversations beside each other in one session serves both', async () => {
    const histories = new Histories(() => 64 * MEGABYTE);
    const one = await messagesOf(histories, 'a', 's', chat(4));
    const other = await messagesOf(
      histories,
      'a',
      's',
      chat(6, 'other').replace('careful', 'quick'),
    );
    const two = await messagesOf(histories, 'a', 's', chat(5));
    const third = await messagesOf(
      histories,
      'a',
      's',
      chat(7, 'other').replace('careful', 'quick'),
    );
    expect(one.every((message, i) => message === two[i])).toBe(true);
    expect(other.every((message, i) => message === third[i])).toBe(true);
  });

  test('stays within its limit, the oldest go first', async () => {
    const limit = 4 * MEGABYTE;
    const histories = new Histories(() => limit);
    for (let i = 0; i < 40; i++) {
      const text = chat(3, `session ${i}`);
      const first = await messagesOf(histories, 'a', `s${i}`, text);
      expect(histories.held).toBeLessThanOrEqual(limit);
      // One that is used stays.
      const kept = await messagesOf(histories, 'a', 's0', chat(3, 'session 0'));
      expect(await messagesOf(histories, 'a', 's0', chat(3, 'session 0'))).toEqual(kept);
      expect(await messagesOf(histories, 'a', `s${i}`, text)).toEqual(first);
    }
    const held = histories.size;
    expect(held).toBeLessThan(40);
    const before = await messagesOf(histories, 'a', 's0', chat(3, 'session 0'));
    const after = await messagesOf(histories, 'a', 's0', chat(3, 'session 0'));
    expect(after).toBe(before);
  });

  test('is nothing without a limit, nor for bodies that are small or no objects', async () => {
    const none = new Histories(() => 0);
    expect(await none.read(askerOf('a', 's'), Buffer.from(chat(4)))).toBeUndefined();
    const some = new Histories(() => 64 * MEGABYTE);
    expect(await some.read(askerOf('a', 's'), Buffer.from('{"model":"m"}'))).toBeUndefined();
    expect(await some.read(askerOf('a', 's'), Buffer.from('x'.repeat(100_000)))).toBeUndefined();
    expect(some.held).toBe(0);
  });
});
