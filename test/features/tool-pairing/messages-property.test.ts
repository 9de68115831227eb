/** Randomly damaged Messages histories come out valid, complete and stable; valid ones come out unchanged. */

import { describe, expect, test } from 'bun:test';
import fc from 'fast-check';
import type { Json, JsonObject } from '../../../src/lib/json/json.ts';
import { messagesComplaint } from './complaints.ts';
import { MESSAGES_DAMAGE } from './damage.ts';
import { type Mutable, Random } from './histories.ts';
import { validRequest } from './messages-property.ts';
import { marksIn, run } from './support.ts';

const KINDS = Object.keys(MESSAGES_DAMAGE);
const RUNS = Number(process.env.PAIRING_RUNS ?? 600);

function damaged(seed: number, kinds: readonly string[]): JsonObject {
  const body = structuredClone(validRequest(seed)) as Record<string, Json>;
  const random = new Random(seed ^ 0xdada);
  for (const kind of kinds) MESSAGES_DAMAGE[kind]!(body.messages as Mutable[], random);
  return body;
}

interface IdField {
  readonly id: Json | undefined;
  readonly key: string;
}

const isRecord = (value: unknown): value is Mutable =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

function blocks(body: JsonObject): readonly Mutable[] {
  return (body.messages as Json[]).flatMap((message) =>
    isRecord(message) && Array.isArray(message.content)
      ? (message.content as Json[]).filter(isRecord)
      : [],
  );
}

const callsOf = (body: JsonObject): readonly IdField[] =>
  blocks(body).flatMap((block) =>
    /^(server_)?tool_use$/.test(String(block.type)) &&
    isRecord(block.input) &&
    typeof block.input.key === 'string'
      ? [{ id: block.id, key: block.input.key }]
      : [],
  );

/** The marks of each call's results, for calls whose id is unique. */
function answers(body: JsonObject): Map<string, string[]> {
  const calls = callsOf(body);
  const everyCall = blocks(body).filter(({ type }) => /tool_use$/.test(String(type)));
  const out = new Map<string, string[]>();
  for (const { id, key } of calls) {
    if (typeof id !== 'string' || everyCall.filter((call) => String(call.id) === id).length > 1)
      continue;
    if (calls.filter((call) => call.key === key).length > 1) continue;
    const results = blocks(body).filter(
      (block) => block.type === 'tool_result' && block.tool_use_id === id,
    );
    out.set(
      key,
      results.map((block) => JSON.stringify(block.content ?? '')),
    );
  }
  return out;
}

const markOf = (content: string | undefined) => content?.match(/R\d+\./)?.[0];

/** Every law for one broken body. */
function law(body: JsonObject): void {
  const before = JSON.stringify(body);
  const { body: sent, same } = run(body, 'anthropic-messages');
  expect(JSON.stringify(body)).toBe(before);
  expect(messagesComplaint(sent)).toBeUndefined();
  const wasValid = messagesComplaint(body) === undefined;
  expect(same).toBe(wasValid);
  const stored = marksIn(sent);
  for (const mark of marksIn(body)) expect(stored).toContain(mark);
  const after = answers(sent);
  for (const [key, results] of answers(body)) {
    const given = after.get(key);
    expect(given?.length).toBe(1);
    if (results.length > 0) expect(results.map(markOf)).toContain(markOf(given![0]));
  }
  const again = run(sent, 'anthropic-messages');
  expect(again.names).toEqual([]);
  expect(again.same).toBe(true);
}

test('every kind of damage breaks some history', () => {
  for (const kind of KINDS) {
    const broke = Array.from({ length: 60 }, (_, seed) => damaged(seed, [kind])).some(
      (body) => messagesComplaint(body) !== undefined,
    );
    // The vendor itself reorders results and joins messages of one role.
    const tolerated = /another order|split over|is split|run on in the next/.test(kind);
    expect({ kind, broke: broke || tolerated }).toEqual({ kind, broke: true });
  }
});

test('valid histories come back as the same conversation', () => {
  for (let seed = 0; seed < 300; seed++) {
    const body = validRequest(seed);
    expect(messagesComplaint(body)).toBeUndefined();
    const { same, names } = run(body, 'anthropic-messages');
    expect(names).toEqual([]);
    expect(same).toBe(true);
  }
});

describe('one kind of damage', () => {
  for (const kind of KINDS) {
    test(kind, () => {
      for (let seed = 0; seed < 60; seed++) law(damaged(seed, [kind]));
    });
  }
});

test('a server call is not taken for one in progress before a turn that lost all its content', () => {
  law(
    damaged(763_117_483, [
      'a call is missing',
      'a server answer stands before its call',
      'a client tool wears the clothes of a server tool',
      'a result is missing',
    ]),
  );
});

test('thinking is off when the last turn begins with the placeholder of an empty one', () => {
  law(
    damaged(8, [
      'a result is missing',
      'a result is missing',
      'a message says nothing',
      'thinking of another vendor',
      'the model talks on behind an inline result before its call',
      'a message says nothing',
    ]),
  );
  law(
    damaged(81_280_433, [
      'a result is missing',
      'a user message is missing',
      'thinking in a user message',
      'a call is missing',
    ]),
  );
});

test('combined kinds of damage', () => {
  fc.assert(
    fc.property(
      fc.nat(),
      fc.array(fc.constantFrom(...KINDS), { minLength: 2, maxLength: 7 }),
      (seed, kinds) => law(damaged(seed, kinds)),
    ),
    { numRuns: RUNS },
  );
});
