/** Uploads what a folder recorded before it had engines, as a gateway with engines does it: by that gateway, where one runs. */

import { existsSync } from 'node:fs';
import type { Objects, Sql } from '../../state/engines/engine.ts';
import { clockAhead, tablesThere } from '../../state/moving/moved-items.ts';
import {
  erasedThere,
  pagedMove,
  removedThere,
  type Standing,
} from '../../state/moving/paged-move.ts';
import { erasureTables, isErased } from '../../state/shared-erasures.ts';
import type { StateMove } from '../../state/state-move.ts';
import type { TextSeal } from '../../state/text-seal.ts';
import { Follower } from '../shared/follower.ts';
import { LocalFolder } from '../shared/local-folder.ts';
import { type SharedState, SharedTable } from '../shared/shared-table.ts';
import { SharingStore } from '../shared/sharing-store.ts';
import { Uploader } from '../shared/uploader.ts';
import { openSampleStore } from '../store/sample-store.ts';
import { type FolderSample, folderSamples } from './folder-samples.ts';
import { knownSamples } from './known-samples-store.ts';

export interface UploadMoveOptions {
  readonly database: Sql;
  readonly objects: Objects;
  readonly seal: TextSeal;
  readonly root: string;
}

const READ_MS = 10_000;
/** Milliseconds between two looks at what a gateway uploads, and for which it may upload nothing. */
const LOOK_MS = 1000;
const PATIENCE_MS = 60_000;

export function uploadMove(options: UploadMoveOptions): StateMove {
  // A busy gateway always has something that it has not uploaded yet.
  const until = Date.now();
  const compared = pagedMove<FolderSample>({
    name: 'samples',
    item: 'recorded exchange',
    engine: 'objects',
    open: async () => {
      const { root } = options;
      const known = knownSamples(root);
      const standings = await standingsIn(options.database);
      return {
        count: () => 0,
        pages: () => folderSamples(root, known, until),
        standings,
        write: () => Promise.reject(new Error('samples are uploaded, not written')),
        notes: (tally) => [...removedThere(tally), ...erasedThere(tally, 'memory space')],
        close: () => known.close(),
      };
    },
  });
  return {
    ...compared,
    byItself: true,
    copy: (onProgress) => copied(options, compared, onProgress),
  };
}

/** How samples stand in the shared list. */
async function standingsIn(
  database: Sql,
): Promise<(page: readonly FolderSample[]) => Promise<readonly Standing[]>> {
  const there = await tablesThere(database, ['samples', 'erasures']);
  const ahead = await clockAhead(database);
  return async (page) => {
    const state = there.has('samples')
      ? '(SELECT s.state FROM hopgate.samples s WHERE s.id = g.id)'
      : 'NULL';
    const erased = there.has('erasures') ? isErased('g.space', 'g.began') : 'false';
    const rows = await database.query<{ state: SharedState | null; erased: boolean }>(
      `SELECT ${state} AS state, ${erased} AS erased
         FROM unnest($1::text[], $2::text[], $3::float8[]) WITH ORDINALITY AS g (id, space, began, place) ORDER BY place`,
      [
        page.map(({ id }) => id),
        page.map(({ space }) => space ?? null),
        page.map(({ time }) => time + ahead.least),
      ],
      READ_MS,
    );
    return rows.map((row, at): Standing => {
      if (row.state === 'done') return 'there';
      if (row.state === 'gone' || page[at]!.isKnown) return 'removed';
      return row.erased ? 'erased' : 'missing';
    });
  };
}

async function copied(
  options: UploadMoveOptions,
  { compare }: Pick<StateMove, 'compare'>,
  onProgress: (done: number, all: number) => void,
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
  onProgress: (done: number, all: number) => void,
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
  { root, database, objects, seal }: UploadMoveOptions,
  store: SharingStore,
  onDone: (count: number) => void,
): Promise<void> {
  // The uploader goes by the index: it is brought in line with the files.
  const local = openSampleStore(root);
  local.list({ limit: 1 });
  local.close();
  const table = new SharedTable(database, { prepared: erasureTables(database) });
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
