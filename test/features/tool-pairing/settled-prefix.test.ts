/** A history whose beginning was let through before is repaired as if it had never been seen. */

import { describe, expect, test } from 'bun:test';
import fc from 'fast-check';
import { Notes } from '../../../src/conversation/notes.ts';
import { NO_PROFILE, type Profile } from '../../../src/conversation/profile-facts.ts';
import { KnownNodes } from '../../../src/conversation/session/known-nodes.ts';
import type { Target } from '../../../src/conversation/target.ts';
import type { Conversation } from '../../../src/conversation/types.ts';
import { repairBody, toolPairing } from '../../../src/features/tool-pairing/index.ts';
import { unsettledTurns } from '../../../src/features/tool-pairing/settled-prefix.ts';
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
  responsesBody,
  responsesVoice,
  session,
  type Voice,
} from './histories.ts';
import { PROTOCOLS } from './support.ts';

interface Side {
  readonly voice: (seed: number) => Voice;
  readonly write: (turns: readonly Mutable[][]) => JsonObject;
  readonly damage: typeof MESSAGES_DAMAGE;
}

const SIDES: Readonly<Record<ProtocolName, Side>> = {
  'anthropic-messages': {
    voice: messagesVoice,
    write: messagesBody,
    damage: MESSAGES_DAMAGE,
  },
  'openai-chat': { voice: () => chatVoice, write: chatBody, damage: CHAT_DAMAGE },
  'openai-responses': {
    voice: () => responsesVoice,
    write: responsesBody,
    damage: RESPONSES_DAMAGE,
  },
};

const targetOf = (protocol: ProtocolName, profile: Profile): Target => ({
  provider: 'upstream',
  model: 'm',
  protocol,
  profile,
});

/** What is sent, and the notes of it. */
function repaired(conversation: Conversation, target: Target, client: ProtocolName) {
  const notes = new Notes();
  const out = toolPairing.request!(conversation, { target, client, notes, hop: 1 });
  const body = PROTOCOLS[target.protocol as ProtocolName].encodeRequest(out, target, notes);
  return { same: out === conversation, body: JSON.stringify(body), notes: notes.all };
}

/** The entries of each request of a session; entries that stay are the same objects. */
function requestsOf(from: ProtocolName, seed: number, kinds: readonly string[]) {
  const side = SIDES[from];
  const random = new Random(seed ^ 0x5e77);
  const voice = side.voice(seed);
  const out: JsonObject[] = [];
  let done: Mutable[][] = [];
  const harm = (entries: readonly Mutable[]) => {
    const broken = structuredClone([...entries]);
    side.damage[random.pick(kinds)]!(broken, random);
    return broken;
  };
  for (const round of session(seed, 12)) {
    done.push(voice.user(round.user));
    for (const step of round.steps) {
      done.push([
        ...voice.assistant(step),
        ...(step.calls.length === 0 ? [] : voice.results(step)),
      ]);
      if (random.chance(0.06)) done.push(harm(done.pop()!));
      out.push(side.write(done));
    }
    // An edit in the middle, a compaction, a branch, an id that comes again.
    if (random.chance(0.12)) done = done.with(random.below(done.length), harm(done.at(-1)!));
    if (random.chance(0.05)) done = done.slice(random.below(done.length));
    if (random.chance(0.05)) done = done.slice(0, 1 + random.below(done.length));
    if (random.chance(0.05)) done.push(structuredClone(random.pick(done)));
  }
  return out;
}

const PAIRS: readonly (readonly [ProtocolName, ProtocolName])[] = (
  Object.keys(SIDES) as ProtocolName[]
).flatMap((from) => (Object.keys(SIDES) as ProtocolName[]).map((to) => [from, to] as const));

/** A decoder that gives the same turn for the same message object, as a kept session does. */
const decoder = (from: ProtocolName) => {
  const known = new KnownNodes();
  return (body: Json) => PROTOCOLS[from].decodeRequest(repairBody(body, from, new Notes()), known);
};

describe.each(PAIRS.map(([from, to]) => ({ from, to })))('$from to $to', ({ from, to }) => {
  test('random sessions with damage, edits and branches: the same bytes and notes as at first sight', () => {
    const kinds = Object.keys(SIDES[from].damage);
    const profiles: readonly Profile[] = [NO_PROFILE, { ...NO_PROFILE, anySignature: true }];
    fc.assert(
      fc.property(
        fc.nat(),
        fc.array(fc.constantFrom(...kinds), { minLength: 1, maxLength: 3 }),
        (seed, some) => {
          const decode = decoder(from);
          const random = new Random(seed);
          for (const body of requestsOf(from, seed, some)) {
            const target = targetOf(to, random.chance(0.9) ? profiles[0]! : profiles[1]!);
            const seen = repaired(decode(body), target, from);
            const fresh = repaired(decoder(from)(structuredClone(body)), target, from);
            expect(seen).toEqual(fresh);
          }
        },
      ),
      { numRuns: Number(process.env.PAIRING_RUNS ?? 30) },
    );
  }, 120_000);

  test('of a sound session only the newest turns are looked at', () => {
    const decode = decoder(from);
    const target = targetOf(to, NO_PROFILE);
    const { voice, write } = SIDES[from];
    const done: Mutable[][] = [];
    let longest = 0;
    let turns = 0;
    for (const round of session(3, 20)) {
      done.push(voice(3).user(round.user));
      for (const step of round.steps) {
        done.push(voice(3).assistant(step));
        if (step.calls.length === 0) continue;
        done.push(voice(3).results(step));
        const conversation = decode(write(done));
        turns = conversation.turns.length;
        const left = unsettledTurns(conversation, target, undefined);
        if (turns > 40) longest = Math.max(longest, left?.length ?? turns);
        repaired(conversation, target, from);
      }
    }
    expect(turns).toBeGreaterThan(60);
    expect(longest).toBeLessThan(24);
  });
});

test('an id of the beginning that comes again is seen', () => {
  const decode = decoder('anthropic-messages');
  const target = targetOf('anthropic-messages', NO_PROFILE);
  const call = (id: string): Mutable => ({
    role: 'assistant',
    content: [{ type: 'tool_use', id, name: 'Read', input: {} }],
  });
  const result = (id: string): Mutable => ({
    role: 'user',
    content: [{ type: 'tool_result', tool_use_id: id, content: 'done' }],
  });
  const messages: Mutable[] = [{ role: 'user', content: 'go on' }];
  for (let i = 0; i < 20; i++) messages.push(call(`toolu_${i}`), result(`toolu_${i}`));
  const body = () => ({ model: 'm', max_tokens: 9, messages: [...messages] });
  for (let i = 0; i < 2; i++) {
    expect(repaired(decode(body()), target, 'anthropic-messages').same).toBe(true);
  }
  const before = unsettledTurns(decode(body()), target, undefined);
  expect(before?.length).toBeLessThan(8);
  messages.push(call('toolu_3'), result('toolu_3'));
  const again = repaired(decode(body()), target, 'anthropic-messages');
  expect(again.same).toBe(false);
  expect(again.notes.length).toBeGreaterThan(0);
});

test("a history with the vendor's own calls is looked at as a whole", () => {
  const decode = decoder('anthropic-messages');
  const target = targetOf('anthropic-messages', NO_PROFILE);
  const search: Mutable = {
    role: 'assistant',
    content: [
      { type: 'server_tool_use', id: 'srvtoolu_1', name: 'web_search', input: { query: 'a' } },
      { type: 'web_search_tool_result', tool_use_id: 'srvtoolu_1', content: [] },
      { type: 'text', text: 'found' },
    ],
  };
  const messages: Mutable[] = [{ role: 'user', content: 'go on' }, search];
  for (let i = 0; i < 12; i++) {
    messages.push({ role: 'user', content: `and ${i}?` }, { role: 'assistant', content: 'yes' });
  }
  messages.push({ role: 'user', content: 'well?' });
  const body = { model: 'm', max_tokens: 9, messages };
  expect(repaired(decode(body), target, 'anthropic-messages').same).toBe(true);
  expect(unsettledTurns(decode(body), target, undefined)).toBeUndefined();
});
