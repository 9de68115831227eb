import { existsSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import type { EntryName } from '../../conversation/models/endpoint-names.ts';
import type { Objects, Sql } from '../../state/engines/engine.ts';
import { erasureTables, isErased } from '../../state/erasures.ts';
import {
  leftOut,
  type MoveDirection,
  type MovePass,
  type MoveProgress,
  pagedMove,
  type StateMove,
  sealedElsewhere,
  type TargetState,
} from '../../state/move/paged-move.ts';
import { clockAhead, databaseSide, pagesOf } from '../../state/move/sides.ts';
import type { TextSeal } from '../../state/text-seal.ts';
import type { SampleMeta } from '../sample.ts';
import { rowOf } from '../store/meta.ts';
import { readMeta, readWhole } from '../store/read-meta.ts';
import { addFile, ENTRIES, metaPath, namesOf, type SampleFile } from '../store/sample-files.ts';
import { openSampleStore } from '../store/sample-store.ts';
import { fetchBodies, UnreadableBodies } from './bodies.ts';
import {
  type KnownSamples,
  knownSamples,
  LocalFolder,
  metaFrom,
  SharingStore,
} from './folder-store.ts';
import { type ListedState, SampleList, spaceHash } from './list.ts';
import { Follower } from './sharing.ts';
import { Uploader } from './uploader.ts';

interface MoveSides {
  readonly database: Sql;
  readonly objects: Objects;
  readonly seal: TextSeal;
  /** The folder of this machine. */
  readonly root: string;
}

export interface SamplesMoveOptions extends MoveSides {
  readonly to: MoveDirection;
}

export const samplesMove = (options: SamplesMoveOptions): StateMove =>
  options.to === 'engines' ? uploadMove(options) : fetchMove(options);

const KIND = { name: 'samples', item: 'recorded exchange', engine: 'objects' } as const;
const READ_MS = 10_000;

const fetchMove = (options: MoveSides): StateMove =>
  pagedMove(KIND, (writes) => openedFetch(options, writes));

async function openedFetch(options: MoveSides, writes: boolean): Promise<MovePass<SampleMeta>> {
  const { database, root, seal } = options;
  const list = await databaseSide(database);
  if (writes) mkdirSync(root, { recursive: true, mode: 0o700 });
  const store = writes ? new SharingStore(root) : undefined;
  const folder = store && new LocalFolder(root, store);
  const known: KnownSamples = store ?? knownSamples(root);
  let sealed = 0;
  let lost = 0;
  const source = {
    async count() {
      const sql = `SELECT count(*) AS n FROM hopgate.samples WHERE ${LISTED}`;
      const [row] = await list.reader.query<{ n: number }>(sql);
      return row!.n;
    },
    async *pages() {
      sealed = 0;
      const sql = `SELECT seq, id, meta FROM hopgate.samples WHERE ${LISTED}`;
      for await (const rows of pagesOf<{ id: string; meta: Uint8Array }>(list, sql, ['seq'])) {
        const page = rows.flatMap(({ id, meta }) => metaFrom(seal, id, meta) ?? []);
        sealed += rows.length - page.length;
        yield page;
      }
    },
  };
  return {
    // The list is made with the table of erasures.
    source: list.has.has('samples') && list.has.has('erasures') ? source : undefined,
    target: { states: async (page) => page.map((meta) => stateHere(root, known, meta)) },
    async write(missing) {
      let written = 0;
      for (const meta of missing) {
        if (folder!.index.erased([rowOf(meta)]).length > 0) {
          // Known and not there: it does not come again.
          store!.add(meta);
          continue;
        }
        try {
          await fetchBodies(options, root, meta, meta.object!);
        } catch (thrown) {
          if (!(thrown instanceof UnreadableBodies)) throw thrown;
          lost++;
          continue;
        }
        folder!.take(meta);
        // A gateway that has the bodies in the object store, too, would make room with them.
        store!.hold(meta, 0);
        written++;
      }
      return written;
    },
    finish() {
      if (lost > 0)
        throw new Error(
          `the bodies of ${lost} cannot be read: they are removed, or sealed with another secret`,
        );
      if (sealed > 0) throw new Error(sealedElsewhere(sealed));
    },
    notes: (tally) => [
      ...leftOut(tally, 'on this machine'),
      ...(sealed > 0 ? [sealedElsewhere(sealed)] : []),
    ],
    close() {
      if (folder === undefined) known.close();
      else folder.close();
    },
  };
}

/** Listed for all replicas. Erased samples leave the list a moment later. */
const LISTED = `state = 'done' AND meta IS NOT NULL AND NOT (space IS NOT NULL AND ${isErased('space', 'began')})`;

function stateHere(
  root: string,
  known: KnownSamples,
  { id, entry, edges }: SampleMeta,
): TargetState {
  if (!existsSync(metaPath(root, entry, id))) return known.knows(id) ? 'removed' : 'missing';
  return edges.every(({ file }) => existsSync(join(root, entry, file))) ? 'there' : 'missing';
}

/** Milliseconds between two looks at what a gateway uploads, and for which it may upload nothing. */
const LOOK_MS = 1000;
const PATIENCE_MS = 60_000;

function uploadMove(options: MoveSides): StateMove {
  // A busy gateway always has something that it has not uploaded yet.
  const until = Date.now();
  const compared = pagedMove<FolderSample>(KIND, async () => {
    const known = knownSamples(options.root);
    return {
      source: { count: async () => 0, pages: () => folderSamples(options.root, known, until) },
      target: { states: await statesIn(options.database) },
      write: () => Promise.reject(new Error('samples are uploaded, not written')),
      notes: (tally) => leftOut(tally, 'there'),
      close: () => known.close(),
    };
  });
  return {
    ...compared,
    byItself: true,
    copy: (onProgress) => copied(options, compared, onProgress),
  };
}

/** The states of samples in the shared list. */
async function statesIn(
  database: Sql,
): Promise<(page: readonly FolderSample[]) => Promise<readonly TargetState[]>> {
  const { has } = await databaseSide(database);
  const ahead = await clockAhead(database);
  return async (page) => {
    const state = has.has('samples')
      ? '(SELECT s.state FROM hopgate.samples s WHERE s.id = g.id)'
      : 'NULL';
    const erased = has.has('erasures') ? isErased('g.space', 'g.began') : 'false';
    const rows = await database.query<{ state: ListedState | null; erased: boolean }>(
      `SELECT ${state} AS state, ${erased} AS erased
         FROM unnest($1::text[], $2::text[], $3::float8[]) WITH ORDINALITY AS g (id, space, began, place) ORDER BY place`,
      [
        page.map(({ id }) => id),
        page.map(({ space }) => space ?? null),
        page.map(({ time }) => time + ahead.least),
      ],
      READ_MS,
    );
    return rows.map((row, at): TargetState => {
      if (row.state === 'done') return 'there';
      if (row.state === 'gone' || page[at]!.isKnown) return 'removed';
      return row.erased ? 'erased' : 'missing';
    });
  };
}

async function copied(
  options: MoveSides,
  { compare }: Pick<StateMove, 'compare'>,
  onProgress: MoveProgress,
): Promise<number> {
  const { root } = options;
  if (!existsSync(root)) return 0;
  const { missing } = await compare();
  const store = new SharingStore(root);
  try {
    if (!store.leads()) return await followed(compare, missing, onProgress);
    await uploaded(options, store, (done) => onProgress(done, missing));
    return missing - (await compare()).missing;
  } finally {
    store.close();
  }
}

/** A gateway of this folder uploads: waits until it has done so. */
async function followed(
  compare: StateMove['compare'],
  all: number,
  onProgress: MoveProgress,
): Promise<number> {
  let left = all;
  for (let last = performance.now(); left > 0; ) {
    await Bun.sleep(LOOK_MS);
    const { missing } = await compare();
    if (missing < left) last = performance.now();
    left = missing;
    onProgress(all - left, all);
    if (performance.now() - last > PATIENCE_MS) {
      throw new Error(
        'another process works for this folder and uploads nothing: does a gateway with other engines run here?',
      );
    }
  }
  return all - left;
}

async function uploaded(
  { root, database, objects, seal }: MoveSides,
  store: SharingStore,
  onDone: (count: number) => void,
): Promise<void> {
  // The uploader goes by the index: it is brought in line with the files.
  const local = openSampleStore(root);
  local.list({ limit: 1 });
  local.close();
  const table = new SampleList(database, { prepared: erasureTables(database) });
  const folder = new LocalFolder(root, store);
  let problem: unknown;
  let done = 0;
  const common = { folder, table, seal, onRemoved() {}, onProblem() {} };
  await table.ready();
  // One that was with engines before may hold samples of others, which went meanwhile.
  if (store.position > 0) await new Follower({ ...common, onRow() {} }).run();
  const uploader = new Uploader({
    ...common,
    objects,
    onListed: () => onDone(++done),
    onProblem(what) {
      problem ??= new Error(what);
    },
  });
  try {
    await uploader.run();
  } finally {
    folder.closeIndex();
  }
  if (problem !== undefined) throw problem;
}

interface FolderSample {
  readonly id: string;
  readonly entry: EntryName;
  /** In milliseconds since 1970. */
  readonly time: number;
  /** Hash of its memory space. */
  readonly space: string | undefined;
  /** The shared list had it. */
  readonly isKnown: boolean;
}

const FOLDER_PAGE = 200;

/**
 * Some at a time, entry by entry.
 * @param until in milliseconds since 1970: those that began later are left out
 */
function* folderSamples(
  root: string,
  known: KnownSamples,
  until: number,
): Generator<readonly FolderSample[]> {
  let page: FolderSample[] = [];
  for (const entry of ENTRIES) {
    const samples = new Map<string, SampleFile[]>();
    for (const name of namesOf(root, entry)) addFile(samples, name);
    for (const [id, files] of samples) {
      const meta = readWhole(root, entry, id) ?? readMeta(root, entry, id, files);
      if (meta.state === 'open' || meta.time > until || !isOwn(meta, known)) continue;
      const space = meta.memory_space ?? '';
      page.push({
        id,
        entry,
        time: meta.time,
        space: space === '' ? undefined : spaceHash(space),
        isKnown: known.knows(id),
      });
      if (page.length < FOLDER_PAGE) continue;
      yield page;
      page = [];
    }
  }
  if (page.length > 0) yield page;
}

/** Samples of other replicas come with the shared list, under the names of their folders. */
const isOwn = ({ object }: SampleMeta, { replica }: KnownSamples): boolean =>
  object === undefined || object.key.split('/').at(-2) === replica;
