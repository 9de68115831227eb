/** What a user wrote and what an agent put beside it, in tags of its own. */

import { describe, expect, test } from 'bun:test';
import { agentParts, ownWords } from '../../src/conversation/agent-parts.ts';

const reminder = (text: string) => ({ text, tag: 'system-reminder' as const });

describe('tags of agents', () => {
  test.each([
    ['Hello', [{ text: 'Hello' }]],
    ['<system-reminder>a</system-reminder>', [reminder('a')]],
    [
      'Fix it.\n<system-reminder>\na\n</system-reminder>\n Soon.',
      [{ text: 'Fix it.\n' }, reminder('\na\n'), { text: '\n Soon.' }],
    ],
    [
      '<environment_context>a</environment_context>\n<system-reminder>b</system-reminder>\n',
      [{ text: 'a', tag: 'environment_context' }, reminder('b')],
    ],
    // A tag that does not end is text, and so is one inside another.
    ['What is <system-reminder>?', [{ text: 'What is <system-reminder>?' }]],
    [
      '<system-reminder><user_instructions></system-reminder>b',
      [reminder('<user_instructions>'), { text: 'b' }],
    ],
    ['<other>a</other>', [{ text: '<other>a</other>' }]],
    ['', []],
  ] as const)('%j', (text, parts) => {
    expect(agentParts(text)).toEqual([...parts]);
  });

  test('a text that was cut may have lost the end of a tag; what follows a tag is the rest', () => {
    expect(agentParts('Hi <system-reminder>a', true)).toEqual([{ text: 'Hi ' }, reminder('a')]);
    expect(agentParts('<system-reminder>a</system-reminder>', true)).toEqual([
      reminder('a'),
      { text: '' },
    ]);
  });

  test('own words', () => {
    expect(ownWords('<system-reminder>a</system-reminder>Fix it.')).toBe('Fix it.');
    expect(ownWords('<system-reminder>a</system-reminder>\n')).toBe('');
    expect(ownWords('Tool loaded.')).toBe('');
    expect(ownWords('Tool loaded.\n[id:toolu_01]\n')).toBe('');
    expect(ownWords('Tool loaded. Now fix it.')).toBe('Tool loaded. Now fix it.');
  });

  test('many tags take linear time', () => {
    const time = (text: string) => {
      const began = performance.now();
      agentParts(text);
      return performance.now() - began;
    };
    const opens = '<system-reminder>'.repeat(100_000);
    const closed = '<system-reminder>a</system-reminder>'.repeat(100_000);
    expect(Math.max(time(opens), time(closed))).toBeLessThan(1000);
  });
});
