/** The request extension of chat apps: every wrong field is named, and headers have the same effect as the body. */

import { describe, expect, test } from 'bun:test';
import { openaiChat } from '../../../src/codecs/openai-chat/index.ts';
import { GatewayError } from '../../../src/conversation/errors.ts';
import {
  type ConversationOptions,
  conversationParts,
} from '../../../src/features/chat-apps/index.ts';
import type { JsonObject } from '../../../src/lib/json/json.ts';
import { testMemory } from './memory.ts';

const options = (
  extension: JsonObject | undefined,
  headers: Record<string, string> = {},
  more: Partial<ConversationOptions> = {},
): ConversationOptions => ({
  extension,
  headers: new Headers(headers),
  request: () => {
    throw new Error('nobody has asked yet');
  },
  memory: testMemory(),
  mayUse: () => true,
  locale: 'zh',
  texts: {},
  onQuery: () => {},
  onMarkup: () => {},
  onCaptureFailed: () => {},
  ...more,
});

const read = (extension: JsonObject, headers?: Record<string, string>) =>
  conversationParts(options(extension, headers))!;

function refusal(run: () => unknown): GatewayError {
  try {
    run();
  } catch (thrown) {
    if (thrown instanceof GatewayError) return thrown;
    throw thrown;
  }
  throw new Error('it was taken');
}

const group = { mode: 'group', self: { id: 'a', name: 'Ann' } };

describe('a wrong field is named', () => {
  const cases: readonly (readonly [string, JsonObject])[] = [
    ['hopgate.memroy', { memroy: {} }],
    ['hopgate.tool_events', { tool_events: 'yes' }],
    ['hopgate.memory', { memory: 'space' }],
    ['hopgate.memory.space', { memory: {} }],
    ['hopgate.memory.space', { memory: { space: ' ' } }],
    ['hopgate.memory.space', { memory: { space: 7 } }],
    ['hopgate.memory.recall', { memory: { space: 's', recall: 'sometimes' } }],
    ['hopgate.memory.max_recalls', { memory: { space: 's', max_recalls: 0 } }],
    ['hopgate.memory.max_recalls', { memory: { space: 's', max_recalls: 1.5 } }],
    ['hopgate.memory.max_recalls', { memory: { space: 's', max_recalls: '3' } }],
    ['hopgate.memory.limit', { memory: { space: 's', limit: 1000 } }],
    ['hopgate.memory.capture', { memory: { space: 's', capture: 1 } }],
    ['hopgate.memory.maxRecalls', { memory: { space: 's', maxRecalls: 3 } }],
    ['hopgate.conversation', { conversation: [] }],
    ['hopgate.conversation.mode', { conversation: {} }],
    ['hopgate.conversation.mode', { conversation: { mode: 'duo' } }],
    ['hopgate.conversation.self', { conversation: { mode: 'group' } }],
    ['hopgate.conversation.self.id', { conversation: { mode: 'group', self: { name: 'A' } } }],
    ['hopgate.conversation.members', { conversation: { ...group, members: {} } }],
    ['hopgate.conversation.members[1].id', { conversation: { ...group, members: ['b', {}] } }],
    [
      'hopgate.conversation.members[0].name',
      {
        conversation: { ...group, members: [{ id: 1, name: 5 }] },
      },
    ],
    ['hopgate.conversation.others', { conversation: { ...group, others: 5 } }],
    [
      'hopgate.conversation.others[0].text',
      { conversation: { ...group, others: [{ from: 'b' }] } },
    ],
    ['hopgate.conversation.mentions', { conversation: { ...group, mentions: 'a' } }],
    ['hopgate.conversation.mentions[0]', { conversation: { ...group, mentions: [null] } }],
    ['hopgate.conversation.locale', { conversation: { ...group, locale: 'fr' } }],
    ['hopgate.conversation.texts.hello', { conversation: { ...group, texts: { hello: 'x' } } }],
    [
      'hopgate.conversation.texts.mentioned',
      { conversation: { ...group, texts: { mentioned: '' } } },
    ],
    ['hopgate.conversation.mention', { conversation: { ...group, mention: [] } }],
  ];
  for (const [param, extension] of cases) {
    test(`${param} in ${JSON.stringify(extension)}`, () => {
      const error = refusal(() => read(extension));
      expect(error.kind).toBe('invalid_request');
      expect(error.param).toBe(param);
      expect(error.message).toContain(param);
    });
  }

  for (const [name, value] of [
    ['x-hopgate-extension', '***'],
    ['x-hopgate-extension', Buffer.from('[1]').toString('base64url')],
    ['x-hopgate-tool-events', 'maybe'],
    ['x-hopgate-capture', 'on'],
    ['x-hopgate-max-recalls', 'three'],
    ['x-hopgate-memory-space', '%E5%'],
  ] as const) {
    test(`the header ${name}: ${value}`, () => {
      const error = refusal(() => conversationParts(options(undefined, { [name]: value })));
      expect(error.kind).toBe('invalid_request');
      expect(error.param).toBe(name);
    });
  }

  test('a field that is missing is told as missing, and not as one of a wrong type', () => {
    const { message } = refusal(() =>
      read({ conversation: { mode: 'group', self: { name: 'A' } } }),
    );
    expect(message).toBe("'hopgate.conversation.self.id' is missing: it must be a string.");
  });

  test('a header with an invalid value names the extension’s field', () => {
    const headers = { 'x-hopgate-memory-space': 's', 'x-hopgate-recall': 'often' };
    const error = refusal(() => conversationParts(options(undefined, headers)));
    expect(error.param).toBe('hopgate.memory.recall');
  });
});

describe('tools by conversation', () => {
  const names = (extension: JsonObject) => read(extension).tools.map(({ name }) => name);
  const memory = { space: 's' };

  test('a group has three, a chat of two has recall_memory alone', () => {
    expect(names({ conversation: group, memory })).toEqual([
      'recall_memory',
      'get_other_members_messages',
      'is_mentioned',
    ]);
    expect(names({ conversation: { mode: 'single' }, memory })).toEqual(['recall_memory']);
    expect(names({ memory })).toEqual(['recall_memory']);
  });

  test('recall off, or no memory at all: no recall tool and nothing forced', () => {
    const off = { space: 's', recall: 'off' };
    expect(names({ memory: off })).toEqual([]);
    expect(names({ conversation: group, memory: off })).toEqual([
      'get_other_members_messages',
      'is_mentioned',
    ]);
    expect(names({ conversation: group })).toHaveLength(2);
    expect(read({ conversation: group, memory: off }).forced).toEqual([]);
    expect(names({ tool_events: true })).toEqual([]);
  });

  test('only `always` forces calls; in a group all three, in a fixed order', () => {
    const forced = (extension: JsonObject) => read(extension).forced.map(({ name }) => name);
    const always = { space: 's', recall: 'always' };
    expect(forced({ conversation: group, memory: always })).toEqual([
      'get_other_members_messages',
      'is_mentioned',
      'recall_memory',
    ]);
    expect(forced({ memory: always })).toEqual(['recall_memory']);
    expect(forced({ conversation: group, memory })).toEqual([]);
  });

  const run = (extension: JsonObject, name: string, args: JsonObject = {}) =>
    read(extension)
      .tools.find((tool) => tool.name === name)!
      .run(args, { signal: new AbortController().signal });

  test('is_mentioned compares ids, as numbers or text', async () => {
    const self = { id: 7, name: '小明' };
    const openChat = (mentions: (string | number)[], more: JsonObject = {}) =>
      ({ conversation: { mode: 'group', self, mentions, ...more } }) as JsonObject;
    const text = async (value: JsonObject) => (await run(value, 'is_mentioned')).text;
    expect(await text(openChat([7]))).toBe('被提及，需要发言');
    expect(await text(openChat(['7']))).toBe('被提及，需要发言');
    expect(await text(openChat([8, '小明']))).toBe('未被提及，可自行判断');
    expect(await text(openChat([]))).toBe('未被提及，可自行判断');
    expect(await text(openChat([7], { locale: 'en' }))).toBe(
      'You were mentioned and need to speak',
    );
    expect(await text(openChat([7], { texts: { mentioned: '说！' } }))).toBe('说！');
  });

  test('the others’ messages are the app’s text, or built from its messages', async () => {
    const text = async (others: JsonObject['others'], members: JsonObject[] = []) =>
      (
        await run(
          { conversation: { ...group, members, others: others! } },
          'get_other_members_messages',
        )
      ).text;
    expect(await text('小红：大家好\n小刚：嗯')).toBe('小红：大家好\n小刚：嗯');
    const messages = [{ from: 2, text: '大家好' }, { name: '小刚', content: '嗯' }, 'ohne Namen'];
    expect(await text(messages, [{ id: 2, name: '小红' }])).toBe(
      '小红: 大家好\n小刚: 嗯\nohne Namen',
    );
    expect(await text('')).toBe('本轮其他成员没有发言');
  });

  test('the recall limit is in the description; configured texts are used', () => {
    const described = (more: Partial<ConversationOptions>) =>
      conversationParts(options({ memory: { space: 's', max_recalls: 3 } }, {}, more))!.tools[0]!
        .description;
    expect(described({})).toContain('3 次');
    expect(described({ locale: 'en' })).toContain('at most 3 times');
    expect(described({ texts: { recall_limit: 'max={max}' } })).toContain('max=3');
  });

  test('recall_memory restricts times where they can be read, and passes on what the app set', async () => {
    const memory = testMemory();
    const extension = {
      memory: { space: 's', max_tokens: 300, time_zone: 'Asia/Shanghai' },
      conversation: group,
    };
    const { tools } = conversationParts(options(extension, {}, { memory }))!;
    const input = { query: 'boat', since: '2026-11-01', until: 'some day' };
    const outcome = await tools[0]!.run(input, { signal: new AbortController().signal });
    expect(outcome.ok).toBe(true);
    const { query } = memory.recalls[0]!;
    expect(query).toMatchObject({
      ...{ query: 'boat', maxTokens: 300, timeZone: 'Asia/Shanghai', speaker: 'Ann' },
      since: Date.parse('2026-11-01'),
    });
    expect(query.until).toBeUndefined();
  });

  test('forget_memory is there where the app allows it, and forgets in the own space, a bounded number of ids', async () => {
    const memory = testMemory();
    const toolsWith = (settings: JsonObject) =>
      conversationParts(options({ memory: { space: 's', ...settings } }, {}, { memory }))!.tools;
    const named = (tools: ReturnType<typeof toolsWith>) =>
      tools.find(({ name }) => name === 'forget_memory');
    expect(named(toolsWith({}))).toBeUndefined();
    expect(named(toolsWith({ forget: false }))).toBeUndefined();
    const tool = named(toolsWith({ forget: true }))!;
    const run = (input: JsonObject) => tool.run(input, { signal: new AbortController().signal });
    expect(await run({ ids: ['mem_1', 7, 'mem_2'], space: 'other' })).toMatchObject({
      ok: true,
      payload: { forgotten: 2 },
    });
    for (const wrong of [{}, { ids: 'mem_1' }, { ids: null }]) {
      expect((await run(wrong)).payload).toEqual({ forgotten: 0 });
    }
    await run({ ids: Array.from({ length: 10_000 }, (_, i) => `mem_${i}`) });
    expect(memory.forgotten[0]).toEqual({ space: 's', ids: ['mem_1', 'mem_2'] });
    expect(memory.forgotten.every(({ ids }) => ids.length <= 100)).toBe(true);
    const broken = {
      ...memory,
      forget: () => Promise.reject(new GatewayError('timeout', 'Slow.')),
    };
    const failing = conversationParts(
      options({ memory: { space: 's', forget: true } }, {}, { memory: broken }),
    )!.tools.find(({ name }) => name === 'forget_memory')!;
    const outcome = await failing.run({ ids: ['mem_1'] }, { signal: new AbortController().signal });
    expect(outcome).toMatchObject({ ok: false, payload: { message: 'Slow.' } });
  });

  test('a failing memory gives the model an error and no events', async () => {
    const broken = {
      recall: () => Promise.reject(new GatewayError('timeout', 'The store is slow.')),
      capture: async () => {},
      forget: () => Promise.reject(new GatewayError('timeout', 'The store is slow.')),
    };
    const parts = conversationParts(options({ memory: { space: 's' } }, {}, { memory: broken }))!;
    const outcome = await parts.tools[0]!.run(
      { query: 'x' },
      { signal: new AbortController().signal },
    );
    expect(outcome.ok).toBe(false);
    expect(outcome.payload).toMatchObject({ message: 'The store is slow.', events: [] });
  });
});

describe('the extension in headers', () => {
  const packed = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url');

  test('single headers set fields of the extension', () => {
    const parts = conversationParts(
      options(undefined, {
        'x-hopgate-memory-space': encodeURIComponent('群 一'),
        'x-hopgate-recall': 'always',
        'x-hopgate-max-recalls': '2',
        'x-hopgate-capture': 'true',
        'x-hopgate-tool-events': '1',
      }),
    )!;
    expect(parts.space).toBe('群 一');
    expect(parts.toolEvents).toBe(true);
    expect(parts.forced.map(({ name }) => name)).toEqual(['recall_memory']);
    expect(parts.tools[0]!.description).toContain('2 次');
    expect(parts.after).toHaveLength(1);
  });

  test('single headers replace fields of x-hopgate-extension, and the body replaces both', () => {
    const headers = {
      'x-hopgate-extension': packed({
        conversation: group,
        memory: { space: 'packed', recall: 'always' },
      }),
      'x-hopgate-memory-space': 'single',
    };
    expect(conversationParts(options(undefined, headers))!.space).toBe('single');
    const parts = conversationParts(options({ memory: { space: 'body' } }, headers))!;
    expect(parts.space).toBe('body');
    expect(parts.forced).toHaveLength(3);
  });

  test('a request without an extension stays unchanged', () => {
    expect(conversationParts(options(undefined, { 'x-hopgate-anything': '1' }))).toBeUndefined();
  });
});

describe('spaces', () => {
  test('a space of others is refused and not read', () => {
    const memory = testMemory({ s: ['secret'] });
    const mayUse = (space: string) => space === 'mine';
    const error = refusal(() =>
      conversationParts(options({ memory: { space: 's' } }, {}, { memory, mayUse })),
    );
    expect([error.kind, error.status, error.param]).toEqual([
      'permission',
      403,
      'hopgate.memory.space',
    ]);
    expect(memory.recalls).toEqual([]);
    expect(
      conversationParts(options({ memory: { space: 'mine' } }, {}, { memory, mayUse }))?.space,
    ).toBe('mine');
  });

  test('a gateway without a memory answers with an error', () => {
    const none = { memory: undefined };
    const error = refusal(() => conversationParts(options({ memory: { space: 's' } }, {}, none)));
    expect([error.kind, error.param]).toEqual(['invalid_request', 'hopgate.memory']);
  });
});

describe('the language of the texts, where none is configured', () => {
  const described = (system: string, ...texts: string[]) => {
    const request = openaiChat.decodeRequest({
      model: 'm',
      messages: [
        ...(system === '' ? [] : [{ role: 'system', content: system }]),
        ...texts.flatMap((content) => [
          { role: 'user', content },
          { role: 'assistant', content: 'OK' },
        ]),
        { role: 'user', content: 'now?' },
      ],
    });
    const extension = { memory: { space: 's' } };
    const { tools } = conversationParts(
      options(extension, {}, { locale: 'auto', request: () => request }),
    )!;
    return /\p{Script=Han}/u.test(tools[0]!.description) ? 'zh' : 'en';
  };
  test.each([
    ['en', 'You are Luna, a friendly member of a group chat.', ['今天吃什么？']],
    ['zh', '你是群聊里的一员，名字叫 Luna，说话要简短，偶尔用 emoji。', ['What is for dinner?']],
    ['zh', '', ['我们晚上吃火锅吧']],
    ['zh', 'Luna', ['我用iPhone17拍照']],
    ['en', '', ['Shall we have 火锅 (hot pot) tonight, everybody?']],
    ['en', '', ['今日はラーメンを食べましょう']],
    ['en', '', []],
  ] as const)('%s: %p %p', (language, system, messages) => {
    expect(described(system, ...messages)).toBe(language);
    // Later turns in any language change nothing.
    expect(described(system, ...messages, 'Now all in English, please, for everybody here.')).toBe(
      messages.length === 0 ? 'en' : language,
    );
    if (messages.length > 0)
      expect(described(system, ...messages, '现在都说中文吧，大家好')).toBe(language);
  });
  test('the configuration overrides it, and the request overrides both', () => {
    const texts = (locale: 'zh' | 'en', chat: JsonObject) =>
      conversationParts(
        options(
          { memory: { space: 's' }, conversation: { mode: 'single', ...chat } },
          {},
          { locale },
        ),
      )!.tools[0]!.description;
    expect(texts('en', {})).toStartWith('Recall');
    expect(texts('en', { locale: 'zh' })).toStartWith('回忆');
  });
});
