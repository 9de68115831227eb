/** Moves keys with the digests of their secrets, and the hash of the audit, between the file of a machine and the database of all replicas. */

import { hostname } from 'node:os';
import type { JsonObject } from '../lib/json/json.ts';
import type { KeyValue } from '../state/engines/engine.ts';
import {
  type MoveComparison,
  type MovePass,
  type MoveProgress,
  NOTHING,
  pagedMove,
  type StateMove,
  stateMove,
  type TargetState,
} from '../state/move/paged-move.ts';
import { type MoveOptions, openSides, type Side } from '../state/move/sides.ts';
import { openSqliteToRead } from '../state/sql/sqlite.ts';
import { auditView } from './audit-chain.ts';
import type { KeyChange, SecretRecord } from './key-records.ts';
import { KeyStore, type PlannedChange } from './key-store.ts';
import { KEY_FILE, KEYS_CHANNEL } from './run-time-keys.ts';
import { KEYS_SCHEMA } from './schema.ts';

export interface KeysMoveOptions extends MoveOptions {
  /** Replicas that run hear of changes by it. */
  readonly cache: KeyValue | undefined;
  /** For the audit: who moves. */
  readonly actor: string;
}

/** Milliseconds in which the cache must take the hint. */
const HINT_MS = 2000;

/** The file to look at, which stays as it is; undefined: there is none. @throws Error with a message for people */
export function keyFileToRead(path: string): KeyStore | undefined {
  const file = openSqliteToRead(KEYS_SCHEMA, path);
  return file && new KeyStore(file);
}

/** Both sides; undefined: there is nothing yet on that side. */
async function openKeys(options: KeysMoveOptions, writes: boolean) {
  const { source, target, close } = await openSides(KEYS_SCHEMA, options, {
    writes: writes ? 'target' : undefined,
    file: KEY_FILE,
  });
  const storeOf = (side: Side | undefined) =>
    side?.has.has('keys') ? new KeyStore(side.db) : undefined;
  return { source: storeOf(source), target: storeOf(target), close };
}

type KeySides = Awaited<ReturnType<typeof openKeys>>;

const KEYS_PAGE = 500;
/** Ids that a note names. */
const MAX_NAMED = 10;

export const keysMove = (options: KeysMoveOptions): StateMove =>
  pagedMove<KeyChange>({ name: 'keys', item: 'key', engine: 'database' }, async (writes) =>
    passOver(await openKeys(options, writes), options),
  );

function passOver(sides: KeySides, { actor, cache, to }: KeysMoveOptions): MovePass<KeyChange> {
  const { source, target, close } = sides;
  /** Ids of the first keys that differ. */
  const named: string[] = [];
  return {
    source: source && { count: () => source.count(), pages: () => pagesOf(source) },
    target: target && {
      async states(page) {
        const there = await target.many(page.map(({ record: { id } }) => id));
        const byId = new Map(there.map((one) => [one.record.id, one]));
        return page.map((one) => {
          const state = targetStateOf(one, byId.get(one.record.id));
          if (state === 'differs' && named.length < MAX_NAMED) named.push(one.record.id);
          return state;
        });
      },
    },
    async write(missing) {
      let written = 0;
      for (const one of missing) {
        try {
          await target!.change(one.record.id, (now) => planFor(one, now, actor));
          written++;
        } catch (thrown) {
          if (!(thrown instanceof Overtaken)) throw thrown;
        }
      }
      // Running gateways read the keys again.
      if (to === 'engines') await cache?.publish(KEYS_CHANNEL, '', HINT_MS).catch(() => {});
      return written;
    },
    notes: ({ differs }) =>
      differs === 0
        ? []
        : [
            `${differs} were changed on both sides since they were the same, and stay as they are on each (${named.join(', ')}${differs > named.length ? ' …' : ''}). A change on one side makes that one the newer.`,
          ],
    close,
  };
}

async function* pagesOf(keys: KeyStore): AsyncGenerator<readonly KeyChange[]> {
  for (let after = ''; ; ) {
    const page = await keys.page(after, KEYS_PAGE);
    if (page.length > 0) yield page;
    if (page.length < KEYS_PAGE) return;
    after = page.at(-1)!.record.id;
  }
}

/** Between the comparison and the change, the target got what it lacked. */
class Overtaken extends Error {
  override readonly name = 'Overtaken';
}

/**
 * A revoked key stays revoked. Else the greater version is the newer one. Two machines' clocks are not compared: a
 * key that was changed as often on both sides is left alone.
 */
function targetStateOf(ours: KeyChange, theirs: KeyChange | undefined): TargetState {
  if (theirs === undefined) return 'missing';
  const [own, other] = [ours.record, theirs.record];
  if (own.revoked !== undefined && other.revoked === undefined) return 'missing';
  if (own.revoked === undefined && other.revoked !== undefined) return 'there';
  if (own.version !== other.version) return own.version > other.version ? 'missing' : 'there';
  return isSameKey(ours, theirs) ? 'there' : 'differs';
}

function planFor(ours: KeyChange, now: KeyChange | undefined, actor: string): PlannedChange {
  if (targetStateOf(ours, now) !== 'missing') throw new Overtaken('nothing is missing any more');
  const { record, secrets } = now === undefined ? ours : replaced(ours, now);
  const before = now === undefined ? null : auditView(now);
  const audit = {
    time: Date.now(),
    actor,
    action: 'key.import',
    before,
    after: auditView({ record, secrets }),
  };
  return { record, secrets, audit };
}

/** Keeps changes made after the revocation on the other side, and revokes the key. */
function replaced(ours: KeyChange, now: KeyChange): KeyChange {
  if (ours.record.version >= now.record.version) return ours;
  const { revoked } = ours.record;
  const version = now.record.version + 1;
  return { record: { ...now.record, version, updated: Date.now(), revoked }, secrets: [] };
}

const isSameKey = (one: KeyChange, other: KeyChange): boolean =>
  Bun.deepEquals(one.record, other.record) &&
  Bun.deepEquals(one.secrets.map(factsOf).sort(), other.secrets.map(factsOf).sort());

const factsOf = ({ digest, created, until }: SecretRecord) =>
  `${digest} ${created} ${until ?? 'always'}`;

const IMPORT = 'audit.import';
const ENTRIES_PAGE = 1000;

/** A chain as it was read, whole. */
interface Chain {
  /** Target of the notes about it in other chains: its first entry is unique. */
  readonly name: string;
  readonly entries: number;
  readonly head: string;
}

/** The source's chain, the target's note of it, and how many entries came since. */
interface ChainState {
  readonly chain: Chain | undefined;
  readonly noted: JsonObject | null;
  readonly news: number;
}

/**
 * Two chains cannot become one: each entry holds the hash of the one before it. The entries stay where they are, and
 * the target's chain gets an entry with their number and their last hash. It proves later that they are the same.
 */
export const auditMove = (options: KeysMoveOptions): StateMove =>
  stateMove(
    { name: 'audit', item: 'entry', engine: 'database' },
    (writes) => openKeys(options, writes),
    async (sides): Promise<MoveComparison> => {
      const { chain, news } = await stateOf(sides);
      if (chain === undefined) return NOTHING;
      const notes = [noteOn(options, sides)];
      return { items: chain.entries, missing: news, conflicts: 0, notes };
    },
    (sides, onProgress) => copyHead(options, sides, onProgress),
  );

async function copyHead(
  { actor }: KeysMoveOptions,
  sides: KeySides,
  onProgress: MoveProgress,
): Promise<number> {
  const { chain, noted, news } = await stateOf(sides);
  if (chain === undefined || news === 0) return 0;
  const { entries, head, name } = chain;
  await sides.target!.note({
    time: Date.now(),
    actor,
    action: IMPORT,
    target: name,
    before: noted,
    after: { from: sides.source!.form, machine: hostname(), entries, head },
  });
  onProgress(entries, entries);
  return news;
}

const noteOn = ({ path, to }: KeysMoveOptions, { source }: KeySides): string =>
  to === 'engines'
    ? `the entries stay in ${path}: keep that file. "hopgate audit verify --file" checks it, and its last hash is in the audit of the database.`
    : `the entries stay in the ${source!.form}, and their last hash is in the audit of this machine.`;

async function stateOf({ source, target }: KeySides): Promise<ChainState> {
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

/** The noted entry must still be there. */
async function refuseOther(
  source: KeyStore,
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
async function hasNews(source: KeyStore, known: number, count: number): Promise<boolean> {
  for (let before = count + 1; before > known + 1; ) {
    const page = await source.audit({ before, limit: ENTRIES_PAGE });
    if (page.some(({ seq, action }) => seq > known && action !== IMPORT)) return true;
    before = page.at(-1)?.seq ?? 0;
  }
  return false;
}
