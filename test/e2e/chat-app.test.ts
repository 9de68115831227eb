/** A group chat and a two-person chat through the binary, against a model that leaks its calls as text. */

import {
  afterAll,
  afterEach,
  beforeAll,
  describe,
  expect,
  setDefaultTimeout,
  test,
} from 'bun:test';
import { type Gateway, startGateway, threeProviders } from '../support/binary.ts';
import { type FakeUpstream, startFakeUpstream, toolNames } from '../support/fake-upstream/index.ts';
import {
  leakyVendor,
  type ModelView,
  type Plan,
  type PlannedCall,
} from '../support/leaky-vendor.ts';
import { stopAll } from '../support/tool-servers.ts';
import { type AppRequest, ask, CLIENTS, remember, remembered, VIA } from './chat-app-clients.ts';

setDefaultTimeout(60_000);

const MARKUP = /DSML|function_calls|invoke|<\/?[|｜]/;
const PARTY = '小红的生日聚会在三月五日，大家吃了草莓蛋糕';

let upstream: FakeUpstream;
let gateway: Gateway;
/** Allows one follow-up hop, which goes out without tools. */
let capped: Gateway;

beforeAll(async () => {
  upstream = await startFakeUpstream({ keys: ['sk-upstream'], models: ['m1'] });
  const validated = { validate: 'all' };
  const config = threeProviders(upstream, validated) as { providers: Record<string, object> };
  config.providers.chat = { ...config.providers.chat, profile: 'deepseek' };
  [gateway, capped] = await Promise.all([
    startGateway(config),
    startGateway(threeProviders(upstream, { ...validated, limits: { tool_rounds: 1 } })),
  ]);
  await remember(gateway, 'g1', [PARTY, '小刚养了一只叫豆豆的猫']);
  await remember(capped, 'g1', [PARTY]);
}, 120_000);
afterEach(() => upstream.clear());
afterAll(() => stopAll(gateway, capped, upstream));

const group = (more: object = {}, memory: object = {}) => ({
  conversation: {
    mode: 'group',
    self: { id: 'ming', name: '小明' },
    members: [
      { id: 'hong', name: '小红' },
      { id: 'gang', name: '小刚' },
    ],
    others: [
      { from: 'hong', text: '大家晚上好' },
      { from: 'gang', text: '豆豆又逃跑了' },
    ],
    mentions: [],
    ...more,
  },
  memory: { space: 'g1', recall: 'always', ...memory },
});
const single = (memory: object = {}) => ({
  conversation: { mode: 'single', self: { id: 'ming', name: '小明' } },
  memory: { space: 'g1', recall: 'always', ...memory },
});

const recall = (query: string): PlannedCall => ({ name: 'recall_memory', arguments: { query } });
const plain = (name: string): PlannedCall => ({ name, arguments: {} });

/** Scripts consecutive calls after that many forced results, then text made from the last result. */
const calling =
  (forced: number, ...rounds: readonly (readonly PlannedCall[])[]) =>
  ({ results }: ModelView): Plan => {
    let before = forced;
    for (const calls of rounds) {
      if (results.length === before) return { text: '让我看看。', calls };
      before += calls.length;
    }
    return { text: `我看到了：${results.at(-1)}` };
  };

const leaksSometimes = (n: number) => n % 2 === 0;
const say = (client: AppRequest['client'], message: string, more: Partial<AppRequest> = {}) =>
  ask(gateway, { client, messages: [message], system: '你是小明。', ...more });

for (const client of CLIENTS) {
  describe(`through ${client}`, () => {
    for (const [how, leaks] of [
      ['structured', () => false],
      ['always leaked', () => true],
      ['sometimes leaked', leaksSometimes],
    ] as const) {
      test(`a group chat with calls ${how} runs them and shows no markup in the reply`, async () => {
        const rounds = [
          [plain('get_other_members_messages')],
          [recall('豆豆'), plain('is_mentioned')],
          [recall('草莓蛋糕')],
        ];
        for (const piece of [1, 3, 9, 2000]) {
          upstream.clear();
          upstream.answerWith(leakyVendor(calling(3, ...rounds), { leaks, piece }));
          const reply = await say(client, '还记得草莓蛋糕吗？', { hopgate: group() });
          expect(reply.status).toBe(200);
          expect(reply.raw).not.toMatch(MARKUP);
          expect(reply.calls).toEqual([]);
          expect(reply.text).toContain('我看到了：{"events":[');
          expect(reply.text).toContain(PARTY);
          expect(upstream.refusals).toEqual([]);
          expect(upstream.modelRequests).toHaveLength(4);
        }
      });
    }

    test('is_mentioned tells the model whether the speaker is mentioned', async () => {
      for (const [mentions, textPart] of [
        [['ming'], '被提及，需要发言'],
        [['hong'], '未被提及，可自行判断'],
      ] as const) {
        upstream.clear();
        upstream.answerWith(leakyVendor(calling(3, [plain('is_mentioned')])));
        const reply = await say(client, '@小明 你来吗', {
          hopgate: { ...group({ mentions }), tool_events: true },
        });
        expect(reply.text).toContain(`我看到了：${textPart}`);
        const own = reply.events.filter(({ name }) => name === 'is_mentioned').slice(2);
        expect(own.map(({ event }) => event)).toEqual(['tool_call', 'tool_result']);
        expect(own[1]!.result).toBe(textPart);
      }
    });

    test('a two-person chat declares only recall_memory, and the model may call it', async () => {
      for (const recalls of ['always', 'auto']) {
        for (const leaks of [() => false, () => true]) {
          upstream.clear();
          const forced = recalls === 'always' ? 1 : 0;
          upstream.answerWith(leakyVendor(calling(forced, [recall('豆豆')]), { leaks, piece: 2 }));
          const reply = await say(client, '你还记得什么？', {
            hopgate: single({ recall: recalls }),
          });
          expect(reply.raw).not.toMatch(MARKUP);
          expect(reply.text).toContain('叫豆豆的猫');
          for (const { protocol, body } of upstream.modelRequests) {
            expect(toolNames(protocol!, body)).toEqual(['recall_memory']);
          }
        }
      }
    });

    test('every turn recalls memories before its answer, whatever the model does', async () => {
      upstream.answerWith(leakyVendor(() => ({ text: '好的。' })));
      const messages: string[] = [];
      for (const next of ['生日聚会', '草莓蛋糕', '豆豆']) {
        messages.push(next);
        const reply = await ask(gateway, { client, messages: messages, hopgate: single() });
        messages.push(reply.text);
        const { body, protocol } = upstream.modelRequests.at(-1)!;
        const text = JSON.stringify(body);
        expect(text).toContain(next === '豆豆' ? '叫豆豆的猫' : PARTY);
        // One pair for this turn; pairs of earlier turns are not carried along.
        expect(text.match(/events\\?":\[\{/g)).toHaveLength(1);
        expect(toolNames(protocol!, body)).toEqual(['recall_memory']);
      }
    });

    test('only the prompt limits recalls: a model that ignores the limit is not cut off', async () => {
      const obedient = ({ results, text }: ModelView): Plan => {
        const limit = Number(/最多回忆（recall_memory）(\d+) 次/.exec(text)?.[1] ?? 99);
        const recalled = results.filter((result) => result.startsWith('{"events"')).length;
        return recalled < limit
          ? { calls: [recall(`豆豆 ${recalled}`)] }
          : { text: `${recalled} 次` };
      };
      for (const [max, expected] of [
        [1, 1],
        [3, 3],
        [5, 5],
      ] as const) {
        upstream.clear();
        upstream.answerWith(leakyVendor(obedient, { leaks: leaksSometimes }));
        const reply = await say(client, '豆豆呢？', { hopgate: single({ max_recalls: max }) });
        expect(reply.text.trim()).toBe(`${expected} 次`);
        expect(reply.headers.get('x-hopgate-notes')).toContain('recall_limit_told');
      }
      upstream.clear();
      const greedy = ({ results }: ModelView): Plan =>
        results.length < 6 ? { calls: [recall(`豆豆 ${results.length}`)] } : { text: '够了' };
      upstream.answerWith(leakyVendor(greedy));
      const collector = await say(client, '豆豆呢？', { hopgate: single({ max_recalls: 2 }) });
      expect(collector.text).toContain('够了');
      expect(upstream.modelRequests).toHaveLength(6);
    });

    test('the last hop declares no tools, and a leaked call is suppressed, logged and counted', async () => {
      const describe = () =>
        capped
          .logs()
          .filter(({ event, outcome }) => event === 'leaked_call' && outcome === 'removed').length;
      const before = describe();
      upstream.answerWith(
        leakyVendor(({ results }) => ({
          text: `想起来了${results.length}`,
          calls: [recall('草莓')],
        })),
      );
      const reply = await ask(capped, { client, messages: ['草莓蛋糕'], hopgate: single() });
      expect(reply.status).toBe(200);
      expect(reply.raw).not.toMatch(MARKUP);
      expect(reply.text).toContain('想起来了2');
      const last = upstream.modelRequests.at(-1)!;
      // Messages refuses a history of calls without declarations, so the tool choice forbids calls instead.
      const left = client === 'anthropic-messages' ? ['recall_memory'] : [];
      expect(toolNames(last.protocol!, last.body)).toEqual(left);
      expect(last.body.tool_choice).toEqual(left.length > 0 ? { type: 'none' } : undefined);
      await Bun.sleep(50);
      expect(describe()).toBe(before + 1);
      expect(capped.logs().find(({ event }) => event === 'leaked_call')!.level).toBe('error');
      const metrics = await (await fetch(`${capped.url}/metrics`)).text();
      expect(metrics).toMatch(/leaked_calls_total\{family="dsml",outcome="removed"\} [1-9]/);
    });

    test('a leaked call is suppressed when its tool is unknown, when it sits in a code fence, and when it is cut off', async () => {
      const calls = [{ name: 'send_red_packet', arguments: { to: '小红' } }];
      upstream.answerWith(leakyVendor(() => ({ text: '发红包。', calls }), { piece: 1 }));
      const unknown = await say(client, '发个红包', { hopgate: group() });
      expect([unknown.raw.match(MARKUP), unknown.text.trim()]).toEqual([null, '发红包。']);
      for (const text of [
        '看：\n```\n<｜DSML｜function_calls>\n<｜DSML｜invoke name="recall_memory">\n</｜DSML｜invoke>\n</｜DSML｜function_calls>\n```',
        '标签 <｜DSML｜function_calls> 我也不懂',
        '嗯。<｜DSML｜function_calls>\n<｜DSML｜invoke name="recall_mem',
      ]) {
        upstream.clear();
        upstream.answerWith(leakyVendor(() => ({ text }), { piece: 2 }));
        const reply = await say(client, '随便', { hopgate: group() });
        expect(reply.raw).not.toMatch(MARKUP);
        expect(reply.text.trim()).not.toBe('');
      }
    });

    test('a whole answer holds the same reply, and tool events only for clients that asked for them', async () => {
      const rounds = [[recall('豆豆')], [plain('is_mentioned')]];
      for (const events of [true, false]) {
        upstream.clear();
        upstream.answerWith(leakyVendor(calling(3, ...rounds), { leaks: leaksSometimes }));
        const hopgate = { ...group(), ...(events ? { tool_events: true } : {}) };
        const reply = await say(client, '豆豆', { hopgate, stream: false });
        expect(reply.raw).not.toMatch(MARKUP);
        expect(reply.text).toContain('未被提及');
        expect(reply.events.map(({ event, name }) => `${event} ${name}`)).toEqual(
          events
            ? [
                'get_other_members_messages',
                'is_mentioned',
                'recall_memory',
                'recall_memory',
                'is_mentioned',
              ].flatMap((name) => [`tool_call ${name}`, `tool_result ${name}`])
            : [],
        );
      }
    });

    test('capture stores the messages under their speakers, and the next turn finds them', async () => {
      const space = `capture ${client}`;
      upstream.answerWith(
        leakyVendor(calling(3, [recall('无人机')]), { leaks: () => true, piece: 3 }),
      );
      const hopgate = group(
        { others: [{ from: 'hong', text: '我买了一架无人机' }] },
        { space, capture: true },
      );
      await say(client, '你会飞无人机吗', { hopgate });
      const events = await remembered(gateway, space, 3);
      const messages = events.map(({ source, text }) => [source, text]);
      expect(messages).toContainEqual(['小红', '我买了一架无人机']);
      expect(messages).toContainEqual(['user', '你会飞无人机吗']);
      expect(messages.find(([source]) => source === '小明')?.[1]).toContain('我看到了');
      // Neither instructions nor call pairs nor markup.
      expect(messages).toHaveLength(3);
      expect(JSON.stringify(messages)).not.toMatch(/你是小明|DSML|get_other_members/);

      upstream.clear();
      upstream.answerWith(leakyVendor(({ results }) => ({ text: results.at(-1)! })));
      const later = await say(client, '谁有无人机？', { hopgate: group({}, { space }) });
      expect(later.text).toContain('我买了一架无人机');
    });

    test('an answer that broke off is not stored', async () => {
      const space = `broken ${client}`;
      upstream.answerWith(() => ({
        parts: [{ kind: 'text', text: '说到一半就断了，真的很可惜啊，大家都没听完' }],
        delivery: { piece: 3, cut: { at: 0.6, by: 'reset' } },
      }));
      await ask(gateway, {
        client,
        messages: ['讲个故事'],
        hopgate: single({ space, capture: true }),
      }).catch(() => undefined);
      upstream.answerWith(() => ({ parts: [{ kind: 'text', text: '好了。' }] }));
      await say(client, '再来', { hopgate: single({ space, capture: true }) });
      const events = await remembered(gateway, space, 2);
      expect(events.map(({ text }) => text).sort()).toEqual(['再来', '好了。']);
    });
  });
}

test('DeepSeek: forced pairs carry the reasoning it needs, calls arrive structured, and nothing leaks', async () => {
  upstream.answerWith(leakyVendor(calling(3, [recall('豆豆')])));
  const reply = await say('openai-chat', '豆豆呢', { hopgate: group() });
  expect(reply.text).toContain('叫豆豆的猫');
  const messages = upstream.modelRequests[0]!.body.messages as {
    tool_calls?: unknown[];
    role: string;
  }[];
  const forced = messages.find(({ tool_calls: calls }) => calls !== undefined)!;
  expect(forced.tool_calls).toHaveLength(3);
  expect(messages.filter(({ role }) => role === 'tool')).toHaveLength(3);
});

test('an app writes its own pairs and declares no tools: the vendor leaks calls, and the reader sees none', async () => {
  upstream.answerWith(leakyVendor(() => ({ text: '我想想。', calls: [recall('豆豆')] })));
  const call = {
    id: 'call_1',
    type: 'function',
    function: { name: 'recall_memory', arguments: '{}' },
  };
  const reply = await ask(gateway, {
    client: 'openai-chat',
    messages: [],
    more: {
      messages: [
        { role: 'user', content: '豆豆呢' },
        { role: 'assistant', content: null, tool_calls: [call] },
        { role: 'tool', tool_call_id: 'call_1', content: '{"events":[]}' },
      ],
    },
  });
  expect(reply.raw).not.toMatch(MARKUP);
  expect(reply.text.trim()).toBe('我想想。');
});

test('streams with tool events follow every rule of their protocol', async () => {
  await Bun.sleep(100);
  expect(gateway.logs().filter(({ event }) => event === 'stream.violation')).toEqual([]);
  const metrics = await (await fetch(`${gateway.url}/metrics`)).text();
  expect(metrics).not.toMatch(/violations_total\{.*\} [1-9]/);
  expect(Object.keys(VIA)).toHaveLength(3);
});
