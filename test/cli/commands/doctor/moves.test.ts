/** What `hopgate doctor` says of files whose content the engines lack: by names and numbers, and never for longer than it may take. */

import { expect, test } from 'bun:test';
import { checkMoves } from '../../../../src/cli/commands/doctor/engines.ts';
import { EngineAway } from '../../../../src/state/engines/engine.ts';
import type { MoveComparison, StateMove } from '../../../../src/state/move/paged-move.ts';

const move = (
  name: string,
  item: string,
  compare: () => Promise<Pick<MoveComparison, 'items' | 'missing'>>,
): StateMove => ({
  name,
  item,
  engine: 'database',
  compare: async () => ({ conflicts: 0, ...(await compare()) }),
  copy: () => Promise.reject(new Error('doctor copies nothing')),
});
const has = (name: string, item: string, items: number, missing: number) =>
  move(name, item, async () => ({ items, missing }));

test('what is missing is one warning with the command, and nothing is said where there is nothing', async () => {
  expect(await checkMoves([has('keys', 'key', 0, 0)], 5000)).toEqual([]);
  const all = [
    has('keys', 'key', 12, 12),
    has('budgets', 'window', 4, 0),
    has('responses', 'response', 400, 340),
    has('memory', 'memory event', 1, 1),
  ];
  expect(await checkMoves(all, 5000)).toEqual([
    {
      about: 'state',
      status: 'warn',
      message: '12 keys, 340 responses and 1 memory event of this machine are not in the engines',
      hint: 'Copy them: hopgate state move --to engines',
    },
  ]);
  expect(await checkMoves([has('keys', 'key', 12, 0)], 5000)).toEqual([
    {
      about: 'state',
      status: 'ok',
      message: 'what this machine kept in its files is in the engines, too',
    },
  ]);
});

test('what takes too long, or cannot be read, keeps the rest from nothing', async () => {
  const never = move('memory', 'memory event', () => new Promise(() => {}));
  const broken = move('responses', 'response', async () => {
    throw new Error('/x/responses.db cannot be read: file is not a database');
  });
  const away = move('spend', 'row', async () => {
    throw new EngineAway('database', 'no answer');
  });
  const found = await checkMoves([has('keys', 'key', 3, 1), broken, away, never], 50);
  expect(found.map(({ status, message }) => [status, message])).toEqual([
    ['warn', 'responses: /x/responses.db cannot be read: file is not a database'],
    ['warn', '1 key of this machine are not in the engines'],
    ['skip', 'not compared with the engines within 0 s: memory'],
  ]);
});
