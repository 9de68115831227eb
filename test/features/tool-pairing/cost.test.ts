/** The request pass is cheap, and its cost grows linearly with the history. */

import { describe, test } from 'bun:test';
import { anthropicMessages } from '../../../src/codecs/anthropic-messages/index.ts';
import { Notes } from '../../../src/conversation/notes.ts';
import { NO_PROFILE } from '../../../src/conversation/profile-facts.ts';
import { repairBody, repairHistory } from '../../../src/features/tool-pairing/index.ts';
import type { Json, JsonObject } from '../../../src/lib/json/json.ts';
import { expectCpuBelow } from '../../support/cpu-time.ts';
import { expectLinear } from '../../support/growth.ts';
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

const decoded = (body: JsonObject) =>
  anthropicMessages.decodeRequest(repairBody(body, 'anthropic-messages', new Notes()));
const repair = (conversation: ReturnType<typeof decoded>) =>
  repairHistory(conversation, target, new Notes());

/** CPU milliseconds of one pass. */
function expectCost(below: number, body: JsonObject, passes: number): Promise<void> {
  const conversation = decoded(body);
  return expectCpuBelow(below * passes, () => {
    for (let i = 0; i < passes; i++) repair(conversation);
  });
}

describe('200 messages take less than a millisecond', () => {
  test('valid', async () => {
    await expectCost(
      1,
      history(100, (i) => `toolu_${i}`),
      20,
    );
  });

  test('broken in many places', async () => {
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
    await expectCost(1, body, 20);
  });
});

describe('the cost grows with the length', () => {
  const roundLength = JSON.stringify(history(1, () => 'toolu_1').messages).length;
  test.each<[string, (round: number) => string]>([
    ['each call under an id of its own', (i) => `toolu_${i}`],
    ['ids that the vendor refuses', (i) => `f:${i}`],
  ])('%s', async (name, id) => {
    await expectLinear({
      name,
      input: (size) => decoded(history(Math.ceil(size / roundLength), id)),
      run: repair,
      most: 4000 * roundLength,
    });
  });

  test('one id for all calls', async () => {
    await expectCost(
      500,
      history(1000, () => 'call_0'),
      1,
    );
  });
});

test('a megabyte of white space is trimmed at once', async () => {
  const messages = [
    { role: 'user', content: 'a' },
    { role: 'assistant', content: `b${' '.repeat(1_000_000)}c${' '.repeat(1_000_000)}` },
  ];
  await expectCost(500, { model: 'm', max_tokens: 9, messages }, 1);
});
