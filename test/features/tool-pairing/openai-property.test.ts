/** Randomly damaged Chat and Responses histories come out valid, complete and stable; valid ones unchanged. */

import { describe, expect, test } from 'bun:test';
import fc from 'fast-check';
import type { Json, JsonObject } from '../../../src/lib/json/json.ts';
import type { SuiteProtocol as ProtocolName } from '../../support/suite-protocols.ts';
import { chatComplaint, responsesComplaint } from './complaints.ts';
import type { Damage } from './damage.ts';
import { CHAT_DAMAGE, RESPONSES_DAMAGE } from './damage-openai.ts';
import {
  chatBody,
  chatVoice,
  type Mutable,
  Random,
  requests,
  responsesBody,
  responsesVoice,
  session,
} from './histories.ts';
import { marksIn, run } from './support.ts';

const RUNS = Number(process.env.PAIRING_RUNS ?? 600);

interface Side {
  readonly protocol: ProtocolName;
  readonly list: string;
  readonly damage: Readonly<Record<string, Damage>>;
  readonly complaint: (body: JsonObject) => string | undefined;
  readonly bodies: (seed: number, rounds: number) => readonly JsonObject[];
  /** [key, id] of each call, and [id, content] of each result. */
  readonly calls: (entry: Mutable) => readonly (readonly [string, Json | undefined])[];
  readonly result: (entry: Mutable) => readonly [Json | undefined, string] | undefined;
}

const isRecord = (value: unknown): value is Mutable =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

const keyOf = (args: Json | undefined): string => String(args).match(/K\d+\./)?.[0] ?? '';

const SIDES: readonly Side[] = [
  {
    protocol: 'openai-chat',
    list: 'messages',
    damage: CHAT_DAMAGE,
    complaint: chatComplaint,
    bodies: (seed, rounds) => requests(session(seed, rounds), chatBody, chatVoice),
    calls: ({ tool_calls: calls }) =>
      Array.isArray(calls)
        ? (calls as Json[]).flatMap((call) =>
            isRecord(call) && isRecord(call.function)
              ? [[keyOf(call.function.arguments), call.id] as const]
              : [],
          )
        : [],
    result: (entry) =>
      entry.role === 'tool' ? [entry.tool_call_id, JSON.stringify(entry.content ?? '')] : undefined,
  },
  {
    protocol: 'openai-responses',
    list: 'input',
    damage: RESPONSES_DAMAGE,
    complaint: responsesComplaint,
    bodies: (seed, rounds) => requests(session(seed, rounds), responsesBody, responsesVoice),
    calls: (entry) =>
      entry.type === 'function_call' ? [[keyOf(entry.arguments), entry.call_id]] : [],
    result: (entry) =>
      entry.type === 'function_call_output'
        ? [entry.call_id, JSON.stringify(entry.output ?? '')]
        : undefined,
  },
];

const markOf = (content: string | undefined) => content?.match(/R\d+\./)?.[0];

/** The marks of each call's results, for calls whose id is unique. */
function answers(side: Side, body: JsonObject): Map<string, (string | undefined)[]> {
  const entries = (body[side.list] as Json[]).filter(isRecord);
  const calls = entries.flatMap(side.calls);
  const results = entries.flatMap((entry) => side.result(entry) ?? []) as unknown as (
    | Json
    | string
  )[];
  const out = new Map<string, (string | undefined)[]>();
  for (const [key, id] of calls) {
    if (key === '' || typeof id !== 'string') continue;
    if (calls.filter((other) => String(other[1]) === id || other[0] === key).length > 1) continue;
    const given: (string | undefined)[] = [];
    for (let i = 0; i < results.length; i += 2) {
      if (results[i] === id) given.push(markOf(String(results[i + 1])));
    }
    out.set(key, given);
  }
  return out;
}

function broken(side: Side, seed: number, kinds: readonly string[]): JsonObject {
  const random = new Random(seed);
  const body = structuredClone(random.pick(side.bodies(seed, 1 + random.below(4)))) as Record<
    string,
    Json
  >;
  for (const kind of kinds) side.damage[kind]!(body[side.list] as Mutable[], random);
  return body;
}

function law(side: Side, body: JsonObject): void {
  const before = JSON.stringify(body);
  const { body: sent, same } = run(body, side.protocol);
  expect(JSON.stringify(body)).toBe(before);
  expect(side.complaint(sent)).toBeUndefined();
  if (side.protocol === 'openai-chat' || body.store === false) {
    expect(same).toBe(side.complaint(body) === undefined);
  }
  const stored = marksIn(sent);
  for (const mark of marksIn(body)) expect(stored).toContain(mark);
  const after = answers(side, sent);
  for (const [key, marks] of answers(side, body)) {
    const given = after.get(key);
    expect(given?.length).toBe(1);
    if (marks.length > 0) expect(marks).toContain(given![0]);
  }
  const again = run(sent, side.protocol);
  expect(again.names).toEqual([]);
  expect(again.same).toBe(true);
}

for (const side of SIDES) {
  const kinds = Object.keys(side.damage);
  describe(side.protocol, () => {
    test('valid histories come back as the same conversation', () => {
      for (let seed = 0; seed < 200; seed++) {
        for (const body of side.bodies(seed, 3)) {
          expect(side.complaint(body)).toBeUndefined();
          const { same, names } = run(body, side.protocol);
          expect(names).toEqual([]);
          expect(same).toBe(true);
        }
      }
    });

    test('every kind of damage breaks some history', () => {
      for (const kind of kinds) {
        const broke = Array.from({ length: 60 }, (_, seed) => broken(side, seed, [kind])).some(
          (body) => side.complaint(body) !== undefined,
        );
        const tolerated = side.protocol === 'openai-responses' && /stands before|amid/.test(kind);
        expect({ kind, broke: broke || tolerated }).toEqual({ kind, broke: true });
      }
    });

    for (const kind of kinds) {
      test(kind, () => {
        for (let seed = 0; seed < 60; seed++) law(side, broken(side, seed, [kind]));
      });
    }

    test('combined kinds of damage', () => {
      fc.assert(
        fc.property(
          fc.nat(),
          fc.array(fc.constantFrom(...kinds), { minLength: 2, maxLength: 7 }),
          (seed, some) => law(side, broken(side, seed, some)),
        ),
        { numRuns: RUNS },
      );
    });
  });
}
