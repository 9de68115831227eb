/** Situations that operators met with GLM, Copilot and Anthropic in one session, and the expected repair of each. */

import { describe, expect, test } from 'bun:test';
import type { Json, JsonObject } from '../../../src/lib/json/json.ts';
import { messagesComplaint } from './complaints.ts';
import { genuineSignature, Random } from './histories.ts';
import { type Repaired, run } from './support.ts';

type Block = Record<string, Json>;
type Message = { role: string; content: Json };

const use = (id: string, name = 'Bash'): Block => ({ type: 'tool_use', id, name, input: {} });
const server = (id: string, name = 'Bash'): Block => ({
  type: 'server_tool_use',
  id,
  name,
  input: {},
});
const result = (id: string, content: Json = 'ok'): Block => ({
  type: 'tool_result',
  tool_use_id: id,
  content,
});
const text = (text: string): Block => ({ type: 'text', text: text });
const thinking = (signature = ''): Block => ({ type: 'thinking', thinking: 'hm', signature });
const genuine = thinking(genuineSignature(new Random(1)));
const user = (content: Json): Message => ({ role: 'user', content });
const assistant = (...content: Block[]): Message => ({ role: 'assistant', content });
const DELTA: Block = { type: 'server_tool_use_delta', partial_json: '{"a"' };

function repair(
  messages: Message[],
  more: JsonObject = {},
): Repaired & { messages: Message[]; input: JsonObject } {
  const input: JsonObject = { model: 'm', max_tokens: 4096, ...more, messages };
  const before = JSON.stringify(input);
  const out = run(input, 'anthropic-messages');
  expect(JSON.stringify(input)).toBe(before);
  expect(messagesComplaint(out.body)).toBeUndefined();
  const again = run(out.body, 'anthropic-messages');
  expect(again).toMatchObject({ same: true, names: [] });
  return { ...out, input, messages: out.body.messages as unknown as Message[] };
}

const untouched = (messages: Message[], more: JsonObject = {}) => {
  const { same, names } = repair(messages, more);
  expect({ same, names }).toEqual({ same: true, names: [] });
};

const blocks = (message: Message | undefined) => (message?.content ?? []) as Block[];
const missing = (id: string) => ({
  type: 'tool_result',
  tool_use_id: id,
  content: 'No result was recorded for this tool call.',
  is_error: true,
});

describe('thinking', () => {
  test('foreign thinking beside text is removed, and the text stays', () => {
    const { messages, names } = repair([user('a'), assistant(thinking('zhipu'), text('b'))]);
    expect(messages[1]).toEqual(assistant(text('b')));
    expect(names).toContain('stripped_1_thinking_blocks');
  });

  test('an assistant message of only foreign thinking becomes a placeholder', () => {
    const { messages, names } = repair([
      user('a'),
      assistant(thinking(), { type: 'redacted_thinking', data: 'not: theirs' }),
      user('b'),
    ]);
    expect(messages[1]).toEqual(assistant(text('(no content)')));
    expect(names).toContain('stripped_2_thinking_blocks');
  });

  test('plain text blocks and string content stay unchanged', () => {
    untouched([user('a'), assistant(text('b')), user('c'), { role: 'assistant', content: 'd' }]);
  });

  test('thinking in a user message is removed', () => {
    const { messages } = repair([user([text('a'), thinking()])]);
    expect(messages).toEqual([user([text('a')])]);
  });

  test('thinking with a plausible signature stays, and so does its parameter', () => {
    untouched([user('a'), assistant(genuine, use('toolu_1')), user([result('toolu_1')])], {
      thinking: { type: 'enabled', budget_tokens: 1024 },
    });
  });

  test('a loop that lost its first thinking goes out without thinking, with a note', () => {
    const { body, names } = repair(
      [user('a'), assistant(thinking(), use('toolu_1')), user([result('toolu_1')])],
      {
        thinking: { type: 'enabled', budget_tokens: 1024 },
        context_management: { edits: [{ type: 'clear_thinking_20251015', keep: 'all' }] },
      },
    );
    expect(body.thinking).toEqual({ type: 'disabled' });
    expect(body.context_management).toEqual({ edits: [] });
    expect(names).toContain('thinking_disabled');
  });

  test('text beside the results starts a new loop, which must begin with thinking, too', () => {
    const loop = (...inner: Block[]) => [
      user('a'),
      assistant(genuine, use('toolu_1')),
      user([result('toolu_1')]),
      user('and hurry'),
      assistant(...inner, use('toolu_2')),
      user([result('toolu_2')]),
    ];
    const thinking = { thinking: { type: 'enabled', budget_tokens: 1024 } };
    untouched(loop(genuine), thinking);
    const { body, names } = repair(loop(text('b')), thinking);
    expect(body.thinking).toEqual({ type: 'disabled' });
    expect(names).toContain('thinking_disabled');
  });

  test('adaptive thinking accepts a loop without first thinking', () => {
    untouched([user('a'), assistant(use('toolu_1')), user([result('toolu_1')])], {
      thinking: { type: 'adaptive' },
    });
  });

  test('the parameter stays without a loop', () => {
    const { body } = repair([user('a'), assistant(thinking(), text('b')), user('c')], {
      thinking: { type: 'enabled', budget_tokens: 1024 },
    });
    expect(body.thinking).toEqual({ type: 'enabled', budget_tokens: 1024 });
  });

  test('a vendor that does not check signatures gets all thinking back', () => {
    const body = {
      model: 'm',
      max_tokens: 9,
      messages: [user('a'), assistant(thinking('glm'), text('b')), user('c')],
    };
    const { same } = run(body, 'anthropic-messages', {
      profile: { name: 'glm-anthropic', anySignature: true },
    });
    expect(same).toBe(true);
  });
});

describe('cache marks', () => {
  const mark = { cache_control: { type: 'ephemeral' } };

  test('four marks stay in system, tool and messages', () => {
    untouched(
      [user([{ ...text('a'), ...mark }]), assistant(text('b')), user([{ ...text('c'), ...mark }])],
      {
        system: [{ ...text('s'), ...mark }],
        tools: [{ name: 'Bash', input_schema: { type: 'object' }, ...mark }],
      },
    );
  });

  test('with six marks, the earliest in the messages are removed', () => {
    const marked = (message: string) => user([{ ...text(message), ...mark }]);
    const { messages, names } = repair(
      [
        marked('a'),
        assistant(text('x')),
        marked('b'),
        assistant(text('y')),
        marked('c'),
        assistant(text('z')),
        marked('d'),
      ],
      {
        system: [
          { ...text('s'), ...mark },
          { ...text('t'), ...mark },
        ],
      },
    );
    const left = messages.map((m) => blocks(m)[0]!.cache_control !== undefined);
    expect(left).toEqual([false, false, false, false, true, false, true]);
    expect(names).toContain('removed_2_cache_control_fields');
  });
});

describe('ids', () => {
  test('a server call of a client tool becomes tool_use with a new id, and its result follows', () => {
    const { messages, names } = repair([
      user('a'),
      assistant(server('srvtoolu_1')),
      user([result('srvtoolu_1')]),
    ]);
    const [call] = blocks(messages[1]);
    expect(call).toMatchObject({ type: 'tool_use', name: 'Bash' });
    expect(call!.id).toMatch(/^toolu_[0-9a-f]{16}$/);
    expect(blocks(messages[2])[0]!.tool_use_id).toBe(call!.id!);
    expect(names).toEqual(['rewritten_1_srvtoolu_ids']);
  });

  test('an id that the vendor accepts stays, whatever its maker', () => {
    untouched([
      user('a'),
      assistant(use('custom_bad_id'), use('call-1')),
      user([result('custom_bad_id'), result('call-1')]),
    ]);
  });

  test('a server call with a client id becomes a client call and keeps the id', () => {
    const { messages, names } = repair([
      user('a'),
      assistant(server('toolu_1')),
      user([result('toolu_1')]),
    ]);
    expect(blocks(messages[1])[0]).toEqual(use('toolu_1'));
    expect(names).toEqual([]);
  });

  test('two pairs stay apart and in order', () => {
    const { messages, names } = repair([
      user('a'),
      assistant(server('srvtoolu_a'), server('srvtoolu_b')),
      user([result('srvtoolu_a', '1'), result('srvtoolu_b', '2')]),
    ]);
    const ids = blocks(messages[1]).map(({ id }) => id);
    expect(new Set(ids).size).toBe(2);
    expect(blocks(messages[2]).map(({ tool_use_id: id }) => id)).toEqual(ids);
    expect(names).toEqual(['rewritten_2_srvtoolu_ids']);
  });

  test('a result before its call in one message is found', () => {
    const { messages } = repair([
      user('a'),
      assistant(result('srvtoolu_1', 'r'), server('srvtoolu_1')),
      user('b'),
    ]);
    expect(blocks(messages[2])).toEqual([
      { ...result(String(blocks(messages[1])[0]!.id), 'r') },
      text('b'),
    ]);
  });

  test('a result in an earlier user message is found', () => {
    const { messages } = repair([
      user([text('a'), result('srvtoolu_1', 'r')]),
      assistant(server('srvtoolu_1')),
      user('b'),
    ]);
    expect(blocks(messages[0])).toEqual([text('a')]);
    expect(blocks(messages[2])[0]).toMatchObject({
      tool_use_id: blocks(messages[1])[0]!.id!,
      content: 'r',
    });
  });

  test('a vendor limited to nine letters and digits gets such ids on both sides', () => {
    const call = { id: 'toolu_1', type: 'function', function: { name: 'f', arguments: '{}' } };
    const body = {
      model: 'm',
      messages: [user('a'), { role: 'assistant', content: null, tool_calls: [call] }, user('b')],
    };
    const profile = { name: 'mistral', callIds: 'nine-alphanumeric' } as const;
    const { body: sent } = run(body, 'openai-chat', { profile });
    const messages = sent.messages as { tool_calls?: { id: string }[]; tool_call_id?: string }[];
    expect(messages[1]!.tool_calls![0]!.id).toMatch(/^[a-z0-9]{9}$/);
    expect(messages[2]!.tool_call_id).toBe(messages[1]!.tool_calls![0]!.id);
  });

  test('an id does not depend on later messages', () => {
    const first = [user('a'), assistant(use('x:1')), user([result('x:1')])];
    const one = repair(first);
    const two = repair([
      ...first,
      assistant(use('x:1'), use('y:2')),
      user([result('x:1'), result('y:2')]),
    ]);
    expect(two.messages.slice(0, 3)).toEqual(one.messages);
  });

  test('ids that vendors restart in every round become unique', () => {
    const round = (n: number) => [
      user(`${n}`),
      assistant(use('call_0')),
      user([result('call_0', `r${n}`)]),
    ];
    const { messages } = repair([...round(1), ...round(2), ...round(3)]);
    const answered = messages.flatMap(blocks).filter(({ type }) => type === 'tool_result');
    expect(answered.map(({ content }) => content)).toEqual(['r1', 'r2', 'r3']);
  });
});

describe('call and result pairs', () => {
  test('a correct pair stays unchanged', () => {
    untouched([user('a'), assistant(use('toolu_1')), user([result('toolu_1'), text('b')])]);
  });

  test('an inline result moves before the text of the next user message', () => {
    const { messages, names } = repair([
      user('a'),
      assistant(use('toolu_1'), result('toolu_1')),
      user('b'),
    ]);
    expect(messages.slice(1)).toEqual([
      assistant(use('toolu_1')),
      user([result('toolu_1'), text('b')]),
    ]);
    expect(names).toEqual(['misplaced_tool_result_relocated']);
  });

  test('an orphaned call gets a placeholder result before the text', () => {
    const { messages, names } = repair([user('a'), assistant(use('toolu_1')), user('b')]);
    expect(blocks(messages[2]) as Json[]).toEqual([missing('toolu_1'), text('b')]);
    expect(names).toEqual(['orphaned_tool_use_repaired']);
  });

  test('three calls and one inline result: one result moves, two are added', () => {
    const { messages, names } = repair([
      user('a'),
      assistant(use('t1'), use('t2'), use('t3'), result('t2')),
      user('b'),
    ]);
    expect(blocks(messages[2]) as Json[]).toEqual([
      missing('t1'),
      result('t2'),
      missing('t3'),
      text('b'),
    ]);
    expect(names.toSorted()).toEqual([
      'misplaced_tool_result_relocated',
      'orphaned_tool_use_repaired',
      'orphaned_tool_use_repaired',
    ]);
  });

  test('three calls and three inline results: none is added', () => {
    const { messages, names } = repair([
      user('a'),
      assistant(use('t1'), use('t2'), use('t3'), result('t3'), result('t1'), result('t2')),
      user('b'),
    ]);
    expect(blocks(messages[2])).toEqual([result('t1'), result('t2'), result('t3'), text('b')]);
    expect(names).not.toContain('orphaned_tool_use_repaired');
  });

  test('an inline result at the very end gets a user message', () => {
    const { messages } = repair([user('a'), assistant(use('t1'), result('t1'))]);
    expect(messages.slice(1)).toEqual([assistant(use('t1')), user([result('t1')])]);
  });

  test('a turn with text after an inline result is split', () => {
    const { messages } = repair([
      user('a'),
      assistant(text('b'), use('t1'), result('t1'), text('c'), use('t2'), result('t2'), text('d')),
      user('e'),
    ]);
    expect(messages).toEqual([
      user('a'),
      assistant(text('b'), use('t1')),
      user([result('t1')]),
      assistant(text('c'), use('t2')),
      user([result('t2')]),
      assistant(text('d')),
      user('e'),
    ]);
  });

  test('text after properly answered calls moves before them', () => {
    const { messages } = repair([
      user('a'),
      assistant(text('b'), use('t1'), use('t2'), text('c')),
      user([result('t1'), result('t2')]),
    ]);
    expect(blocks(messages[1])).toEqual([text('b'), text('c'), use('t1'), use('t2')]);
  });

  test('a stray inline result becomes the user’s text', () => {
    const { messages, names } = repair([user('a'), assistant(result('gone', 'R')), user('b')]);
    expect(messages[1]).toEqual(assistant(text('(no content)')));
    expect(blocks(messages[2])).toEqual([text('Result of an earlier tool call: R'), text('b')]);
    expect(names).toContain('stray_tool_result_as_text');
  });

  test('a stray result in a user message becomes text after the results', () => {
    const { messages } = repair([
      user('a'),
      assistant(use('t1')),
      user([result('gone', 'R'), result('t1')]),
    ]);
    expect(blocks(messages[2])).toEqual([result('t1'), text('Result of an earlier tool call: R')]);
  });

  test("the user's result wins over an equal inline one, and the text is not repeated", () => {
    const { messages, names } = repair([
      user('a'),
      assistant(use('t1'), result('t1')),
      user([result('t1')]),
    ]);
    expect(messages.slice(1)).toEqual([assistant(use('t1')), user([result('t1')])]);
    expect(names).toEqual(['duplicate_tool_result_removed']);
  });

  test('a second, different result stays as text', () => {
    const { messages } = repair([
      user('a'),
      assistant(use('t1')),
      user([result('t1', 'one'), result('t1', 'two')]),
    ]);
    expect(blocks(messages[2])).toEqual([
      result('t1', 'one'),
      text('Result of an earlier tool call: two'),
    ]);
  });

  test('a valid round stays unchanged beside a broken one', () => {
    const clean = [user('a'), assistant(use('t0')), user([result('t0')])];
    const { messages } = repair([
      ...clean,
      assistant(use('t1'), use('t2'), use('t3'), result('t1')),
      user('b'),
    ]);
    expect(messages.slice(0, 3)).toEqual(clean);
    expect(
      blocks(messages[4])
        .slice(0, 3)
        .map(({ tool_use_id: id }) => id),
    ).toEqual(['t1', 't2', 't3']);
  });

  test('calls in consecutive assistant messages are one turn when their results follow', () => {
    untouched([
      user('a'),
      assistant(use('t1')),
      assistant(use('t2')),
      user([result('t1'), result('t2')]),
    ]);
  });
});

describe('server tools', () => {
  const hit = { type: 'web_search_tool_result', tool_use_id: 'srvtoolu_1', content: [] };

  test('a genuine pair stays', () => {
    untouched([
      user('a'),
      assistant(server('srvtoolu_1', 'web_search'), hit, text('b')),
      user('c'),
    ]);
  });

  test('a call in progress beside client calls stays', () => {
    untouched([
      user('a'),
      assistant(server('srvtoolu_1', 'web_search'), use('t1')),
      user([result('t1')]),
    ]);
  });

  test('a call that was never answered gets an error', () => {
    const { messages } = repair([
      user('a'),
      assistant(server('srvtoolu_1', 'web_search')),
      user('b'),
    ]);
    expect(blocks(messages[1])[0]).toMatchObject({ type: 'tool_use', name: 'web_search' });
    expect(blocks(messages[2])[0]).toMatchObject({ type: 'tool_result', is_error: true });
  });

  test('an answer before its call moves after it', () => {
    const { messages } = repair([
      user('a'),
      assistant(hit, server('srvtoolu_1', 'web_search'), text('b')),
      user('c'),
    ]);
    expect(blocks(messages[1]).map(({ type }) => type)).toEqual([
      'server_tool_use',
      'web_search_tool_result',
      'text',
    ]);
  });
});

test('delta blocks of a broken stream are removed and counted', () => {
  const { messages, names } = repair([
    user('a'),
    assistant(text('b'), DELTA, text('c')),
    user('d'),
  ]);
  expect(messages[1]).toEqual(assistant(text('b'), text('c')));
  expect(names).toEqual(['removed_1_vendor_blocks']);
});

test('a real log: a valid round, then foreign thinking, an inline result before its call, "continue"', () => {
  const { messages, names, body } = repair([
    user('start'),
    assistant(use('toolu_clean')),
    user([result('toolu_clean')]),
    assistant(thinking('zhipu'), result('srvtoolu_9', 'ran'), server('srvtoolu_9')),
    user('continue'),
  ]);
  expect(JSON.stringify(body)).not.toContain('srvtoolu_');
  expect(JSON.stringify(body)).not.toContain('server_tool_use');
  const [call] = blocks(messages[3]);
  expect(blocks(messages[4])).toEqual([{ ...result(String(call!.id), 'ran') }, text('continue')]);
  expect(names.toSorted()).toEqual([
    'misplaced_tool_result_relocated',
    'rewritten_1_srvtoolu_ids',
    'stripped_1_thinking_blocks',
  ]);
});

describe('other rules', () => {
  test('a prefill loses its trailing blanks', () => {
    const { messages, names } = repair([user('a'), { role: 'assistant', content: 'Sure: \n' }]);
    expect(messages[1]).toEqual(assistant(text('Sure:')));
    expect(names).toEqual(['trailing_space_removed']);
  });

  test('an empty user message at the end becomes a placeholder', () => {
    const { messages } = repair([user('a'), assistant(text('b')), user('')]);
    expect(messages[2]).toEqual(user([text('(no content)')]));
  });

  test('an empty final assistant message is valid', () => {
    untouched([user('a'), { role: 'assistant', content: [] }]);
  });

  test('unrelated fields survive a repair', () => {
    const odd = { ...use('t:1'), caller: { type: 'direct' } };
    const { messages } = repair([
      user('a'),
      assistant(odd),
      user([{ ...result('t:1'), cache_control: { type: 'ephemeral' } }]),
    ]);
    expect(blocks(messages[1])[0]).toMatchObject({ caller: { type: 'direct' } });
    expect(blocks(messages[2])[0]).toMatchObject({ cache_control: { type: 'ephemeral' } });
  });

  test('an empty system message is removed', () => {
    const { messages } = repair([
      user('a'),
      { role: 'system', content: ' ' },
      assistant(text('b')),
      { role: 'system', content: '' },
      user('c'),
    ]);
    expect(messages.map(({ role }) => role)).toEqual(['user', 'assistant', 'user']);
  });

  test('system messages in the dialogue do not separate turns', () => {
    untouched([
      user('a'),
      assistant(use('t1')),
      { role: 'system', content: 'note' },
      user([result('t1')]),
    ]);
  });
});
