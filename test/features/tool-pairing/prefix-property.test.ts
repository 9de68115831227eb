/** An upstream's history is not rewritten later: each request of a session extends the previous one. */

import { expect, test } from 'bun:test';
import fc from 'fast-check';
import type { Json, JsonObject } from '../../../src/lib/json/json.ts';
import type { SuiteProtocol as ProtocolName } from '../../support/suite-protocols.ts';
import { MESSAGES_DAMAGE } from './damage.ts';
import { CHAT_DAMAGE, RESPONSES_DAMAGE } from './damage-openai.ts';
import {
  chatBody,
  chatVoice,
  type Mutable,
  messagesBody,
  messagesVoice,
  Random,
  type Round,
  responsesBody,
  responsesVoice,
  session,
  type Voice,
} from './histories.ts';
import { run } from './support.ts';

const RUNS = Number(process.env.PAIRING_RUNS ?? 300);

/** The client itself moves cache marks from request to request. */
const MOVING = /cache marks|prefill/;

interface Side {
  readonly voice: (seed: number) => Voice;
  readonly write: (turns: readonly Mutable[][]) => JsonObject;
  readonly list: 'messages' | 'input';
  readonly damage: typeof MESSAGES_DAMAGE;
}

const SIDES: Readonly<Record<ProtocolName, Side>> = {
  'anthropic-messages': {
    voice: messagesVoice,
    write: messagesBody,
    list: 'messages',
    damage: MESSAGES_DAMAGE,
  },
  'openai-chat': { voice: () => chatVoice, write: chatBody, list: 'messages', damage: CHAT_DAMAGE },
  'openai-responses': {
    voice: () => responsesVoice,
    write: responsesBody,
    list: 'input',
    damage: RESPONSES_DAMAGE,
  },
};

/**
 * The requests of a session in which every model answer (with its results) is damaged on arrival and then stays the
 * same.
 */
function damagedSession(from: ProtocolName, seed: number, kinds: readonly string[]): JsonObject[] {
  const side = SIDES[from];
  const rounds: readonly Round[] = session(seed, 3);
  const random = new Random(seed ^ 0xbead);
  const voice = side.voice(seed);
  const done: Mutable[][] = [];
  const out: JsonObject[] = [];
  const write = () => {
    // No client asks a model to continue its own text.
    const last = done.flat().at(-1);
    const asks =
      last?.role === 'user' || last?.role === 'tool' || last?.type === 'function_call_output';
    if (asks) out.push(side.write(structuredClone(done)));
  };
  for (const round of rounds) {
    done.push(voice.user(round.user));
    write();
    for (const step of round.steps) {
      const last = step.calls.length === 0;
      const entries = [...voice.assistant(step), ...(last ? [] : voice.results(step))];
      const broken = structuredClone(entries);
      if (random.chance(0.6)) side.damage[random.pick(kinds)]!(broken, random);
      // New messages begin with the model's answer, since clients do not extend an answered turn.
      done.push(isModels(broken[0]) ? broken : entries);
      if (!last) write();
    }
  }
  return out;
}

const isModels = (entry: Mutable | null | undefined): boolean =>
  entry?.role === 'assistant' || entry?.type === 'reasoning' || entry?.type === 'function_call';

const kindsOf = (from: ProtocolName) =>
  Object.keys(SIDES[from].damage).filter((kind) => !MOVING.test(kind));

/** The message that a note names as rewritten after it was sent. */
const RENEWED = new Set(['sent_prefix_changed', 'thinking_disabled']);

function prefixLaw(from: ProtocolName, to: ProtocolName, bodies: readonly JsonObject[]): number {
  const key = to === 'openai-responses' ? 'input' : 'messages';
  let before: readonly string[] = [];
  let names = new Set<string>();
  let broken = 0;
  for (const body of bodies) {
    const { body: sent, notes } = run(body, from, { to });
    const message = sent[key];
    const entries =
      typeof message === 'string' ? [{ role: 'user', content: message }] : (message as Mutable[]);
    const now = entries.flatMap(blocksOf);
    const first = before.findIndex((entry, i) => now[i] !== entry);
    if (first >= 0) {
      broken++;
      // Changes for one request only (thinking off) end with the next.
      const named =
        notes.all.some(({ name }) => RENEWED.has(name)) || names.has('thinking_disabled');
      expect({ first, was: before[first], is: now[first], named }).toMatchObject({ named: true });
    }
    before = now;
    names = new Set(notes.all.map(({ name }) => name));
  }
  return broken;
}

/** Compares block by block, since neighbours of one role may be joined and read the same. */
function blocksOf(entry: Mutable): readonly string[] {
  const { content, ...rest } = entry;
  const list =
    typeof content === 'string'
      ? [{ type: 'text', text: content }]
      : ((content ?? [null]) as Json[]);
  return list.map((block) => JSON.stringify([rest, block]));
}

const PAIRS: readonly (readonly [ProtocolName, ProtocolName])[] = [
  ['anthropic-messages', 'anthropic-messages'],
  ['openai-chat', 'openai-chat'],
  ['openai-responses', 'openai-responses'],
  ['anthropic-messages', 'openai-chat'],
  ['openai-chat', 'anthropic-messages'],
  ['openai-responses', 'anthropic-messages'],
];

for (const [from, to] of PAIRS) {
  test(`${from} to ${to}: each request extends the previous one, whatever was damaged`, () => {
    const kinds = kindsOf(from);
    fc.assert(
      fc.property(
        fc.nat(),
        fc.array(fc.constantFrom(...kinds), { minLength: 1, maxLength: 4 }),
        (seed, some) => {
          prefixLaw(from, to, damagedSession(from, seed, some));
        },
      ),
      { numRuns: RUNS },
    );
  });
}

test('a late result breaks the prefix, and the note names the message', () => {
  const call = {
    role: 'assistant',
    content: [{ type: 'tool_use', id: 'toolu_1', name: 'Read', input: {} }],
  };
  const first = [{ role: 'user', content: 'T1. a' }, call, { role: 'user', content: 'T2. b' }];
  const late = [
    ...first,
    { role: 'assistant', content: 'T3. c' },
    { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'toolu_1', content: 'R1. d' }] },
  ];
  const one = run({ model: 'm', max_tokens: 9, messages: first }, 'anthropic-messages');
  const two = run({ model: 'm', max_tokens: 9, messages: late }, 'anthropic-messages');
  const [was, is] = [one, two].map(({ body }) =>
    (body.messages as Json[]).map((m) => JSON.stringify(m)),
  );
  const at = was!.findIndex((message, i) => message !== is![i]);
  expect(at).toBe(2);
  expect(two.notes.all.find(({ name }) => name === 'sent_prefix_changed')?.where).toBe(
    '/messages/2',
  );
});
