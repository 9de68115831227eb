/** A move reads its source in pages, compares each page with the target, and writes the missing items. */

import type { EngineName } from '../engines/engine.ts';
import type { MoveComparison, StateMove } from './state-move.ts';

/**
 * An item of the source in the target:
 * - `missing`: a copy writes it
 * - `there`: as in the source, or newer
 * - `differs`: in another form, and neither is known to be older
 * - `removed`: it was there before, and was removed
 * - `erased`: its memory space was erased there
 */
export type TargetState = 'missing' | 'there' | 'differs' | 'removed' | 'erased';

export type Tally = Readonly<Record<TargetState, number>>;

/** Both sides, open for one pass. Its methods reject where a side cannot be read or written. */
export interface MovePass<Key> {
  count(): number | Promise<number>;
  /** All items of the source, some at a time. */
  pages(): AsyncIterable<readonly Key[]> | Iterable<readonly Key[]>;
  /** In the order of the page. */
  states(page: readonly Key[]): readonly TargetState[] | Promise<readonly TargetState[]>;
  /** Writes items that are missing. @returns how many were written */
  write(missing: readonly Key[]): Promise<number>;
  /** Sentences for people about a comparison. */
  notes(tally: Tally): readonly string[] | Promise<readonly string[]>;
  /** After a copy. Rejects where something of it could not be read. */
  finish?(): void;
  close(): void | Promise<void>;
}

export interface PagedMove<Key> {
  readonly name: string;
  readonly item: string;
  readonly engine: EngineName;
  /** @param writes it is opened to copy; else neither files nor tables are made */
  open(writes: boolean): Promise<MovePass<Key>>;
}

export function pagedMove<Key>({ name, item, engine, open }: PagedMove<Key>): StateMove {
  async function using<T>(writes: boolean, work: (pass: MovePass<Key>) => Promise<T>): Promise<T> {
    const pass = await open(writes);
    try {
      return await work(pass);
    } finally {
      await pass.close();
    }
  }
  return {
    name,
    item,
    engine,
    compare: () => using(false, compared),
    copy: (onProgress) =>
      using(true, async (pass) => {
        const all = await pass.count();
        let done = 0;
        let written = 0;
        for await (const page of pass.pages()) {
          const states = await pass.states(page);
          const missing = page.filter((_, at) => states[at] === 'missing');
          if (missing.length > 0) written += await pass.write(missing);
          done += page.length;
          onProgress(done, Math.max(done, all));
        }
        pass.finish?.();
        return written;
      }),
  };
}

async function compared<Key>(pass: MovePass<Key>): Promise<MoveComparison> {
  const tally = await tallyOf(pass);
  const notes = await pass.notes(tally);
  const items = Object.values(tally).reduce((sum, count) => sum + count, 0);
  const { missing, differs } = tally;
  return { items, missing, conflicts: differs, ...(notes.length > 0 && { notes }) };
}

/** Counts all items of the source by their state. */
export async function tallyOf<Key>(pass: Pick<MovePass<Key>, 'pages' | 'states'>): Promise<Tally> {
  const tally = { missing: 0, there: 0, differs: 0, removed: 0, erased: 0 };
  for await (const page of pass.pages()) {
    for (const state of await pass.states(page)) tally[state]++;
  }
  return tally;
}

/**
 * Items that a copy leaves out, for people.
 * @param where `there`, or `on this machine`
 * @param space the kind of space that was erased
 */
export const leftOut = (
  { removed, erased }: Pick<Tally, 'removed' | 'erased'>,
  where: string,
  space = 'memory space',
): readonly string[] => [
  ...(removed > 0 ? [`${removed} were removed ${where}, and are not copied again.`] : []),
  ...(erased > 0 ? [`${erased} are not copied: their ${space} was erased ${where}.`] : []),
];

export const sealedElsewhere = (count: number): string =>
  `${count} cannot be opened: is the secret that sealed them in engines.seal?`;

/**
 * Warns that the file of this machine still has items that were removed in the engines.
 * @param there the move into the engines, open to compare; it is closed here
 */
export async function outdatedFile<Key>(
  path: string,
  there: MovePass<Key>,
): Promise<readonly string[]> {
  try {
    const { removed, erased } = await tallyOf(there);
    const count = removed + erased;
    return count === 0
      ? []
      : [
          `${count} of the file of this machine were removed in the engines: put ${path} away before the copy, so that they do not come back.`,
        ];
  } finally {
    await there.close();
  }
}
