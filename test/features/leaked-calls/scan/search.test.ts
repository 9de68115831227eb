/** Bounds on the search for leaked calls in one reply. */

import { describe, expect, test } from 'bun:test';
import { FAMILIES } from '../../../../src/features/leaked-calls/index.ts';
import { eventsOf, fn, play } from '../transcript.ts';

const TOOLS = [fn('run', { cmd: { type: 'string' } })];
const CALL = '<tool_call>{"name":"run","arguments":{"cmd":"x"}}</tool_call>\n';
const contentOf = (text: string) =>
  play(eventsOf([{ text: [text] }]), { tools: TOOLS, profile: { leakFamilies: FAMILIES } });

describe('calls in a reply', () => {
  test('hundreds of calls are found', () => {
    const { calls, text } = contentOf(CALL.repeat(300));
    expect(calls.length).toBe(300);
    expect(text).toBe('');
  });

  // Pieces of markup that would each cost a parse, a repair or a block.
  test.each([
    CALL,
    '<tool_call>{"name":"run"',
    "<tool_call>{'name':'run','arguments':{",
    '<tool_call>run<arg_key>cmd</arg_key><arg_value>x</arg_value></tool_call>',
    '<invoke name="run"><parameter name="cmd">x</parameter></invoke>\n',
  ])('thousands of pieces stay text: %j', (piece) => {
    const text = piece.repeat(20_000);
    const response = contentOf(text);
    expect(response.calls).toEqual([]);
    expect(response.text.trim()).toBe(text.trim());
  });
});

describe('the cost of a reply full of markup', () => {
  const cpu = (text: string): number => {
    let least = Number.POSITIVE_INFINITY;
    for (let i = 0; i < 4; i++) {
      const before = process.threadCpuUsage();
      contentOf(text);
      const { user, system } = process.threadCpuUsage(before);
      least = Math.min(least, (user + system) / 1000);
    }
    return least;
  };
  const plain = cpu('words and more '.repeat(100_000));

  test.each([CALL, '<tool_call>{"name":"x"', '<think>', '</think>', '<arg_key>'])(
    'markup costs at most a few times as much as prose of the same length: %j',
    (piece) => {
      const used = cpu(piece.repeat(Math.ceil(1_500_000 / piece.length)));
      // A bounded number of pieces is read in full before the search stops.
      expect(used / (plain + 20)).toBeLessThan(4);
    },
  );
});
