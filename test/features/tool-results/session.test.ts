/** Whole sessions: a text that was sent once is sent again unchanged, so that a vendor's prompt cache holds. */

import { describe, expect, test } from 'bun:test';
import fc from 'fast-check';
import { SHORT_RESULTS } from '../../../src/features/tool-results/index.ts';
import type { JsonObject } from '../../../src/lib/json/json.ts';
import { memoryRoom } from '../../support/entries.ts';
import { assistant, pass, record, result, user } from './support.ts';

const output = fc.oneof(
  fc.string({ maxLength: 40 }),
  fc.string({ unit: 'grapheme', maxLength: 30 }),
  fc.constantFrom('', '执行成功', 'x...(truncated)', '{"a":1}'),
);
const content = fc.oneof(
  output,
  fc
    .record({ ok: fc.boolean(), text: output, nested: fc.boolean() })
    .map(({ ok, text, nested }) => {
      const message = nested ? record({ exit_code: 0, output: text }) : text;
      return record(
        ok
          ? { success: true, exit_code: 0, output: message }
          : { exit_code: 2, stdout: message, stderr: text },
      );
    }),
);
/** One round: its calls with their results, and perhaps a user message after it. */
const round = fc.record({
  results: fc.array(content, { minLength: 1, maxLength: 3 }),
  words: fc.option(fc.string({ minLength: 1, maxLength: 5 }), { nil: undefined }),
  residue: fc.boolean(),
});
const session = fc.array(round, { minLength: 1, maxLength: 6 });
const limits = fc.constantFrom(0, 5, 12, 8192);

const messagesOf = (rounds: readonly { results: string[]; words?: string; residue: boolean }[]) => {
  const messages: JsonObject[] = [user('go')];
  rounds.forEach(({ results, words: message, residue }, r) => {
    const ids = results.map((_, i) => `call_${r}_${i}`);
    const content = residue ? `I ran it. ${record({ exit_code: 0 })}` : null;
    messages.push({ ...assistant(...ids), content: content });
    results.forEach((text, i) => {
      messages.push(result(ids[i]!, text));
    });
    if (message !== undefined) messages.push({ role: 'assistant', content: 'So.' }, user(message));
  });
  return messages;
};

describe('over a session', () => {
  test('each request begins with the previous one, byte for byte', () => {
    fc.assert(
      fc.property(session, limits, (rounds, limit) => {
        const ledger = memoryRoom(SHORT_RESULTS);
        let before: readonly JsonObject[] = [];
        for (let count = 1; count <= rounds.length; count++) {
          const { messages } = pass(messagesOf(rounds.slice(0, count)), { limit, ledger });
          expect(JSON.stringify(messages.slice(0, before.length))).toBe(JSON.stringify(before));
          before = messages;
        }
      }),
      { numRuns: 200 },
    );
  });

  test('only texts change, and a second pass changes nothing', () => {
    fc.assert(
      fc.property(session, limits, (rounds, limit) => {
        const requests = messagesOf(rounds);
        const { messages, again, conversation } = pass(requests, { limit });
        const bare = (list: readonly JsonObject[]) =>
          list.map(({ content: _, ...rest }) => JSON.stringify(rest));
        expect(bare(messages)).toEqual(bare(requests));
        expect(again).toBe(conversation);
      }),
      { numRuns: 200 },
    );
  });

  test('the last round stays within the limit in characters, plus the mark', () => {
    fc.assert(
      fc.property(session, fc.constantFrom(5, 12, 100), (rounds, limit) => {
        const { messages } = pass(messagesOf(rounds), { limit });
        const last = messages.findLastIndex(({ tool_calls: calls }) => calls !== undefined);
        for (const { role, content: text } of messages.slice(last)) {
          if (role !== 'tool') continue;
          const message = String(text);
          const body = message.endsWith('...(truncated)') ? message.slice(0, -14) : message;
          expect([...body].length).toBeLessThanOrEqual(limit);
          expect(message.isWellFormed()).toBe(true);
        }
      }),
      { numRuns: 200 },
    );
  });

  test('no record reaches the vendor in the last round or in assistant text', () => {
    fc.assert(
      fc.property(session, (rounds) => {
        const { messages } = pass(messagesOf(rounds), { limit: 0 });
        const last = messages.findLastIndex(({ tool_calls: calls }) => calls !== undefined);
        messages.forEach(({ role, content: text }, i) => {
          if (role === 'assistant' || i > last) expect(String(text)).not.toContain('rcc.tool.v1');
        });
      }),
      { numRuns: 100 },
    );
  });
});
