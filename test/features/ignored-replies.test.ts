/** Whole replies that interceptors say they have nothing to do with. */

import { describe, expect, test } from 'bun:test';
import fc from 'fast-check';
import type { Reply } from '../../src/conversation/events.ts';
import { unfold } from '../../src/conversation/fold.ts';
import { Notes } from '../../src/conversation/notes.ts';
import type { Block } from '../../src/conversation/types.ts';
import type { Interceptor } from '../../src/features/feature.ts';
import { leakedCalls } from '../../src/features/leaked-calls/index.ts';
import { collector } from '../../src/features/session-ledger/collect.ts';
import { STREAMED, targetWith } from './leaked-calls/transcript.ts';

const LEAK = '<tool_call>\n{"name": "exec_command", "arguments": {"cmd": "ls"}}\n</tool_call>';
const PYTHONIC = '[exec_command(cmd="ls")]';

const text = fc
  .array(
    fc.oneof(
      { weight: 8, arbitrary: fc.constantFrom('word', ' and more', '.', ' 3', 'é', '你好', '😀') },
      fc.constantFrom(LEAK, LEAK.slice(0, 30), PYTHONIC, '<think>', '</think>', '\n', '`', '```\n'),
      fc.constantFrom('', ' ', '{', '[', '<', '"', 'to=functions.exec_command', 'commentary to='),
      fc.string({ unit: 'binary' }),
    ),
    { maxLength: 6 },
  )
  .map((pieces) => pieces.join(''));

const block: fc.Arbitrary<Block> = fc.oneof(
  { weight: 6, arbitrary: text.map((said): Block => ({ type: 'text', text: said })) },
  text.map((said): Block => ({ type: 'reasoning', text: said })),
  text.map((said): Block => ({ type: 'refusal', text: said })),
  fc.constant<Block>({
    type: 'tool-call',
    id: 'call_1',
    name: 'exec_command',
    kind: 'function',
    input: '{"cmd":"ls"}',
    by: 'client',
  }),
);

const reply: fc.Arbitrary<Reply> = fc.record({
  id: fc.constant('c'),
  model: fc.constant('m'),
  blocks: fc.array(block, { maxLength: 3 }),
  finish: fc.constantFrom('stop', 'length', 'tool-calls', 'refusal'),
  usage: fc.constantFrom({ input: 1, output: 2 }, { input: 0, output: 0 }),
});

/** Two of a kind: one is asked, the other is given the events. `told` holds what each did beside them. */
function pairs() {
  const told: unknown[] = [];
  const leaks = () => {
    const notes = new Notes();
    const made = leakedCalls((leak) => told.push(leak)).intercept?.(STREAMED, {
      target: targetWith(),
      client: 'openai-chat',
      notes,
      hop: 1,
    });
    if (made === undefined) throw new Error('nothing looks for leaked calls');
    return { interceptor: made, notes };
  };
  const useful = ({ pieces }: { pieces: readonly { type: string }[] }) => {
    if (pieces.some(({ type }) => type !== 'text')) told.push(pieces);
  };
  const collectors = () => ({ interceptor: collector(useful), notes: new Notes() });
  return { told, kinds: { leaks, collectors } };
}

function isUntouched(interceptor: Interceptor, given: Reply): boolean {
  const events = [...unfold(given)];
  const out = events.flatMap((event) => interceptor.event(event));
  out.push(...interceptor.end());
  const same = out.length === events.length && out.every((event, i) => event === events[i]);
  return same && interceptor.next?.() === undefined;
}

describe('a whole reply that is ignored', () => {
  test.each(['leaks', 'collectors'] as const)(
    'would have gone through untouched and unnoticed: %s',
    (kind) => {
      let ignored = 0;
      fc.assert(
        fc.property(reply, (given) => {
          const { told, kinds } = pairs();
          if (kinds[kind]().interceptor.ignores?.(given) !== true) return;
          ignored++;
          const { interceptor, notes } = kinds[kind]();
          expect(isUntouched(interceptor, given)).toBe(true);
          expect({ told, notes: notes.all }).toEqual({ told: [], notes: [] });
        }),
        { numRuns: 3000 },
      );
      // A reply of plain words is one of the commonest: a method that never says yes proves nothing.
      expect(ignored).toBeGreaterThan(100);
    },
  );

  test('is none when it holds a leaked call, reasoning, or a call', () => {
    const { leaks } = pairs().kinds;
    const says = (...blocks: Block[]): Reply => ({ id: 'c', model: 'm', blocks, finish: 'stop' });
    const ignores = (given: Reply) => leaks().interceptor.ignores?.(given);
    expect(ignores(says({ type: 'text', text: 'All done.' }))).toBe(true);
    expect(ignores(says({ type: 'text', text: `All done. ${LEAK}` }))).toBe(false);
    expect(ignores(says({ type: 'text', text: PYTHONIC }))).toBe(false);
    expect(ignores(says({ type: 'reasoning', text: 'hm' }))).toBe(false);
  });
});
