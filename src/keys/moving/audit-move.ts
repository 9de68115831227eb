/** Moves what vouches for the audit: the end of the chain of one side is noted in the chain of the other. */

import { hostname } from 'node:os';
import type { JsonObject } from '../../lib/json/json.ts';
import type { MoveComparison, StateMove } from '../../state/state-move.ts';
import type { MovableKeys } from '../key-store.ts';
import { type KeySides, type KeysMoveOptions, openSides } from './key-sides.ts';

const IMPORT = 'audit.import';
const PAGE = 1000;

/** A chain as it was read, whole. */
interface Chain {
  /** What notes of it in other chains are about: its first entry tells it from all others. */
  readonly name: string;
  readonly entries: number;
  readonly head: string;
}

/** What the target's chain says of the source's, and what has come since. */
interface State {
  readonly chain: Chain | undefined;
  readonly noted: JsonObject | null;
  readonly news: number;
}

/**
 * Two chains cannot become one: each entry holds the hash of the one before it. The entries stay where they are, and
 * the target's chain gets an entry with their number and their last hash. It proves later that they are the same.
 */
export function auditMove(options: KeysMoveOptions): StateMove {
  async function using<T>(writes: boolean, work: (sides: KeySides) => Promise<T>): Promise<T> {
    const sides = await openSides(options, writes);
    try {
      return await work(sides);
    } finally {
      sides.close();
    }
  }
  return {
    name: 'audit',
    item: 'entry',
    engine: 'database',
    compare: () =>
      using(false, async (sides): Promise<MoveComparison> => {
        const { chain, news } = await stateOf(sides);
        if (chain === undefined) return { items: 0, missing: 0, conflicts: 0 };
        const notes = [noteOn(options, sides)];
        return { items: chain.entries, missing: news, conflicts: 0, notes };
      }),
    copy: (onProgress) =>
      using(true, async (sides) => {
        const { chain, noted, news } = await stateOf(sides);
        if (chain === undefined || news === 0) return 0;
        const { entries, head, name } = chain;
        await sides.target!.note({
          time: Date.now(),
          actor: options.actor,
          action: IMPORT,
          target: name,
          before: noted,
          after: { from: sides.source!.form, machine: hostname(), entries, head },
        });
        onProgress(entries, entries);
        return news;
      }),
  };
}

const noteOn = ({ path, to }: KeysMoveOptions, { source }: KeySides): string =>
  to === 'engines'
    ? `the entries stay in ${path}: keep that file. "hopgate audit verify --file" checks it, and its last hash is in the audit of the database.`
    : `the entries stay in the ${source!.form}, and their last hash is in the audit of this machine.`;

async function stateOf({ source, target }: KeySides): Promise<State> {
  const nothing = { chain: undefined, noted: null, news: 0 };
  if (source === undefined) return nothing;
  const { count, head, fault } = await source.verifyAudit();
  if (fault !== undefined) {
    throw new Error(`the audit of the ${source.form} is not whole: ${fault.message}`);
  }
  if (count === 0) return nothing;
  const [first] = await source.audit({ before: 2, limit: 1 });
  const name = `audit:${first!.hash.slice(0, 16)}`;
  const chain = { name, entries: count, head };
  const [note] = (await target?.audit({ target: name, limit: 1 })) ?? [];
  const noted = note?.after ?? null;
  const known = Number(noted?.entries ?? 0);
  await refuseOther(source, known, noted);
  return { chain, noted, news: (await hasNews(source, known, count)) ? count - known : 0 };
}

/** What was noted must still be there. */
async function refuseOther(
  source: MovableKeys,
  known: number,
  noted: JsonObject | null,
): Promise<void> {
  if (noted === null) return;
  const [entry] = await source.audit({ before: known + 1, limit: 1 });
  if (entry?.seq === known && entry.hash === noted.head) return;
  throw new Error(
    `the audit of the ${source.form} is not the one that the other side knows: entry ${known} is another one, or missing`,
  );
}

/** Notes about the other chain are no reason for one more note there. */
async function hasNews(source: MovableKeys, known: number, count: number): Promise<boolean> {
  for (let before = count + 1; before > known + 1; ) {
    const page = await source.audit({ before, limit: PAGE });
    if (page.some(({ seq, action }) => seq > known && action !== IMPORT)) return true;
    before = page.at(-1)?.seq ?? 0;
  }
  return false;
}
