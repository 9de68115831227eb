/** Moves one kind of state between the files of a machine and the shared engines, page by page, each item once. */

import type { EngineName } from '../engines/engine.ts';

export type MoveDirection = 'engines' | 'embedded';

/** Both sides of a move, compared. */
export interface MoveComparison {
  /** Items of the source. */
  readonly items: number;
  /** Items that the target lacks, or has in an older form: a copy writes them. */
  readonly missing: number;
  /** Items that differ, and neither side is known to be older: a copy leaves them as they are. */
  readonly conflicts: number;
  /** Sentences for people. */
  readonly notes?: readonly string[];
}

/** @param done how many items were gone through so far, of how many */
export type MoveProgress = (done: number, all: number) => void;

interface MovedKind {
  /** Its name for people: `keys`, `budgets` … */
  readonly name: string;
  /** One item of it: `key`, `window` … */
  readonly item: string;
  readonly engine: EngineName;
  /** A gateway with engines copies it at its start, so no command has to be run for it. */
  readonly byItself?: boolean;
}

/**
 * One kind of state. A move copies and never removes: the source stays as it is. Both sides may be in use meanwhile.
 *
 * Each item is copied whole or not at all, and only once, however often a copy is cut and begun again.
 */
export interface StateMove extends MovedKind {
  /** Writes nothing, neither files nor tables. Rejects where a side cannot be read. */
  compare(): Promise<MoveComparison>;
  /** Copies items that {@link compare} calls missing, in batches. @returns how many were written */
  copy(onProgress: MoveProgress): Promise<number>;
}

export const NOTHING: MoveComparison = { items: 0, missing: 0, conflicts: 0 };

/**
 * @param open both sides for one pass; undefined: there is nothing to move. `writes`: it is opened to copy; else
 *   neither files nor tables are made
 */
export function stateMove<Opened extends { close(): void }>(
  kind: MovedKind,
  open: (writes: boolean) => Promise<Opened | undefined>,
  compare: (opened: Opened) => Promise<MoveComparison>,
  copy: (opened: Opened, onProgress: MoveProgress) => Promise<number>,
): StateMove {
  async function using<T>(writes: boolean, nothing: T, work: (opened: Opened) => Promise<T>) {
    const opened = await open(writes);
    if (opened === undefined) return nothing;
    try {
      return await work(opened);
    } finally {
      opened.close();
    }
  }
  return {
    ...kind,
    compare: () => using(false, NOTHING, compare),
    copy: (onProgress) => using(true, 0, (opened) => copy(opened, onProgress)),
  };
}

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

/** A side from which items come. */
export interface MoveSource<Item> {
  count(): Promise<number>;
  /** All items, some at a time. */
  pages(): AsyncIterable<readonly Item[]> | Iterable<readonly Item[]>;
}

/** A side that items go to. */
export interface MoveTarget<Item> {
  /** In the order of the page. */
  states(page: readonly Item[]): Promise<readonly TargetState[]>;
}

/** Undefined: there is nothing yet on that side. */
interface MoveEnds<Item> {
  readonly source: MoveSource<Item> | undefined;
  readonly target: MoveTarget<Item> | undefined;
}

/** Both sides, open for one pass. Its methods reject where a side cannot be read or written. */
export interface MovePass<Item> extends MoveEnds<Item> {
  /** Writes items that are missing. @returns how many were written */
  write(missing: readonly Item[]): Promise<number>;
  /** Sentences for people about a comparison. */
  notes(tally: Tally): readonly string[] | Promise<readonly string[]>;
  /** After a copy. Rejects where something of it could not be read. */
  finish?(): void;
  close(): void;
}

export const pagedMove = <Item>(
  kind: MovedKind,
  open: (writes: boolean) => Promise<MovePass<Item>>,
): StateMove => stateMove(kind, open, compared, copied);

async function compared<Item>(pass: MovePass<Item>): Promise<MoveComparison> {
  const tally = await tallyOf(pass);
  const notes = await pass.notes(tally);
  const items = Object.values(tally).reduce((sum, count) => sum + count, 0);
  const { missing, differs } = tally;
  return { items, missing, conflicts: differs, ...(notes.length > 0 && { notes }) };
}

/** Counts all items of the source by their state. */
export async function tallyOf<Item>(ends: MoveEnds<Item>): Promise<Tally> {
  const tally = { missing: 0, there: 0, differs: 0, removed: 0, erased: 0 };
  for await (const page of ends.source?.pages() ?? []) {
    for (const state of await statesOf(ends, page)) tally[state]++;
  }
  return tally;
}

const statesOf = async <Item>({ target }: MoveEnds<Item>, page: readonly Item[]) =>
  (await target?.states(page)) ?? page.map(() => 'missing' as const);

async function copied<Item>(pass: MovePass<Item>, onProgress: MoveProgress): Promise<number> {
  const all = (await pass.source?.count()) ?? 0;
  let done = 0;
  let written = 0;
  for await (const page of pass.source?.pages() ?? []) {
    const states = await statesOf(pass, page);
    const missing = page.filter((_, at) => states[at] === 'missing');
    if (missing.length > 0) written += await pass.write(missing);
    done += page.length;
    onProgress(done, Math.max(done, all));
  }
  pass.finish?.();
  return written;
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
