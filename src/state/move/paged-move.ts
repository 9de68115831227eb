/** A move that goes through its source in pages: each page is compared with the target, and what is missing is written. */

import type { EngineName } from '../engines/engine.ts';
import type { MoveComparison, StateMove } from './state-move.ts';

/**
 * How an item of the source stands in the target:
 * - `missing`: a copy writes it
 * - `there`: as in the source
 * - `differs`: in another form, and neither is known to be older
 * - `removed`: it was there before, and was removed
 * - `erased`: its memory space was erased there
 */
export type Standing = 'missing' | 'there' | 'differs' | 'removed' | 'erased';

export type Tally = Readonly<Record<Standing, number>>;

/** Both sides, open for one pass. Its methods reject where a side cannot be read or written. */
export interface MovePass<Key> {
  count(): number | Promise<number>;
  /** All items of the source, some at a time. */
  pages(): AsyncIterable<readonly Key[]> | Iterable<readonly Key[]>;
  /** In the order of the page. */
  standings(page: readonly Key[]): readonly Standing[] | Promise<readonly Standing[]>;
  /** Writes items that are missing. @returns how many were written */
  write(missing: readonly Key[]): Promise<number>;
  /** What people must know of a comparison: sentences. */
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
          const standings = await pass.standings(page);
          const missing = page.filter((_, at) => standings[at] === 'missing');
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

/** How all items of the source stand. */
export async function tallyOf<Key>(
  pass: Pick<MovePass<Key>, 'pages' | 'standings'>,
): Promise<Tally> {
  const tally = { missing: 0, there: 0, differs: 0, removed: 0, erased: 0 };
  for await (const page of pass.pages()) {
    for (const standing of await pass.standings(page)) tally[standing]++;
  }
  return tally;
}

/** What a copy into the files of this machine leaves out. */
export const removedHere = ({ removed }: Pick<Tally, 'removed'>): readonly string[] =>
  removed > 0 ? [`${removed} were removed on this machine, and are not copied again.`] : [];

/** @param whose what was erased: `memory space`, `space` */
export const erasedHere = ({ erased }: Pick<Tally, 'erased'>, whose: string): readonly string[] =>
  erased > 0 ? [`${erased} are not copied: their ${whose} was erased on this machine.`] : [];

/** What a copy into the engines leaves out. */
export const removedThere = ({ removed }: Pick<Tally, 'removed'>): readonly string[] =>
  removed > 0 ? [`${removed} were removed there, and are not copied again.`] : [];

/** @param whose as of {@link erasedHere} */
export const erasedThere = ({ erased }: Pick<Tally, 'erased'>, whose: string): readonly string[] =>
  erased > 0 ? [`${erased} are not copied: their ${whose} was erased there.`] : [];

export const sealedElsewhere = (count: number): string =>
  `${count} cannot be opened: is the secret that sealed them in engines.seal?`;

/**
 * What the file of this machine still has of what was removed in the engines.
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
