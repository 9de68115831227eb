/** What the table of a replay says of failures: nothing of chance where each setting ran once. */

import { expect, test } from 'bun:test';
import { printRuns } from '../../src/cli/commands/replay/run-table.ts';
import { createTerminal } from '../../src/cli/terminal.ts';
import { compareRuns, type ReplayedRequest } from '../../src/samples/replay/runs.ts';

function said(times: number): string {
  const run = (setting: string, number: number): ReplayedRequest => ({
    source: 's_1',
    setting,
    number,
    before: undefined,
    cost: null,
    sent: {
      id: '',
      target: 'up/m',
      notes: '',
      status: setting === 'b' ? 500 : 200,
      failure: setting === 'b' ? { how: 'error', kind: 'upstream', message: 'no' } : undefined,
      promptTokens: undefined,
      outputTokens: undefined,
      usage: undefined,
      firstByte: 1,
      total: 2,
      answer: 'Hello.',
      retryAfter: undefined,
    },
  });
  const numbers = Array.from({ length: times }, (_, i) => i + 1);
  const runs = ['a', 'b'].flatMap((setting) => numbers.map((number) => run(setting, number)));
  let text = '';
  const out = createTerminal(
    (more) => {
      text += more;
    },
    { colour: false },
  );
  printRuns(out, runs, compareRuns(['a', 'b'], runs), false);
  return text;
}

test('one run of each setting says nothing of chance', () => {
  expect(said(1)).not.toMatch(/Fisher|chance|interval|of 1 failed/);
});

test('several runs say how often each failed, and whether that is more than chance', () => {
  expect(said(5)).toMatch(
    /a: 0 of 5 failed[\s\S]*b: 5 of 5 failed[\s\S]*more than chance \(Fisher/,
  );
});
