/** Forced recall: the call pairs precede the model's turn, in a valid form on every wire. */

import { describe, expect, test } from 'bun:test';
import { LINT } from '../../../src/app/linters.ts';
import { Notes } from '../../../src/conversation/notes.ts';
import type { Block, Turn } from '../../../src/conversation/types.ts';
import { toolPairing } from '../../../src/features/tool-pairing/index.ts';
import type { Json, JsonObject } from '../../../src/lib/json/json.ts';
import { PROTOCOLS } from '../../gateway/scripted.ts';
import type { SuiteProtocol as ProtocolName } from '../../support/suite-protocols.ts';
import { until } from '../../support/until.ts';
import { ALL, asking, chat, vendor } from './chat.ts';
import { testMemory } from './memory.ts';

const GROUP = {
  conversation: {
    mode: 'group',
    self: { id: 'ming', name: '小明' },
    members: [{ id: 'hong', name: '小红' }],
    others: [{ from: 'hong', text: '大家晚上好' }],
    mentions: ['ming'],
  },
  memory: { space: 'g', recall: 'always' },
};
const SINGLE = { memory: { space: 'g', recall: 'always' } };
const REMEMBERED = '小红的生日聚会在三月';
const remembering = () => testMemory({ g: [REMEMBERED], other: ['别的群的秘密生日'] });

const decoded = (protocol: ProtocolName, body: JsonObject) =>
  PROTOCOLS[protocol].decodeRequest({ ...body, max_tokens: 100 });

/** Calls with their results, in the order of the calls. */
function pairsOf(turns: readonly Turn[]) {
  const blocks = turns.flatMap((turn) => turn.blocks);
  return blocks.flatMap((block) => {
    if (block.type !== 'tool-call') return [];
    const result = blocks.find((one) => one.type === 'tool-result' && one.callId === block.id);
    const text = result?.type === 'tool-result' ? textOf(result.content) : undefined;
    return [{ name: block.name, input: JSON.parse(block.input) as Json, result: text }];
  });
}
const textOf = (blocks: readonly Block[]) =>
  blocks.map((block) => (block.type === 'text' ? block.text : '')).join('');

for (const client of ALL) {
  for (const upstream of ALL) {
    for (const stream of [true, false]) {
      const how = `${client} → ${upstream}, ${stream ? 'streamed' : 'whole'}`;
      test(`${how}: three valid pairs after the user’s text, without repairs`, async () => {
        const response = await chat({
          client,
          upstream,
          body: asking(client, ['早上好', '早', '还记得生日聚会吗'], { stream }),
          hopgate: GROUP,
          memory: remembering(),
          script: [vendor(upstream, [{ text: '当然记得。' }], { stream })],
        });
        expect(response.status).toBe(200);
        expect(response.sent).toHaveLength(1);
        const body = response.sent[0]!;
        expect(LINT.linters[upstream].request(body)).toEqual([]);
        const { turns, tools } = decoded(upstream, body);
        expect(pairsOf(turns)).toEqual([
          { name: 'get_other_members_messages', input: {}, result: '小红: 大家晚上好' },
          { name: 'is_mentioned', input: {}, result: '被提及，需要发言' },
          {
            name: 'recall_memory',
            input: { query: '还记得生日聚会吗' },
            result: expect.stringMatching(/^\{"events":\[.*小红的生日聚会在三月.*\]\}$/) as string,
          },
        ]);
        // After the last message, before nothing else.
        const position = turns.findLastIndex(({ blocks }) =>
          blocks.some(({ type }) => type === 'text'),
        );
        const first = turns.findIndex(({ blocks }) =>
          blocks.some(({ type }) => type === 'tool-call'),
        );
        expect(textOf(turns[position]!.blocks)).toBe('还记得生日聚会吗');
        expect(first).toBe(position + 1);
        expect(tools.map((tool) => tool.type === 'function' && tool.name)).toEqual([
          'recall_memory',
          'get_other_members_messages',
          'is_mentioned',
        ]);
        // The validators find nothing to repair, here and on a repeated request.
        expect(response.notes.filter((name) => /repair|orphan|relocat|strip/.test(name))).toEqual(
          [],
        );
        expect(response.notes.filter((name) => name === 'tool_call_forced')).toHaveLength(3);
        const target = {
          provider: 'up',
          model: 'm',
          protocol: upstream,
          profile: { name: 'none' },
        };
        const again = decoded(upstream, body);
        const context = { target, client, notes: new Notes(), hop: 1 };
        expect(toolPairing.request!(again, context)).toBe(again);
        // Clients that did not ask for tool events see none.
        expect(response.text).not.toMatch(/recall_memory|is_mentioned|hopgate/);
        expect(response.runs.map(({ name, hop }) => [name, hop])).toEqual([
          ['get_other_members_messages', undefined],
          ['is_mentioned', undefined],
          ['recall_memory', undefined],
        ]);
      });
    }
  }
}

describe('the position of the pair', () => {
  const roles = (body: JsonObject) =>
    (body.messages as JsonObject[]).map(({ role, tool_calls: calls, content }) =>
      calls === undefined
        ? [role, typeof content === 'string' ? content.slice(0, 4) : '']
        : 'calls',
    );
  const sentFor = async (messages: JsonObject[], hopgate: JsonObject = SINGLE) =>
    (
      await chat({
        client: 'openai-chat',
        body: { messages, tools: [OWN] },
        hopgate,
        memory: remembering(),
        script: [vendor('openai-chat', [{ text: '好' }], { stream: false })],
      })
    ).sent[0]!;
  const OWN = { type: 'function', function: { name: 'roll', parameters: { type: 'object' } } };
  const user = { role: 'user', content: '生日聚会' };

  test('after instructions that the app puts last', async () => {
    const last = { role: 'system', content: '现在轮到你' };
    expect(roles(await sentFor([user, last]))).toEqual([
      ['user', '生日聚会'],
      ['system', '现在轮到'],
      'calls',
      ['tool', '{"ev'],
    ]);
  });

  test('before a prefill', async () => {
    const prefill = { role: 'assistant', content: '我记得' };
    expect(roles(await sentFor([user, prefill]))).toEqual([
      ['user', '生日聚会'],
      'calls',
      ['tool', '{"ev'],
      ['assistant', '我记得'],
    ]);
  });

  test('in a turn that continues with the client’s own calls: in the same place, under the same id', async () => {
    const before = await sentFor([user]);
    const call = { id: 'call_x', type: 'function', function: { name: 'roll', arguments: '{}' } };
    const after = await sentFor([
      user,
      { role: 'assistant', content: null, tool_calls: [call] },
      { role: 'tool', tool_call_id: 'call_x', content: '6' },
    ]);
    const { messages: first } = before as { messages: JsonObject[] };
    const { messages: second } = after as { messages: JsonObject[] };
    // Word for word, so that a vendor's prompt cache matches.
    expect(second.slice(0, first.length)).toEqual(first);
    expect(after.tools).toEqual(before.tools!);
    expect(roles(after).slice(-2)).toEqual(['calls', ['tool', '6']]);
  });

  test('the query is all that the user said since the model last spoke', async () => {
    const memory = remembering();
    await chat({
      client: 'openai-chat',
      body: {
        messages: [
          { role: 'user', content: '以前' },
          { role: 'assistant', content: '嗯' },
          { role: 'user', content: '小红：生日' },
          { role: 'user', content: '小刚：聚会' },
        ],
      },
      hopgate: SINGLE,
      memory,
      script: [vendor('openai-chat', [{ text: '好' }], { stream: false })],
    });
    expect(memory.recalls).toEqual([
      { space: 'g', query: expect.objectContaining({ query: '小红：生日\n小刚：聚会', limit: 8 }) },
    ] as never);
  });

  test('with separate messages of the others, only the last message belongs to the turn; theirs keep their times', async () => {
    const memory = remembering();
    const others = [{ from: 'hong', text: '大家晚上好', time: '2026-11-20T19:00:00+08:00' }];
    await chat({
      client: 'openai-chat',
      body: {
        messages: [
          { role: 'user', content: '以前' },
          { role: 'assistant', content: '嗯' },
          { role: 'user', content: '小刚：上一轮的话' },
          { role: 'user', content: '生日聚会' },
        ],
      },
      hopgate: {
        conversation: { ...GROUP.conversation, others },
        memory: { ...GROUP.memory, capture: true },
      },
      memory,
      script: [vendor('openai-chat', [{ text: '好' }], { stream: false })],
    });
    expect(memory.recalls[0]!.query.query).toBe('生日聚会');
    await until(() => memory.captured.length > 0);
    expect(memory.captured[0]!.events[0]!.time).toBe(Date.UTC(2026, 10, 20, 11));
    expect(memory.captured[0]!.events.map(({ source, text }) => [source, text])).toEqual([
      ['小红', '大家晚上好'],
      ['user', '生日聚会'],
      ['小明', '好'],
    ]);
  });

  test('without a user message the query is the others’ messages', async () => {
    const memory = remembering();
    await chat({
      client: 'openai-chat',
      body: { messages: [{ role: 'system', content: '你是小明' }] },
      hopgate: GROUP,
      memory,
      script: [vendor('openai-chat', [{ text: '好' }], { stream: false })],
    });
    expect(memory.recalls[0]!.query.query).toBe('小红: 大家晚上好');
  });
});

test('a failed try is repeated with the same pair, made once', async () => {
  const response = await chat({
    client: 'openai-chat',
    body: asking('openai-chat', ['生日聚会']),
    hopgate: { ...GROUP, tool_events: true },
    memory: remembering(),
    script: [
      { json: { error: { message: 'busy' } }, status: 503 },
      vendor('openai-chat', [{ text: '好' }]),
    ],
  });
  expect(response.sent).toHaveLength(2);
  expect(response.sent[1]).toEqual(response.sent[0]!);
  expect(response.runs).toHaveLength(3);
  expect(response.text.match(/"event":"tool_call"/g)).toHaveLength(3);
});

test('a thinking budget cannot be combined with a forced call on Messages: it is removed with a note', async () => {
  const thinking = { type: 'enabled', budget_tokens: 1024 };
  const ask = (recall: string) =>
    chat({
      client: 'anthropic-messages',
      body: { ...asking('anthropic-messages', ['生日聚会']), max_tokens: 2000, thinking },
      hopgate: { memory: { space: 'g', recall } },
      memory: remembering(),
      script: [vendor('anthropic-messages', [{ text: '好' }])],
    });
  const forced = await ask('always');
  expect(forced.sent[0]!.thinking).toEqual({ type: 'disabled' });
  expect(LINT.linters['anthropic-messages'].request(forced.sent[0]!)).toEqual([]);
  expect(forced.notes).toContain('thinking_disabled');
  expect((await ask('auto')).sent[0]!.thinking).toEqual(thinking);
});

describe('client settings', () => {
  const body = (more: JsonObject) => ({
    ...asking('openai-chat', ['生日聚会'], { stream: false }),
    ...more,
  });
  const go = (more: JsonObject, hopgate: JsonObject = SINGLE, rounds?: number) =>
    chat({
      client: 'openai-chat',
      body: body(more),
      hopgate,
      memory: remembering(),
      script: [vendor('openai-chat', [{ text: '好' }], { stream: false })],
      ...(rounds === undefined ? {} : { rounds }),
    });

  test('a client’s own tool of the same name stays its own and is not run here', async () => {
    const own = {
      type: 'function',
      function: { name: 'recall_memory', description: 'mine', parameters: { type: 'object' } },
    };
    const response = await go({ tools: [own] }, { memory: { ...SINGLE.memory, max_recalls: 2 } });
    expect(response.sent[0]!.tools).toEqual([own]);
    expect(JSON.stringify(response.sent[0])).not.toContain('tool_calls');
    expect(response.notes).toEqual(['conversation_tool_left_to_client']);
  });

  test('tool_choice none: the pair and its tool are sent, so that no call leaks as text', async () => {
    const own = { type: 'function', function: { name: 'roll', parameters: { type: 'object' } } };
    const response = await go({ tools: [own], tool_choice: 'none' });
    expect(response.sent[0]!.tool_choice).toBe('none');
    expect((response.sent[0]!.tools as JsonObject[]).length).toBe(2);
    expect(JSON.stringify(response.sent[0])).toContain('"role":"tool"');
  });

  test('a forced choice of the client does not count as made', async () => {
    const own = { type: 'function', function: { name: 'roll', parameters: { type: 'object' } } };
    const response = await go({ tools: [own], tool_choice: 'required' });
    expect(response.sent[0]!.tool_choice).toBe('required');
  });

  test('auto: tools only; off: only the conversation’s own tools', async () => {
    const auto = await go({}, { memory: { space: 'g', recall: 'auto' } });
    expect((auto.sent[0]!.messages as Json[]).length).toBe(2);
    expect((auto.sent[0]!.tools as Json[]).length).toBe(1);
    const off = await go({}, { memory: { space: 'g', recall: 'off' } });
    expect(off.sent[0]!.tools).toBeUndefined();
    expect(off.notes).toEqual([]);
  });

  test('without any rounds the pair is still sent', async () => {
    const response = await go({}, SINGLE, 0);
    expect(response.sent[0]!.tools).toBeUndefined();
    expect(JSON.stringify(response.sent[0])).toContain(REMEMBERED);
  });

  test('no other space is searched', async () => {
    const response = await go({}, SINGLE);
    expect(JSON.stringify(response.sent)).not.toContain('别的群');
  });

  for (const client of ALL) {
    test(`${client}: max_recalls appears once in the instructions and once in the tool`, async () => {
      const response = await chat({
        client,
        body: asking(client, ['生日聚会']),
        hopgate: { memory: { ...SINGLE.memory, max_recalls: 3 } },
        memory: remembering(),
        script: [
          vendor(client, [{ call: 'recall_memory', args: { query: '三月' } }]),
          vendor(client, [{ text: '好' }]),
        ],
      });
      expect(response.sent).toHaveLength(2);
      for (const body of response.sent) {
        const { system, turns, tools } = decoded(client, body);
        const lead = textOf([
          ...system,
          ...turns.flatMap((turn) => (turn.role === 'system' ? turn.blocks : [])),
        ]);
        expect(lead.startsWith('你是小明。')).toBe(true);
        expect(lead.match(/最多回忆（recall_memory）3 次/g)).toHaveLength(1);
        expect(tools[0]?.type === 'function' && tools[0].description).toContain('3 次');
      }
      expect(response.notes.filter((name) => name === 'recall_limit_told')).toHaveLength(1);
      // Each request starts with the previous one.
      const [first, second] = response.sent.map((body) => decoded(client, body));
      expect(second!.turns.slice(0, first!.turns.length)).toEqual(first!.turns as never);
    });
  }
});
