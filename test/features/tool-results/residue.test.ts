/** Executed-tool records in the model's own text are removed from histories and answers; everything else stays. */

import { describe, expect, test } from 'bun:test';
import fc from 'fast-check';
import type { StreamEvent } from '../../../src/conversation/events.ts';
import { Notes } from '../../../src/conversation/notes.ts';
import { withoutResidue } from '../../../src/features/tool-results/residue.ts';
import { residueInterceptor } from '../../../src/features/tool-results/residue-interceptor.ts';
import { pass, record, user } from './support.ts';

const whole = record({ success: true, exit_code: 0, stdout: 'a "quoted" {brace}', stderr: '' });
const cases: readonly (readonly [what: string, text: string, left: string])[] = [
  ['a whole record', whole, ''],
  ['a record in prose', `Before.\n${whole}\nAfter.`, 'Before.\nAfter.'],
  ['a record in a line', `See ${whole} there.`, 'See there.'],
  ['a record in a code fence', `Result:\n\`\`\`json\n${whole}\n\`\`\`\nDone.`, 'Result:\nDone.'],
  ['two records', `${whole}\n${whole}\nDone.`, 'Done.'],
  ['a record cut in the middle', `Fine. ${whole.slice(0, 140)}`, 'Fine.'],
  ['a record cut in its mark', `Fine. ${whole.slice(0, 40)}`, 'Fine.'],
  ['a record whose beginning is lost', `${whole.slice(30)} Done.`, 'Done.'],
  ['a record with escaped quotes', `Was ${JSON.stringify(whole).slice(1, -1)} ok`, 'Was ok'],
  ['a record with its version last', `{"tool":{"name":"x"},"version":"rcc.tool.v1"} ok`, 'ok'],
];
const untouched = [
  'plain words',
  'The rcc.tool.v1 format: version, tool, result.',
  'Use {"version": "2.0"} and `{"tool": {}}`.',
  '```json\n{"result": {"a": 1}, "executed": true}\n```',
  'function f() { return "rcc.tool.v1"; }',
  '{"a": {"version":"v2"}, "note":"rcc.tool.v1"}',
  '{"executed":[{"result":1}]}',
];

describe('in the history', () => {
  for (const [what, text, left] of cases) {
    test(`${what} is removed from assistant text`, () => {
      expect(withoutResidue(text)).toBe(left);
    });
  }
  for (const text of untouched) {
    test(`${text.slice(0, 40)} stays`, () => expect(withoutResidue(text)).toBe(text));
  }

  test('a turn keeps its other content, and an empty turn is removed', () => {
    const { messages, notes, again, conversation } = pass([
      user('go'),
      { role: 'assistant', content: `I ran it. ${whole}` },
      user('and?'),
      { role: 'assistant', content: whole },
      user('well?'),
    ]);
    expect(messages.map((m) => m.content)).toEqual(['go', 'I ran it.', 'and?', 'well?']);
    expect(notes).toEqual(['tool_residue_removed', 'tool_residue_removed']);
    expect(again).toBe(conversation);
  });

  test('calls beside a record stay calls, and the record becomes no call', () => {
    const call = { id: 'a', type: 'function', function: { name: 'shell', arguments: '{}' } };
    const { messages } = pass([
      user('go'),
      { role: 'assistant', content: whole, tool_calls: [call] },
      { role: 'tool', tool_call_id: 'a', content: 'x' },
    ]);
    expect(messages[1]).toEqual({ role: 'assistant', content: null, tool_calls: [call] });
  });

  test('user text stays unchanged', () => {
    expect(pass([user(`What is ${whole}?`)]).same).toBe(true);
  });
});

/** Plays the deltas of a text answer through the interceptor. */
function stream(deltas: readonly string[], cut = false) {
  const notes = new Notes();
  const interceptor = residueInterceptor(notes);
  const events: StreamEvent[] = [
    { type: 'start', id: 'x', model: 'm' },
    { type: 'block-start', index: 0, head: { type: 'text' } },
    ...deltas.map((text): StreamEvent => ({ type: 'delta', index: 0, text })),
  ];
  if (!cut) {
    events.push(
      { type: 'block-stop', index: 0 },
      { type: 'finish', reason: 'stop' },
      { type: 'end' },
    );
  }
  const out = events.flatMap((event) => interceptor.event(event));
  out.push(...interceptor.end());
  const text = out.map((event) => (event.type === 'delta' ? event.text : '')).join('');
  return { out, text, events, notes: notes.all.map((note) => note.name) };
}

const textOf = (text: string) => text.replace(/\s+/g, ' ').trim();

describe('in an answer', () => {
  const streamed = cases.filter(([what]) => !what.includes('lost') && !what.includes('last'));
  for (const [what, text, left] of streamed) {
    test(`${what} never reaches the client, however it is split`, () => {
      fc.assert(
        fc.property(fc.array(fc.nat(text.length), { maxLength: 12 }), (cuts) => {
          const at = [...new Set([0, ...cuts, text.length])].sort((a, b) => a - b);
          const deltas = at.slice(1).map((end, i) => text.slice(at[i], end));
          const { text: message, notes } = stream(deltas);
          expect(textOf(message)).toBe(textOf(left));
          expect(notes).toContain('tool_residue_removed');
        }),
        { numRuns: 60 },
      );
      const { text: spokenText } = stream([...text]);
      expect(textOf(spokenText)).toBe(textOf(left));
    });
  }

  for (const text of untouched) {
    test(`${text.slice(0, 40)} passes whole, character by character`, () => {
      expect(stream([...text])).toMatchObject({ text, notes: [] });
      const once = stream([text]);
      expect(once.out).toEqual(once.events);
    });
  }

  test('deltas without a brace pass as the same events', () => {
    const { out, events } = stream(['Hello', ' there', '.']);
    expect(out.every((event, i) => event === events[i])).toBe(true);
  });

  test('any text without the mark passes whole', () => {
    const piece = fc.oneof(
      fc.string({ maxLength: 6 }),
      fc.constantFrom('{"version"', '{ "tool":', '```json\n', '{', '}', '"', '\\"', '~~~', '\n'),
    );
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 20 }), (deltas) => {
        const { text, notes } = stream(deltas);
        expect(text).toBe(deltas.join(''));
        expect(notes).toEqual([]);
      }),
      { numRuns: 400 },
    );
  });

  test('a cut stream releases held text, but no half record', () => {
    expect(stream(['Use {"tool'], true).text).toBe('Use {"tool');
    expect(textOf(stream(['Use ', whole.slice(0, 60)], true).text)).toBe('Use');
  });

  test('a long object without the mark does not stop the stream', () => {
    const { out } = stream(
      ['{"tool": "', ...Array.from({ length: 40 }, () => 'x'.repeat(1000))],
      true,
    );
    expect(out.filter((event) => event.type === 'delta').length).toBeGreaterThan(10);
  });
});
