/** Arguments of structured and leaked calls that are repaired with certainty, or fail the turn, at every chunk boundary. */

import { describe, expect, test } from 'bun:test';
import { characters, eventsOf, fn, play } from './transcript.ts';

const tools = [fn('f', { path: { type: 'string' }, pattern: { type: 'string' } })];
const structured = (args: readonly string[]) =>
  play(eventsOf([{ call: 'f', args }], 'tool-calls'), { tools });
const leaked = (text: string) =>
  play(eventsOf([{ text: [`<tool_call>{"name": "f", "arguments": ${text}}</tool_call>`] }]), {
    tools,
  });

/** The whole text, single characters, and every cut into two. */
const cuts = (text: string): readonly (readonly string[])[] => [
  [text],
  characters(text),
  ...Array.from({ length: text.length - 1 }, (_, i) => [text.slice(0, i + 1), text.slice(i + 1)]),
];

describe('backslashes that were not escaped', () => {
  const literal: readonly (readonly [string, string])[] = [
    ['C:\\Users\\x\\a.txt', 'C:\\Users\\x\\a.txt'],
    ['C:\\Users\\new\\table\\b.txt', 'C:\\Users\\new\\table\\b.txt'],
    ['d:\\new\\x', 'd:\\new\\x'],
    ['C:\\\\Users\\\\x\\a.txt', 'C:\\Users\\x\\a.txt'],
    ['C:\\users\\x', 'C:\\users\\x'],
    ['\\d+\\.\\w*\\s', '\\d+\\.\\w*\\s'],
    ['\\bfoo\\d+\\b', '\\bfoo\\d+\\b'],
    ['say \\"\\d\\"', 'say "\\d"'],
    ['a\\u00e9\\d', 'a\u00e9\\d'],
    ['a\\u00g9', 'a\\u00g9'],
    ["'it'\\''s'", "'it'\\''s'"],
    ['import re\\nre.match(\\d)', 'import re\nre.match(\\d)'],
    ['a \\\n b', 'a \\\n b'],
    ['\u0001\\d', '\u0001\\d'],
  ];
  for (const [written, meant] of literal) {
    test(`${JSON.stringify(written)} loses none`, () => {
      const args = `{"path":"${written}","pattern":"x"}`;
      for (const pieces of cuts(args)) {
        const { calls, notes } = structured(pieces);
        expect(calls).toEqual([{ name: 'f', arguments: { path: meant, pattern: 'x' } }]);
        expect(notes).toBe('tool_arguments_repaired');
      }
      expect(leaked(args).calls).toEqual([{ name: 'f', arguments: { path: meant, pattern: 'x' } }]);
    });
  }

  test('a path in a text whose backslash may begin a line break fails the turn', () => {
    for (const text of ['type C:\\Users\\new', 'cat C:\\Users\\x\\nls', 'C:\\Users\\u00e9\\x']) {
      const args = `{"path":"${text}"}`;
      for (const pieces of cuts(args)) {
        expect(() => structured(pieces)).toThrow(/not JSON and cannot be repaired/);
      }
      expect(leaked(args).calls).toEqual([]);
    }
  });

  test('valid escapes stay what they say', () => {
    for (const args of ['{"path":"C:\\new\\b","pattern":"\\b\\u0041"}', '{"path":"\\f"}']) {
      for (const pieces of cuts(args)) {
        const { calls, notes } = structured(pieces);
        expect(calls).toEqual([{ name: 'f', arguments: JSON.parse(args) }]);
        expect(notes).toBe('');
      }
    }
  });
});

describe('arguments that come more than once', () => {
  const whole = '{"path":"ls -la","pattern":"p}{"}';
  const repeated: Readonly<Record<string, readonly string[]>> = {
    'each piece with all before it': [whole.slice(0, 7), whole.slice(0, 15), whole],
    'each piece with all before it, the last one twice': [whole.slice(0, 7), whole, whole],
    'character by character': characters(whole).map((_, i) => whole.slice(0, i + 1)),
    'all once more at the end': ['', whole.slice(0, 5), whole.slice(5), whole],
    'all twice more': [whole, whole, whole],
    'all twice in one piece': [whole + whole],
    // https://github.com/BerriAI/litellm/issues/4537
    'an empty object before them': ['{}', whole.slice(0, 5), whole.slice(5)],
    'an empty object before them, in one piece': [`{} ${whole}`],
    'an empty object before them, in characters': characters(`{}${whole}`),
  };
  for (const [name, pieces] of Object.entries(repeated)) {
    test(`${name}: one call`, () => {
      const { calls, notes } = structured(pieces);
      expect(calls).toEqual([{ name: 'f', arguments: JSON.parse(whole) }]);
      expect(notes).toBe('tool_arguments_repaired');
    });
  }

  test('two different objects are no arguments', () => {
    expect(() => structured(['{"path":"a"}', '{"path":"b"}'])).toThrow(/cannot be repaired/);
  });
});

test('a Markdown fence, stop words and closers of markup around arguments are taken off', () => {
  for (const args of [
    '```json\n{"path":"a"}\n```',
    '```\n{"path":"a"}\n```\n',
    '{"path":"a"}<|im_end|>',
    '{"path":"a"}\n</s>\n',
    '```json\n{"path":"a"}\n```<|im_end|>',
    // https://github.com/livekit/agents/pull/5840
    '{"path":"a"}<|tool_call_end|>',
    '{"path":"a"}\n</tool_call>',
    '{"path":"a"}<|tool_call_end|><|tool_calls_section_end|>\n',
    '{"path":"a"}\n</｜DSML｜parameter>\n</｜DSML｜invoke>',
  ]) {
    for (const pieces of cuts(args)) {
      const { calls, notes } = structured(pieces);
      expect(calls).toEqual([{ name: 'f', arguments: { path: 'a' } }]);
      expect(notes).toBe('tool_arguments_repaired');
    }
  }
});
