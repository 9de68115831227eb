/** Moves what budgets have counted between the file of a machine and the database of all replicas, each unit once. */

import { existsSync } from 'node:fs';
import type { Sql } from '../../state/engines/engine.ts';
import { type MovePass, pagedMove } from '../../state/moving/paged-move.ts';
import type { MoveDirection, StateMove } from '../../state/state-move.ts';
import type { Counted, CountSide } from './counts.ts';
import { FileCounts } from './file-counts-store.ts';
import { SharedCounts } from './shared-counts.ts';

export interface BudgetsMoveOptions {
  readonly database: Sql;
  /** The file of this machine. */
  readonly path: string;
  readonly to: MoveDirection;
}

/**
 * Each unit was counted first on one side. Each side notes how much of a window it has from the other, in the
 * transaction that adds it. What is its own is the rest, and only that goes to the other side: as the difference to
 * what went there before. The difference may be below 0: a running gateway counts what it has drawn ahead of use, and
 * takes back what it did not need.
 */
export const budgetsMove = (options: BudgetsMoveOptions): StateMove =>
  pagedMove<Counted>({
    name: 'budgets',
    item: 'count',
    engine: 'database',
    open: (writes) =>
      options.to === 'engines' ? toEngines(options, writes) : toFile(options, writes),
  });

async function toEngines(
  { database, path }: BudgetsMoveOptions,
  writes: boolean,
): Promise<MovePass<Counted>> {
  const isThere = existsSync(path);
  const shared = await SharedCounts.open(database, writes && isThere);
  const origin = writes && isThere ? FileCounts.originOf(path) : undefined;
  const file = FileCounts.toRead(path, shared.name);
  return passOf(file, shared.comparedWith(origin ?? file?.origin), () => file?.close());
}

async function toFile(
  { database, path }: BudgetsMoveOptions,
  writes: boolean,
): Promise<MovePass<Counted>> {
  const shared = await SharedCounts.open(database, writes);
  const file = writes
    ? FileCounts.toWrite(path, shared.name)
    : FileCounts.toRead(path, shared.name);
  return passOf(shared.comparedWith(file?.origin), file, () => file?.close());
}

/** Undefined: there is nothing yet on that side. */
function passOf(
  source: CountSide | undefined,
  target: CountSide | undefined,
  close: () => void,
): MovePass<Counted> {
  return {
    count: () => source?.count() ?? 0,
    pages: () => source?.pages() ?? [],
    async standings(page) {
      const known = target === undefined ? [] : await target.has(page);
      return page.map((_, at) => (known[at] === true ? 'there' : 'missing'));
    },
    async write(missing) {
      await target!.add(missing);
      return missing.length;
    },
    notes: ({ missing, there }) =>
      missing + there === 0
        ? []
        : [
            'what gateways have reserved or drawn ahead counts as used until they end: run the command again then. Rates and slots are not copied: they are over within a minute.',
          ],
    close,
  };
}
