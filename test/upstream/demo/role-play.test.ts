/** The demo model in a chat with a memory: it recalls what it is asked about, within its limit, and plays no other member. */

import { describe, expect, test } from 'bun:test';
import type { JsonObject } from '../../../src/lib/json/json.ts';
import { ask, callsOf, object, textOf, tool } from './ask.ts';

const recall = tool('recall_memory', '回忆', object({ query: { type: 'string' } }));
const call = (id: string, name: string, args: JsonObject = {}) => ({
  id,
  type: 'function',
  function: { name, arguments: JSON.stringify(args) },
});
const events = (...texts: readonly { text: string; source?: string }[]) =>
  JSON.stringify({ events: texts });

const chat = (
  question: string,
  results: readonly (readonly [name: string, text: string])[],
  system = '你是老陈。口头禅：“慢慢来。”',
): JsonObject[] => [
  { role: 'system', content: system },
  { role: 'user', content: question },
  ...results.flatMap(([name, text], at): JsonObject[] => [
    { role: 'assistant', content: null, tool_calls: [call(`c${at}`, name)] },
    { role: 'tool', tool_call_id: `c${at}`, content: text },
  ]),
];
const TEA = events({ text: '巷口的茶馆叫听雨轩' }, { text: '巷口有条狗', source: '小雨' });

describe('asked about the past', () => {
  const question = '@老陈 巷口那家茶馆叫什么来着？';

  test('it recalls once more by what the question is about', async () => {
    const reply = await ask(chat(question, [['recall_memory', TEA]]), { tools: [recall] });
    expect(callsOf(reply)).toEqual([{ name: 'recall_memory', input: { query: '巷口 茶馆' } }]);
    expect(textOf(reply)).toBe('');
  });

  test('then it tells what fits best, as itself', async () => {
    const results = [
      ['is_mentioned', '被提及，需要发言'],
      ['recall_memory', TEA],
      ['recall_memory', TEA],
    ] as const;
    const reply = await ask(chat(question, results), { tools: [recall] });
    expect(callsOf(reply)).toEqual([]);
    expect(textOf(reply)).toContain('“巷口的茶馆叫听雨轩”');
    expect(textOf(reply)).toEndWith('慢慢来。');
    expect(textOf(await ask(chat(question, results), { tools: [recall] }))).toBe(textOf(reply));
  });

  test.each([
    ['Do you remember what I am allergic to', 'I am allergic to peanuts.', 'You are Ming.'],
    ['你还记得我对什么过敏吗', '我对花生过敏。', '你是老陈。'],
  ])('%s: a quoted sentence has one full stop', async (question, text, system) => {
    const told = events({ text, source: 'Alice' });
    for (const way of ['', '?', '??', '???', '!', ' today?', ' now?', ' again?']) {
      const results = [
        ['recall_memory', told],
        ['recall_memory', told],
      ] as const;
      const reply = textOf(await ask(chat(question + way, results, system), { tools: [recall] }));
      expect(reply).toContain(text);
      expect(reply).not.toMatch(/[.。]”[.。，,]/);
    }
  });

  test('a limit in its instructions is kept to', async () => {
    const system = '你是老陈。\n\n每轮最多回忆（recall_memory）1 次。';
    const reply = await ask(chat(question, [['recall_memory', TEA]], system), { tools: [recall] });
    expect(callsOf(reply)).toEqual([]);
    expect(textOf(reply)).toContain('听雨轩');
  });

  test('who is not spoken to says a word and recalls nothing', async () => {
    const results = [
      ['is_mentioned', '未被提及，可自行判断'],
      ['recall_memory', TEA],
    ] as const;
    const reply = await ask(chat(question, results), { tools: [recall] });
    expect(callsOf(reply)).toEqual([]);
    expect(textOf(reply)).not.toContain('听雨轩');
    expect(textOf(reply)).not.toBe('');
  });

  test('nothing is remembered: it says so', async () => {
    const results = [
      ['recall_memory', '{"events":[]}'],
      ['recall_memory', 'nonsense'],
    ] as const;
    expect(textOf(await ask(chat(question, results), { tools: [recall] }))).toContain('不记得');
  });
});

test('without that tool, or with a forced one, it is the model that it always was', async () => {
  const plain = await ask('巷口那家茶馆叫什么来着？');
  expect(textOf(plain)).toContain('演示模型');
  const forced = await ask('hello', { tools: [recall], tool_choice: 'required' });
  expect(callsOf(forced)).toHaveLength(1);
  const said = await ask('说你好', { tools: [recall] });
  expect(textOf(said)).toContain('你好');
});
