/** The request pass is cheap, and its cost grows linearly with the history. */

import { describe, expect, test } from 'bun:test';
import { anthropicMessages } from '../../../src/codecs/anthropic-messages/index.ts';
import { Notes } from '../../../src/conversation/notes.ts';
import { NO_PROFILE } from '../../../src/conversation/target.ts';
import { repairBody, repairHistory } from '../../../src/features/tool-pairing/index.ts';
import type { Json, JsonObject } from '../../../src/lib/json/json.ts';
import { MESSAGES_DAMAGE } from './damage.ts';
import { type Mutable, Random } from './histories.ts';

const target = {
  provider: 'p',
  model: 'm',
  protocol: 'anthropic-messages' as const,
  profile: NO_PROFILE,
};

/** `rounds` rounds of one call each; `id` names the call of a round. */
function history(rounds: number, id: (round: number) => string): JsonObject {
  const messages: Json[] = [{ role: 'user', content: 'start' }];
  for (let i = 0; i < rounds; i++) {
    messages.push(
      {
        role: 'assistant',
        content: [
          { type: 'text', text: `step ${i}` },
          { type: 'tool_use', id: id(i), name: 'Read', input: { i } },
        ],
      },
      {
        role: 'user',
        content: [{ type: 'tool_result', tool_use_id: id(i), content: `result ${i}` }],
      },
    );
  }
  return { model: 'm', max_tokens: 9, messages };
}

/** The best of several runs in milliseconds, to reduce noise from other load. */
function cost(body: JsonObject, runs = 30): number {
  const conversation = anthropicMessages.decodeRequest(
    repairBody(body, 'anthropic-messages', new Notes()),
  );
  let best = Number.POSITIVE_INFINITY;
  for (let i = 0; i < runs; i++) {
    const begin = performance.now();
    repairHistory(conversation, target, new Notes());
    best = Math.min(best, performance.now() - begin);
  }
  return best;
}

describe('200 messages take less than a millisecond', () => {
  test('valid', () => {
    expect(
      cost(
        history(100, (i) => `toolu_${i}`),
        200,
      ),
    ).toBeLessThan(1);
  });

  test('broken in many places', () => {
    const body = history(100, (i) => (i % 9 === 0 ? `f.x:${i}` : `toolu_${i}`)) as Record<
      string,
      Json
    >;
    const random = new Random(3);
    for (const kind of [
      'a result is missing',
      'a result stands inline behind its call',
      'a result stands in a later user message',
      'a text is blank',
    ]) {
      for (let i = 0; i < 5; i++) MESSAGES_DAMAGE[kind]!(body.messages as Mutable[], random);
    }
    expect(cost(body, 200)).toBeLessThan(1);
  });
});

describe('twenty times the length costs at most about sixty times as much', () => {
  const cases: readonly (readonly [string, (round: number) => string])[] = [
    ['each call under an id of its own', (i) => `toolu_${i}`],
    ['ids that the vendor refuses', (i) => `f:${i}`],
  ];
  for (const [what, id] of cases) {
    test(what, () => {
      const short = cost(history(200, id));
      expect(cost(history(4000, id), 15)).toBeLessThan(Math.max(short * 60, 100));
    });
  }

  test('one id for all calls', () => {
    expect(
      cost(
        history(1000, () => 'call_0'),
        3,
      ),
    ).toBeLessThan(500);
  });
});

test('a megabyte of white space is trimmed at once', () => {
  const messages = [
    { role: 'user', content: 'a' },
    { role: 'assistant', content: `b${' '.repeat(1_000_000)}c${' '.repeat(1_000_000)}` },
  ];
  expect(cost({ model: 'm', max_tokens: 9, messages }, 1)).toBeLessThan(500);
});
