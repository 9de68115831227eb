/** Tool results for a vendor that wants them short: what becomes text, and what stays. */

import { describe, expect, test } from 'bun:test';
import { SHORT_RESULTS } from '../../../src/features/tool-results/index.ts';
import type { JsonObject } from '../../../src/lib/json/json.ts';
import { memoryRoom } from '../../support/entries.ts';
import { assistant, pass, record, result, TARGET, user } from './support.ts';

const content = (messages: readonly JsonObject[], at: number) => messages[at]?.content;

describe('the last round', () => {
  const cases: readonly (readonly [what: string, sent: string, becomes: string])[] = [
    [
      'a success with output',
      record({ success: true, exit_code: 0, stdout: '', stderr: '', output: 'a.txt\nb.txt\n' }),
      '执行成功\na.txt\nb.txt',
    ],
    [
      'a success with stdout alone',
      record({ exit_code: 0, stdout: 'done\n', stderr: '' }),
      '执行成功\ndone',
    ],
    [
      'a success that printed nothing',
      record({ success: true, stdout: '', stderr: '' }),
      '执行成功',
    ],
    [
      'a failure, by the first lines of stderr',
      record({ success: false, exit_code: 2, stdout: 'x', stderr: 'one\n\ntwo\nthree\nfour\n' }),
      '执行失败：one\ntwo\nthree',
    ],
    [
      'a failure, by its error',
      record({
        success: false,
        exit_code: 1,
        stdout: '',
        stderr: '',
        error: { message: 'ENOENT' },
      }),
      '执行失败：ENOENT',
    ],
    [
      'a failure beside the result',
      record({ success: false }, { error: 'refused' }),
      '执行失败：refused',
    ],
    [
      'a failure without words',
      record({ exit_code: 127, stdout: '', stderr: '' }),
      '执行失败：exit code 127',
    ],
    [
      'a record inside the output',
      record({
        success: true,
        exit_code: 0,
        output: record({ exit_code: 1, stderr: 'no such file' }),
      }),
      '执行成功\nno such file',
    ],
    [
      "Codex's record inside the output",
      record({ output: { output: 'hello\n', metadata: { exit_code: 0, duration_seconds: 0.1 } } }),
      '执行成功\nhello',
    ],
    [
      'the same shape without a version',
      JSON.stringify({
        executed: { command: ['ls'] },
        result: { exit_code: 0, stdout: 'ok', stderr: '' },
      }),
      '执行成功\nok',
    ],
    ['a bare result', JSON.stringify({ exit_code: 1, stdout: '', stderr: 'bad' }), '执行失败：bad'],
    [
      "Codex's record",
      JSON.stringify({ output: 'hi', metadata: { exit_code: 0, duration_seconds: 1 } }),
      '执行成功\nhi',
    ],
    [
      'a success with a structured output',
      record({ success: true, output: { n: [1, 2] } }),
      '执行成功\n{"n":[1,2]}',
    ],
  ];
  for (const [what, sent, becomes] of cases) {
    test(`${what} becomes text`, () => {
      const { messages, notes, again, conversation } = pass([
        user('go'),
        assistant('call_1'),
        result('call_1', sent),
      ]);
      expect(messages[2]).toEqual({ role: 'tool', tool_call_id: 'call_1', content: becomes });
      expect(notes).toEqual(['tool_text_shortened']);
      expect(again).toBe(conversation);
    });
  }

  const stored: readonly (readonly [what: string, sent: string])[] = [
    ['plain text', 'total 3\n-rw-r--r-- a.txt'],
    ['other JSON', '{"temperature": 21, "unit": "C"}'],
    [
      'JSON with an exit code among other things',
      '{"exit_code":0,"stdout":"x","report":{"passed":3}}',
    ],
    ['a broken record', record({ success: true, output: 'x' }).slice(0, -4)],
    ['words about the format', 'The rcc.tool.v1 format has a result member.'],
    ['an empty result', ''],
    ['an array', '[{"exit_code":0,"stdout":"x"}]'],
  ];
  for (const [what, sent] of stored) {
    test(`${what} stays unchanged`, () => {
      const sentMessages = [user('go'), assistant('call_1'), result('call_1', sent)];
      const { same, notes } = pass(sentMessages);
      expect(same).toBe(true);
      expect(notes).toEqual([]);
    });
  }

  test('parallel calls are one round', () => {
    const { messages, notes } = pass([
      user('go'),
      assistant('a', 'b'),
      result('a', record({ exit_code: 0, output: 'A' })),
      result('b', record({ exit_code: 1, stderr: 'B' })),
    ]);
    expect(messages.slice(2).map((m) => m.content)).toEqual(['执行成功\nA', '执行失败：B']);
    expect(notes).toEqual(['tool_text_shortened', 'tool_text_shortened']);
  });

  test('a question after the round does not make it history', () => {
    const { messages } = pass([
      user('go'),
      assistant('a'),
      result('a', record({ exit_code: 0, output: 'A' })),
      { role: 'assistant', content: 'There is A.' },
      user('and now?'),
    ]);
    expect(content(messages, 2)).toBe('执行成功\nA');
  });

  test('content in parts stays in parts', () => {
    const { messages } = pass([
      user('go'),
      assistant('a'),
      result('a', [{ type: 'text', text: record({ exit_code: 0, output: 'A' }) }]),
    ]);
    expect(content(messages, 2)).toEqual([{ type: 'text', text: '执行成功\nA' }]);
  });

  test('other vendors get their results unchanged', () => {
    const target = { ...TARGET, profile: { name: 'none' } };
    const { same } = pass(
      [user('go'), assistant('a'), result('a', record({ exit_code: 0, output: 'A' }))],
      { target },
    );
    expect(same).toBe(true);
  });
});

describe('the limit', () => {
  const sent = (text: string, limit: number) =>
    pass([user('go'), assistant('a'), result('a', text)], { limit });

  test('the limit counts the text; the mark is extra', () => {
    const { messages, notes } = sent('x'.repeat(101), 100);
    expect(content(messages, 2)).toBe(`${'x'.repeat(100)}...(truncated)`);
    expect(notes).toEqual(['tool_text_shortened']);
    expect(sent('x'.repeat(100), 100).same).toBe(true);
  });

  test('the limit applies to the text of a record, too', () => {
    const { messages } = sent(record({ exit_code: 0, output: 'y'.repeat(50) }), 10);
    expect(content(messages, 2)).toBe('执行成功\nyyyyy...(truncated)');
  });

  test('the limit never cuts a character', () => {
    expect(content(sent('😀'.repeat(6), 5).messages, 2)).toBe(`${'😀'.repeat(5)}...(truncated)`);
    expect(sent('😀'.repeat(5), 5).same).toBe(true);
  });

  test('a limit of 0 means no limit', () => {
    expect(sent('x'.repeat(100_000), 0).same).toBe(true);
  });

  test('the parts of one result share the limit', () => {
    const parts = ['aaaa', 'bbbb', 'cccc'].map((text) => ({ type: 'text', text }));
    const { messages, conversation, again } = pass(
      [user('go'), assistant('a'), result('a', parts)],
      { limit: 6 },
    );
    expect(content(messages, 2)).toEqual([
      { type: 'text', text: 'aaaa' },
      { type: 'text', text: 'bb...(truncated)' },
    ]);
    expect(again).toBe(conversation);
  });
});

describe('history', () => {
  const round = (id: string, text: string) => [assistant(id), result(id, text)];
  const big = record({ exit_code: 0, output: 'long '.repeat(10) });

  test('a round never seen before stays unchanged', () => {
    const { messages } = pass([user('go'), ...round('a', big), ...round('b', 'plain')]);
    expect(content(messages, 2)).toBe(big);
  });

  test('a text that was sent short stays the same under another limit', () => {
    const ledger = memoryRoom(SHORT_RESULTS);
    const first = pass([user('go'), ...round('a', big)], { ledger, limit: 12 });
    const later = pass([user('go'), ...round('a', big), ...round('b', big)], {
      ledger,
      limit: 9000,
    });
    expect(content(later.messages, 2)).toBe(content(first.messages, 2)!);
    expect(later.messages.slice(0, 3)).toEqual(first.messages.slice(0, 3));
    expect(content(later.messages, 4)).toStartWith('执行成功\nlong');
    expect(later.notes).toEqual(['tool_text_shortened', 'tool_text_shortened']);
  });

  test('the same call with other content is a different result', () => {
    const ledger = memoryRoom(SHORT_RESULTS);
    pass([user('go'), ...round('a', big)], { ledger });
    const other = record({ exit_code: 0, output: 'other' });
    const { messages } = pass([user('go'), ...round('a', other), ...round('b', 'x')], { ledger });
    expect(content(messages, 2)).toBe(other);
  });

  test('calls, roles, pairs and order stay', () => {
    const sent = [
      { role: 'system', content: 'be brief' },
      user('go'),
      ...round('a', big),
      ...round('b', 'plain'),
      { role: 'assistant', content: 'text' },
      user('more'),
      ...round('c', big),
    ];
    const { messages } = pass(sent);
    const last = messages.length - 1;
    expect(messages.slice(0, last)).toEqual(sent.slice(0, last) as JsonObject[]);
    expect({ ...messages[last], content: '' }).toEqual({ ...sent[last], content: '' });
    expect(content(messages, last)).toStartWith('执行成功');
  });
});
