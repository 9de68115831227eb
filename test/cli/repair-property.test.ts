/** `hopgate repair` makes histories valid, however they are damaged: the strict vendor and the linter take what comes out. */

import { expect, test } from 'bun:test';
import { type RepairOptions, repairLine } from '../../src/cli/commands/repair.ts';
import { anthropicMessages } from '../../src/codecs/anthropic-messages/index.ts';
import { lintRequest } from '../../src/codecs/anthropic-messages/lint/lint-request.ts';
import { googleGemini } from '../../src/codecs/google-gemini/index.ts';
import { openaiChat } from '../../src/codecs/openai-chat/index.ts';
import { openaiResponses } from '../../src/codecs/openai-responses/index.ts';
import { repairBody, repairHistory } from '../../src/features/tool-pairing/index.ts';
import { fitTurnOrder } from '../../src/features/vendor-fit/index.ts';
import type { Json, JsonObject } from '../../src/lib/json/json.ts';
import { messagesComplaint } from '../features/tool-pairing/complaints.ts';
import { type Damage, MESSAGES_DAMAGE } from '../features/tool-pairing/damage.ts';
import { type Mutable, Random } from '../features/tool-pairing/histories.ts';
import { validRequest } from '../features/tool-pairing/messages-property.ts';
import { checkMessages } from '../support/fake-upstream/check-messages.ts';

const RUNS = Number(process.env.REPAIR_RUNS ?? 1500);

const options: RepairOptions = {
  to: 'anthropic-messages',
  profile: undefined,
  from: undefined,
  services: {
    protocols: {
      'anthropic-messages': anthropicMessages,
      'openai-chat': openaiChat,
      'openai-responses': openaiResponses,
      'google-gemini': googleGemini,
    },
    pairing: { mend: repairBody, repair: repairHistory, fitTurns: fitTurnOrder },
  },
};

const isRecord = (value: unknown): value is Mutable =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

function everyBlock(messages: Mutable[]): Mutable[] {
  const nested = (list: unknown): Mutable[] =>
    Array.isArray(list)
      ? list.filter(isRecord).flatMap((block) => [block, ...nested(block.content)])
      : [];
  return messages.filter(isRecord).flatMap(({ content }) => nested(content));
}

/** An unknown field, on some of these. */
const field =
  (of: (messages: Mutable[]) => Mutable[], keys: readonly (readonly [string, Json])[]): Damage =>
  (messages, dice) => {
    const [key, value] = dice.pick(keys);
    for (const one of of(messages))
      if (dice.chance(0.5) && one[key] === undefined) one[key] = value;
  };

/** What only a vendor could have told: models and releases differ in it, or fields may be new. */
const UNKNOWN_DAMAGE: Readonly<Record<string, Damage>> = {
  'unknown fields of messages': field(
    (messages) => messages.filter(isRecord),
    [
      ['status', 'completed'],
      ['id', 'msg_1'],
      ['index', 3],
      ['reasoning_content', 'hm'],
      ['tool_calls', []],
      ['name', 'x'],
      ['stop_reason', 'end_turn'],
      ['usage', { input_tokens: 1 }],
      ['a_field_of_2031', true],
      ['refusal', null],
    ],
  ),
  'unknown fields of blocks': field(everyBlock, [
    ['status', 'completed'],
    ['index', 1],
    ['partial_json', '{'],
    ['annotations', []],
    ['logprobs', null],
    ['reasoning_content', 'hm'],
    ['a_field_of_2031', { deep: [1] }],
    ['timestamp', 1],
  ]),
  'instructions in the middle': (messages, dice) => {
    messages.splice(dice.below(messages.length + 1), 0, {
      role: dice.pick(['system', 'developer']),
      content: dice.pick<Json>([
        'T90. be brief',
        [{ type: 'text', text: 'T91. be kind' }],
        [{ type: 'text', text: 'T92. marked', cache_control: { type: 'ephemeral' } }],
        '',
        [],
      ]),
      ...(dice.chance(0.3) ? { output_config: { effort: 'low' } } : {}),
    });
  },
  'the assistant begins': (messages) => {
    while (messages.length > 1 && messages[0]?.role !== 'assistant') messages.shift();
  },
  'the assistant ends': (messages, dice) => {
    if (dice.chance(0.5)) messages.push({ role: 'assistant', content: 'T93. as I said' });
    else while (messages.length > 1 && messages.at(-1)?.role !== 'assistant') messages.pop();
  },
  'roles of other protocols': (messages, dice) => {
    const one = dice.pick(messages.filter(isRecord));
    one.role = dice.pick<Json>(['model', 'tool', 'function', 'human', 'ai', null, 7]);
  },
  'a tool message of Chat': (messages, dice) => {
    messages.splice(dice.below(messages.length + 1), 0, {
      role: 'tool',
      tool_call_id: 'call_1',
      content: 'T94. found',
    });
  },
  'calls of Chat': (messages, dice) => {
    messages.splice(dice.below(messages.length + 1), 0, {
      role: 'assistant',
      content: null,
      tool_calls: [{ id: 'call_1', type: 'function', function: { name: 'f', arguments: '{}' } }],
    });
  },
};

const DAMAGE: Readonly<Record<string, Damage>> = { ...MESSAGES_DAMAGE, ...UNKNOWN_DAMAGE };
const KINDS = Object.keys(DAMAGE);
const MODELS = ['m', 'claude-sonnet-4-5', 'claude-opus-4-6', 'claude-opus-5', 'glm-4.6'];

function damagedBody(seed: number): { body: JsonObject; kinds: readonly string[] } {
  const body = structuredClone(validRequest(seed)) as Record<string, Json>;
  const dice = new Random(seed ^ 0x5eed);
  body.model = dice.pick(MODELS);
  const kinds = Array.from({ length: 1 + dice.below(6) }, () => dice.pick(KINDS));
  for (const kind of kinds) DAMAGE[kind]!(body.messages as Mutable[], dice);
  return { body, kinds };
}

/** The vendor goes on with a turn itself in which a tool of its own is under way. */
function isUnderWay({ messages }: JsonObject): boolean {
  const { content } = (messages as JsonObject[]).at(-1)!;
  const blocks = Array.isArray(content) ? (content as JsonObject[]) : [];
  return blocks.some(
    ({ type, id }) =>
      type === 'server_tool_use' && !blocks.some(({ tool_use_id: of }) => of === id),
  );
}

/** Why the vendor would refuse a body; the seals of these histories are made up, and no vendor could check them. */
function refusal(body: JsonObject): string | undefined {
  const model = String(body.model);
  try {
    checkMessages(
      body,
      {},
      {
        anySeal: true,
        firstUser: true,
        noSystemRole: !/opus-5/.test(model),
        noPrefill: /opus-(4-6|5)/.test(model) && !isUnderWay(body),
      },
    );
  } catch (thrown) {
    return thrown instanceof Error ? thrown.message : JSON.stringify(thrown);
  }
  const found = lintRequest(body).find(({ rule }) => rule !== 'prefill');
  return found === undefined ? messagesComplaint(body) : `lint ${found.rule} ${found.message}`;
}

test('damaged in any way, and in many at once', () => {
  const failed: string[] = [];
  for (let seed = 1; seed <= RUNS; seed++) {
    const { body, kinds } = damagedBody(seed);
    const line = JSON.parse(repairLine(JSON.stringify(body), options)) as {
      body?: JsonObject;
      error?: Json;
    };
    const why = line.body === undefined ? JSON.stringify(line.error) : refusal(line.body);
    if (why === undefined) {
      // What came out needs nothing more.
      const again = repairLine(JSON.stringify(line.body), options);
      if (again !== `{"body":${JSON.stringify(line.body)},"notes":[]}`) {
        failed.push(`${seed} again ${kinds.join(' + ')}`);
      }
    } else failed.push(`${seed} ${why.slice(0, 200)} ${kinds.join(' + ')}`);
  }
  if (process.env.REPAIR_RUNS !== undefined) {
    console.log(`${RUNS - failed.length} of ${RUNS}`);
    console.log(failed.slice(0, 12).join('\n'));
  }
  expect(failed).toEqual([]);
}, 300_000);

test('valid histories come back as they are', () => {
  for (let seed = 0; seed < 200; seed++) {
    const text = JSON.stringify(validRequest(seed));
    expect(repairLine(text, options)).toBe(`{"body":${text},"notes":[]}`);
  }
});
