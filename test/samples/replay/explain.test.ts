/** A change is attributed to a rule only where that rule's note names its place. */

import { describe, expect, test } from 'bun:test';
import type { Note } from '../../../src/conversation/notes.ts';
import { diffJson } from '../../../src/lib/json/json-diff.ts';
import { placedRules, rulesBehind } from '../../../src/samples/replay/explain.ts';

const note = (name: string, where: string, what?: string): Note => ({ name, where, what });

const rules = (a: object, b: object, ...notes: Note[]) =>
  diffJson(a as never, b as never).map((change) => [
    change.at,
    rulesBehind(change, placedRules(notes)),
  ]);

describe('a change and its rule', () => {
  test('a note about the exact place wins over one about the place around it', () => {
    const before = { messages: [{ role: 'user', content: 'a' }] };
    const after = { messages: [{ role: 'user', content: 'b' }] };
    const notes = [note('around', '/messages'), note('there', 'messages[0].content')];
    expect(rules(before, after, ...notes)).toEqual([['/messages/0/content', ['there']]]);
  });

  test('a note about a list does not explain a new element that it does not name', () => {
    const before = { messages: [{ role: 'user' }], tools: [] };
    const after = {
      messages: [{ role: 'user' }, { role: 'assistant' }],
      tools: [{ name: 'web_search' }, { name: 'other' }],
    };
    const notes = [
      note('cache_control_dropped', '/messages'),
      note('server_tool_offered', '/tools', 'web_search'),
    ];
    expect(rules(before, after, ...notes)).toEqual([
      ['/messages/1', []],
      ['/tools/0', ['server_tool_offered']],
      ['/tools/1', []],
    ]);
  });

  test('a note about a list explains what is missing inside an element', () => {
    const before = { messages: [{ role: 'user', cache_control: {} }] };
    const after = { messages: [{ role: 'user' }] };
    expect(rules(before, after, note('cache_control_dropped', '/messages'))).toEqual([
      ['/messages/0/cache_control', ['cache_control_dropped']],
    ]);
  });

  test('a single field name fits at any depth, and nothing else', () => {
    const before = { reasoning: { effort: 'high' }, top_k: 1 };
    const after = { reasoning: {} };
    expect(rules(before, after, note('parameter_dropped', 'effort'))).toEqual([
      ['/reasoning/effort', ['parameter_dropped']],
      ['/top_k', []],
    ]);
  });
});
