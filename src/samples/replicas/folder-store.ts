/** The folder of samples as one replica's part of the list: how far it follows, which samples are uploaded, which bodies lie here. */

import type { Database } from 'bun:sqlite';
import { existsSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import type { EntryName } from '../../conversation/models/endpoint-names.ts';
import { isObject, tryParse } from '../../lib/json/json.ts';
import { runInSlices } from '../../lib/loop/steps.ts';
import { randomBase36 } from '../../lib/text/ids.ts';
import { openSource } from '../../state/sql/sqlite.ts';
import type { TextSeal } from '../../state/text-seal.ts';
import { openPrivate, openStateFile, type Tables } from '../../state/versioned-store.ts';
import type { SampleMeta, SampleRow, SharedBodies } from '../sample.ts';
import { openIndex, type SampleIndexFile } from '../store/index-store.ts';
import { rowOf } from '../store/meta.ts';
import { readMeta, readWhole } from '../store/read-meta.ts';
import { putUnerased, removeFiles } from '../store/retention.ts';
import {
  ENTRIES,
  entryFolder,
  filesOf,
  isFileOf,
  isId,
  metaPath,
  replaceFile,
} from '../store/sample-files.ts';

/** `held`: bytes of its bodies on this disk; `used`: when they were written or read last, in ms since 1970. */
const TABLES: Tables = {
  version: 1,
  create: `CREATE TABLE state (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE known (
  id TEXT PRIMARY KEY, entry TEXT NOT NULL, held INTEGER NOT NULL DEFAULT 0, used REAL NOT NULL DEFAULT 0,
  seen INTEGER NOT NULL DEFAULT 1
) WITHOUT ROWID;
CREATE INDEX known_held ON known (used) WHERE held > 0;`,
};

export interface KnownSample {
  readonly id: string;
  readonly entry: EntryName;
}

/** Samples of one answer. */
const PAGE = 100;

export class SharingStore {
  readonly #db: Database;
  readonly #lockPath: string;
  #lock: Database | undefined;
  /** The name of this folder in the shared list, made once. */
  readonly replica: string;

  /** @throws SQLiteError */
  constructor(root: string) {
    this.#db = openStateFile({ path: join(root, 'shared.db'), tables: TABLES, busy: 500 });
    this.#lockPath = join(root, 'shared.lock');
    this.#db
      .query("INSERT OR IGNORE INTO state VALUES ('replica', ?)")
      .run(randomBase36(12).toLowerCase());
    this.replica = this.#read('replica')!;
  }

  /**
   * Whether this process is the one that works for the folder: workers, and the two processes of a restart, have the
   * same. The system frees the lock when a process dies.
   */
  leads(): boolean {
    if (this.#lock !== undefined) return true;
    const lock = openPrivate(this.#lockPath, 0);
    try {
      lock.run('BEGIN EXCLUSIVE');
      this.#lock = lock;
      return true;
    } catch {
      lock.close();
      return false;
    }
  }

  /** The last number of the shared list that was followed. */
  get position(): number {
    return Number(this.#read('position') ?? 0);
  }

  set position(seq: number) {
    this.#db.query("INSERT OR REPLACE INTO state VALUES ('position', ?)").run(`${seq}`);
  }

  /** The shared list has the sample. */
  knows(id: string): boolean {
    return this.#db.query('SELECT 1 FROM known WHERE id = ?').get(id) !== null;
  }

  /** How many of these the shared list does not have. */
  unknown(ids: readonly string[]): number {
    return this.#db
      .query<{ count: number }, [string]>(
        'SELECT count(*) AS count FROM json_each(?) WHERE value NOT IN (SELECT id FROM known)',
      )
      .get(JSON.stringify(ids))!.count;
  }

  add({ id, entry }: KnownSample): void {
    this.#db
      .query('INSERT INTO known (id, entry) VALUES (?, ?) ON CONFLICT (id) DO UPDATE SET seen = 1')
      .run(id, entry);
  }

  /** Its bodies lie here and were just used. */
  hold({ id, entry }: KnownSample, bytes: number): void {
    this.#db
      .query(
        `INSERT INTO known (id, entry, held, used) VALUES (?1, ?2, ?3, ?4)
           ON CONFLICT (id) DO UPDATE SET held = ?3, used = ?4`,
      )
      .run(id, entry, bytes, Date.now());
  }

  remove(id: string): void {
    this.#db.query('DELETE FROM known WHERE id = ?').run(id);
  }

  /** The list is followed from its beginning once more: what is not added again is gone. */
  startOver(): void {
    this.#db.run('UPDATE known SET seen = 0');
    this.position = 0;
  }

  /** A page of what was not added again. */
  unseen(): readonly KnownSample[] {
    return this.#db
      .query<KnownSample, [number]>('SELECT id, entry FROM known WHERE seen = 0 LIMIT ?')
      .all(PAGE);
  }

  /** Samples whose bodies lie here beyond this many bytes, the least recently used ones first; a page. */
  beyond(bytes: number): readonly KnownSample[] {
    const { held } = this.#db
      .query<{ held: number }, []>(
        'SELECT coalesce(sum(held), 0) AS held FROM known WHERE held > 0',
      )
      .get()!;
    let over = held - bytes;
    if (over <= 0) return [];
    const oldest = this.#db
      .query<KnownSample & { held: number }, [number]>(
        'SELECT id, entry, held FROM known WHERE held > 0 ORDER BY used LIMIT ?',
      )
      .all(PAGE);
    return oldest.filter((one) => {
      const wanted = over > 0;
      over -= one.held;
      return wanted;
    });
  }

  close(): void {
    this.#lock?.close();
    this.#lock = undefined;
    this.#db.close();
  }

  #read(name: string): string | undefined {
    return this.#db
      .query<{ value: string }, [string]>('SELECT value FROM state WHERE name = ?')
      .get(name)?.value;
  }
}

export interface KnownSamples {
  /** The name of the folder in the shared list; undefined: it was never in one. */
  readonly replica: string | undefined;
  /** The shared list had the sample. */
  knows(id: string): boolean;
  close(): void;
}

/** @throws Error with a message for people */
export function knownSamples(root: string): KnownSamples {
  const file = openSource(join(root, 'shared.db'), TABLES.version);
  if (file === undefined) return { replica: undefined, knows: () => false, close() {} };
  const { db } = file;
  const row = db
    .query<{ value: string }, []>("SELECT value FROM state WHERE name = 'replica'")
    .get();
  const known = db.query<unknown, [string]>('SELECT 1 FROM known WHERE id = ?');
  return {
    replica: row?.value,
    knows: (id) => known.get(id) !== null,
    close: () => db.close(),
  };
}

export class LocalFolder {
  #index: SampleIndexFile | undefined;

  constructor(
    readonly root: string,
    readonly store: SharingStore,
  ) {}

  get index(): SampleIndexFile {
    this.#index ??= openIndex(this.root);
    return this.#index;
  }

  /** A finished sample of this folder; undefined: it was removed. */
  read({ id, entry }: KnownSample): SampleMeta | undefined {
    const whole = readWhole(this.root, entry, id);
    if (whole !== undefined) return whole;
    const files = filesOf(this.root, entry, id);
    return files.length === 0 ? undefined : readMeta(this.root, entry, id, files);
  }

  /** Takes in a sample of the shared list; returns its row where it is new here and stays. */
  take(meta: SampleMeta): SampleRow | undefined {
    const { id, entry, object } = meta;
    const path = metaPath(this.root, entry, id);
    if (existsSync(path)) {
      if (object !== undefined) this.mark(this.read(meta) ?? meta, object);
      this.store.add(meta);
      return undefined;
    }
    entryFolder(this.root, entry);
    replaceFile(path, JSON.stringify(meta, null, 1));
    const row = rowOf(meta);
    const erased = putUnerased(this.index, this.root, [row]);
    this.store.add(meta);
    return erased.length === 0 ? row : undefined;
  }

  /** Writes into a sample where its bodies are. One that was removed meanwhile does not come back. */
  mark(meta: SampleMeta, object: SharedBodies): void {
    const path = metaPath(this.root, meta.entry, meta.id);
    if (existsSync(path)) replaceFile(path, JSON.stringify({ ...meta, object }, null, 1));
  }

  /** Removes samples that are gone from the shared list; returns those that were here. */
  async remove(ids: readonly string[]): Promise<readonly string[]> {
    const here = ids.filter((id) => {
      const entry = ENTRIES.find((one) => existsSync(metaPath(this.root, one, id)));
      if (entry === undefined) return false;
      removeFiles(this.root, rowOf(this.read({ id, entry })!));
      return true;
    });
    this.index.remove(ids);
    for (const id of ids) this.store.remove(id);
    if (here.length > 0) {
      await runInSlices(this.index.texts.tidy());
      await runInSlices(this.index.texts.scrub());
      this.index.scrub();
    }
    return here;
  }

  /** Removes bodies of samples that the object store has, until at most so many bytes of them are here. */
  evict(bytes: number): void {
    for (let some = this.store.beyond(bytes); some.length > 0; some = this.store.beyond(bytes)) {
      for (const one of some) {
        const meta = readWhole(this.root, one.entry, one.id);
        if (meta?.object !== undefined) {
          for (const { file } of meta.edges)
            rmSync(join(this.root, one.entry, file), { force: true });
        }
        this.store.hold(one, 0);
      }
    }
  }

  closeIndex(): void {
    this.#index?.close();
    this.#index = undefined;
  }

  close(): void {
    this.closeIndex();
    this.store.close();
  }
}

/** Where the meta of a sample is stored, for its seal. */
export const metaPlace = (id: string) => `samples meta ${id}`;

/** The meta of a sample of the shared list; undefined: it cannot be opened, or its names cannot be used here. */
export function metaFrom(seal: TextSeal, id: string, sealed: Uint8Array): SampleMeta | undefined {
  const text = seal.open(sealed, metaPlace(id));
  const value = text && tryParse(Buffer.from(text).toString('utf8'));
  const meta = isObject(value) ? (value as unknown as SampleMeta) : undefined;
  return meta?.id === id && isUsable(meta) ? meta : undefined;
}

/** Whether names in a meta that came from outside can be used as names of files here. */
function isUsable(meta: SampleMeta): boolean {
  const { id, entry, edges, object } = meta;
  return (
    typeof id === 'string' &&
    isId(id) &&
    ENTRIES.includes(entry) &&
    Array.isArray(edges) &&
    object !== undefined &&
    edges.every(({ file, stage }) => isFileOf(id, stage, file) && stage !== 'meta')
  );
}
