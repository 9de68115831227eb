/** The repair of tool histories is linear in their size, however hostile they are. */

import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { GatewayError } from '../../src/conversation/errors.ts';
import { Notes } from '../../src/conversation/notes.ts';
import { NO_PROFILE, type Profile } from '../../src/conversation/profile-facts.ts';
import { historyRefusal } from '../../src/conversation/refusal/refusal.ts';
import type { Target } from '../../src/conversation/target.ts';
import type { Conversation } from '../../src/conversation/types.ts';
import { refusalRetry } from '../../src/features/refusal-retry/index.ts';
import { repairBody, repairHistory, toolPairing } from '../../src/features/tool-pairing/index.ts';
import { mayNeedRepair } from '../../src/features/tool-pairing/prefilter.ts';
import { vendorFit } from '../../src/features/vendor-fit/index.ts';
import type { Json, JsonObject } from '../../src/lib/json/json.ts';
import { runInSlices } from '../../src/lib/loop/steps.ts';
import { PROTOCOLS } from '../features/tool-pairing/support.ts';
import { expectLinear } from '../support/growth.ts';
import { expectSlices } from '../support/longest-turn.ts';
import type { SuiteProtocol as ProtocolName } from '../support/suite-protocols.ts';

const NAMES = Object.keys(PROTOCOLS) as ProtocolName[];

/** `n` blocks of a Messages history, by kind. */
const use = (id: string, more: JsonObject = {}): JsonObject => ({
  type: 'tool_use',
  id,
  name: 'f',
  input: {},
  ...more,
});
const result = (id: string, content: Json = 'x'): JsonObject => ({
  type: 'tool_result',
  tool_use_id: id,
  content,
});
const contentOf = (text: string): JsonObject => ({ type: 'text', text });
const user = (...content: Json[]): JsonObject => ({ role: 'user', content });
const model = (...content: Json[]): JsonObject => ({ role: 'assistant', content });
const list = <T>(n: number, make: (i: number) => T): T[] =>
  Array.from({ length: n }, (_, i) => make(i));

/** Messages histories of about `n` blocks. */
const MESSAGES: Readonly<Record<string, (n: number) => readonly Json[]>> = {
  'calls and results of one id, inline': (n) => [
    user(contentOf('a')),
    model(...list(n, (i) => (i % 2 === 0 ? use('a') : result('a')))),
  ],
  'calls of one id, then results of one id': (n) => [
    user(contentOf('a')),
    model(...list(n / 2, () => use('a'))),
    user(...list(n / 2, () => result('a'))),
  ],
  'results of one id before the calls': (n) => [
    user(...list(n / 2, () => result('a'))),
    model(...list(n / 2, () => use('a'))),
  ],
  'rounds of one id whose results are all at the end': (n) => [
    ...list(n / 2, () => [user(contentOf('a')), model(use('a'))]).flat(),
    user(...list(n / 2, () => result('a'))),
  ],
  'results inline before their calls, and words between': (n) => [
    user(contentOf('a')),
    model(
      ...list(n / 3, (i) => result(`t${i}`)),
      ...list(n / 3, (i) => use(`t${i}`)),
      ...list(n / 3, () => contentOf('b')),
    ),
  ],
  'stray results of one id that is paired elsewhere': (n) => [
    user(contentOf('a')),
    model(use('a')),
    user(result('a', 'long '.repeat(n)), ...list(n, () => result('a', 'short'))),
  ],
  'stray results that say the same at length': (n) => [
    user(contentOf('a')),
    model(use('a')),
    user(
      ...list(n, () =>
        result(
          'a',
          list(3, (i) => contentOf(`part ${i}`)),
        ),
      ),
    ),
  ],
  'server calls without answers': (n) => [
    user(contentOf('a')),
    model(
      ...list(n, (i) => ({
        type: 'server_tool_use',
        id: `srvtoolu_${i}`,
        name: 'web_search',
        input: {},
      })),
    ),
  ],
  'server calls and answers of one id': (n) => [
    user(contentOf('a')),
    model(
      ...list(n / 2, () => ({
        type: 'server_tool_use',
        id: 'srvtoolu_a',
        name: 'web_search',
        input: {},
      })),
      ...list(n / 2, () => ({
        type: 'web_search_tool_result',
        tool_use_id: 'srvtoolu_a',
        content: [],
      })),
    ),
  ],
  'server calls, and their answers in a turn far behind': (n) => [
    user(contentOf('a')),
    ...list(n / 3, (i) =>
      model({ type: 'server_tool_use', id: `srvtoolu_${i}`, name: 'web_search', input: {} }),
    ),
    ...list(n / 3, () => user(result('zz'))),
    model(
      ...list(n / 3, (i) => ({
        type: 'web_search_tool_result',
        tool_use_id: `srvtoolu_${i}`,
        content: [],
      })),
    ),
  ],
  'messages of one role': (n) =>
    list(n, (i) => user(i % 2 === 0 ? contentOf('a') : result(`s${i}`))),
  'messages of the assistant alone': (n) =>
    list(n, (i) => model(i % 2 === 0 ? contentOf('a') : use(`t${i}`))),
  'instructions everywhere': (n) =>
    list(n, (i) =>
      i % 3 === 0
        ? { role: 'system', content: 'a' }
        : i % 3 === 1
          ? model(use(`t${i}`))
          : user(result(`t${i - 1}`)),
    ),
  'ids that are refused': (n) => [
    user(contentOf('a')),
    model(...list(n / 2, (i) => use(`f.x:${i}`))),
    user(...list(n / 2, (i) => result(`f.x:${n - i}`))),
  ],
  'calls in user messages': (n) => list(n / 2, (i) => user(contentOf('a'), use(`t${i}`))),
  'thinking everywhere': (n) =>
    list(n / 2, (i) =>
      i % 2 === 0
        ? user(contentOf('a'))
        : model(
            contentOf('b'),
            { type: 'thinking', thinking: 'c', signature: 'd' },
            contentOf('e'),
          ),
    ),
  'cache marks everywhere': (n) => [
    user(...list(n, () => ({ ...contentOf('a'), cache_control: { type: 'ephemeral' } }))),
  ],
  'blank texts': (n) => [
    user(...list(n, () => contentOf(' '))),
    model(...list(n, () => contentOf('\n'))),
  ],
  'broken pieces': (n) => [
    user(...list(n, (i) => [null, 5, {}, [], { type: 7 }][i % 5]!)),
    model(),
  ],
  'results in results': (n) => [
    user(contentOf('a')),
    model(use('a')),
    user(
      result(
        'a',
        list(n, (i) => result(`n${i}`)),
      ),
    ),
  ],
};

const bodies = (messages: readonly Json[]): JsonObject => ({
  model: 'm',
  max_tokens: 9,
  tools: [{ name: 'f', input_schema: { type: 'object' } }],
  messages,
});

const pick = <T>(all: Readonly<Record<string, T>>, names: readonly string[]) =>
  Object.fromEntries(names.map((name) => [name, all[name]!]));

/** The number of blocks that fit in so many characters. */
const blocksIn = (size: number) => Math.max(6, Math.floor(size / 60));

const target = (protocol: ProtocolName, profile: Profile = NO_PROFILE): Target => ({
  provider: 'p',
  model: 'm',
  protocol,
  profile,
});

function decoded(body: JsonObject, from: ProtocolName): Conversation {
  return PROTOCOLS[from].decodeRequest(repairBody(body, from, new Notes()));
}

const MAX = 1024 * 1024;

describe.each(NAMES)('a Messages history to %s', (to) => {
  for (const [name, make] of Object.entries(MESSAGES)) {
    test(name, async () => {
      await expectLinear({
        name,
        most: MAX,
        input: (size) => decoded(bodies(make(blocksIn(size))), 'anthropic-messages'),
        run: (conversation) => {
          const notes = new Notes();
          const sent = repairHistory(conversation, target(to), notes);
          PROTOCOLS[to].encodeRequest(sent, target(to), notes);
          notes.summary();
        },
      });
    }, 60_000);
  }
});

/** Three times what `limits.blocks` lets through by default. */
const MANY_BLOCKS = 60_000;

const ROUNDS: Readonly<Record<string, (n: number) => readonly Json[]>> = {
  ...pick(MESSAGES, [
    'rounds of one id whose results are all at the end',
    'instructions everywhere',
    'calls in user messages',
  ]),
  'results that name other calls': (n) =>
    list(n / 2, (i) => [model(use(`t${i}`)), user(result(`u${i}`))]).flat(),
};

describe.each(Object.entries(ROUNDS))('a large history is paired in slices: %s', (name, make) => {
  let conversation: Conversation | undefined;
  beforeAll(() => {
    conversation = decoded(bodies(make(MANY_BLOCKS)), 'anthropic-messages');
  });
  afterAll(() => {
    conversation = undefined;
  });
  test.each(NAMES)(
    'to %s',
    async (to) => {
      const context = { target: target(to), client: 'anthropic-messages', hop: 1 } as const;
      await expectSlices(name, async () => {
        const steps = toolPairing.requestSteps!(conversation!, { ...context, notes: new Notes() });
        expect(await runInSlices(steps)).toBeDefined();
      });
    },
    60_000,
  );
});

const call = (id: string, args = '{}'): JsonObject => ({
  id,
  type: 'function',
  function: { name: 'f', arguments: args },
});
const tool = (id: string): JsonObject => ({ role: 'tool', tool_call_id: id, content: 'x' });

const CHAT: Readonly<Record<string, (n: number) => readonly Json[]>> = {
  'calls of one id in one message': (n) => [
    { role: 'user', content: 'a' },
    { role: 'assistant', content: null, tool_calls: list(n / 2, () => call('a')) },
    ...list(n / 2, () => tool('a')),
  ],
  'results without calls': (n) => list(n, (i) => tool(`t${i}`)),
  'rounds whose results come last': (n) => [
    ...list(n / 2, (i) => ({ role: 'assistant', content: null, tool_calls: [call(`t${i % 7}`)] })),
    ...list(n / 2, (i) => tool(`t${i % 7}`)),
  ],
  'arguments that are cut off': (n) => [
    { role: 'user', content: 'a' },
    {
      role: 'assistant',
      content: null,
      tool_calls: list(n, (i) => call(`t${i}`, '{"a":"'.repeat(3))),
    },
  ],
  'one role only': (n) => list(n, () => ({ role: 'user', content: 'a' })),
  'instructions only': (n) => list(n, () => ({ role: 'system', content: 'a' })),
};
const item = (id: string): JsonObject => ({
  type: 'function_call',
  call_id: id,
  name: 'f',
  arguments: '{',
});
const output = (id: string): JsonObject => ({
  type: 'function_call_output',
  call_id: id,
  output: 'x',
});
const RESPONSES: Readonly<Record<string, (n: number) => readonly Json[]>> = {
  'calls whose outputs are far behind': (n) => [
    ...list(n / 2, (i) => [item(`t${i}`), { role: 'user', content: 'a' }]).flat(),
    ...list(n / 2, (i) => output(`t${i}`)),
  ],
  'calls without outputs': (n) => list(n, (i) => item(`t${i}`)),
  'calls and outputs of one id': (n) => [
    ...list(n / 2, () => item('a')),
    ...list(n / 2, () => output('a')),
  ],
  'reasoning that leads nowhere': (n) =>
    list(n, (i) => ({ type: 'reasoning', id: `rs_${i}`, summary: [] })),
  'items of one id': (n) =>
    list(n, () => ({ type: 'message', id: 'msg_1', role: 'user', content: 'a' })),
  'assistant messages only': (n) => list(n, () => ({ role: 'assistant', content: 'a' })),
};

/** Every profile fact about turns at once. */
const STRICT: Profile = {
  name: 'strict',
  systemTurns: false,
  sameRoleTurns: false,
  parallelCalls: false,
  userAfterTool: false,
  assistantLast: false,
  userFirst: true,
  needsUserTurn: true,
  developerRole: false,
  callIds: 'nine-alphanumeric',
  reasoningReplay: 'all',
  thinkingDefault: 'always',
  reasoningField: 'reasoning_content',
};
const fit = vendorFit();

const OTHERS = [
  ['openai-chat', CHAT, (value: readonly Json[]): JsonObject => ({ model: 'm', messages: value })],
  [
    'openai-responses',
    RESPONSES,
    (value: readonly Json[]): JsonObject => ({ model: 'm', input: value }),
  ],
  ['anthropic-messages', MESSAGES, bodies],
] as const;

for (const [from, histories, wrap] of OTHERS) {
  for (const to of NAMES) {
    describe(`${from} to a strict ${to}`, () => {
      for (const [name, make] of Object.entries(histories)) {
        test(name, async () => {
          const at = target(to, STRICT);
          await expectLinear({
            name,
            most: MAX / 2,
            input: (size) => {
              const body = wrap(make(blocksIn(size)));
              return {
                conversation: decoded(body, from),
                bytes: Buffer.from(JSON.stringify(body)),
              };
            },
            run: ({ conversation, bytes }) => {
              const notes = new Notes();
              const context = { target: at, client: from, notes, hop: 1 };
              mayNeedRepair(bytes, from);
              fit.mayApply!(bytes, context);
              const paired = toolPairing.request!(conversation, context);
              PROTOCOLS[to].encodeRequest(fit.request!(paired, context), at, notes);
            },
          });
        }, 60_000);
      }
    });
  }
}

const refused = (message: string): GatewayError =>
  new GatewayError('invalid_request', message, { status: 400, fromUpstream: true });

describe('the message of a refusal', () => {
  const ids = (n: number) => list(n, (i) => `toolu_${i}`);
  const texts: Readonly<Record<string, (size: number) => string>> = {
    'ids, all of them unknown': (size) =>
      `messages.1: \`tool_use\` ids were found without \`tool_result\` blocks: ${ids(size / 12).join('x, ')}`,
    spaces: (size) => ' '.repeat(size),
    quotes: (size) => '`'.repeat(size),
    'the beginning of a pattern': (size) => 'thinking block '.repeat(size / 15),
    'encrypted content': (size) => 'encrypted content '.repeat(size / 18),
    'a long path': (size) => `messages${'.0'.repeat(size / 2)}`,
    'many paths': (size) => 'messages.0.x: Extra inputs are not permitted '.repeat(size / 45),
    colons: (size) => `${'a'.repeat(size)}:`,
  };
  for (const [name, make] of Object.entries(texts)) {
    test(`${name}: read`, async () => {
      await expectLinear({
        name,
        most: MAX,
        input: (size) => refused(make(size)),
        run: (error) => historyRefusal(error),
      });
    });
  }
  test('ids are searched in the refusal in linear time', async () => {
    for (const id of [
      (i: number) => `toolu_${i}`,
      (i: number) => `f.x:${i}`,
      (i: number) => `a${'b'.repeat(i % 50)}`,
    ]) {
      await expectLinear({
        name: 'ids in words',
        most: MAX / 2,
        input: (size) => {
          const n = blocksIn(size);
          const message = `\`tool_use\` ids were found without \`tool_result\` blocks: ${list(n, (i) => `t${i}`).join(', ')}`;
          const body = bodies([
            user(contentOf('a')),
            model(...list(n / 2, (i) => use(id(i)))),
            user(...list(n / 2, (i) => result(id(i)))),
          ]);
          return { conversation: decoded(body, 'anthropic-messages'), error: refused(message) };
        },
        run: ({ conversation, error }) =>
          refusalRetry().request!(conversation, {
            target: target('anthropic-messages'),
            client: 'anthropic-messages',
            notes: new Notes(),
            hop: 1,
            refusals: [error],
          }),
      });
    }
  }, 60_000);
});
