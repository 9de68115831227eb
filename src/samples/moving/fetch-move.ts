/** Brings recorded exchanges of all replicas into the folder of a machine, where a gateway without engines finds them. */

import { existsSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { isObject, tryParse } from '../../lib/json/json.ts';
import type { Objects, Sql } from '../../state/engines/engine.ts';
import { tablesThere } from '../../state/moving/moved-items.ts';
import {
  type MovePass,
  pagedMove,
  removedHere,
  type Standing,
  sealedElsewhere,
} from '../../state/moving/paged-move.ts';
import { isErased } from '../../state/shared-erasures.ts';
import type { StateMove } from '../../state/state-move.ts';
import type { TextSeal } from '../../state/text-seal.ts';
import type { SampleMeta } from '../sample.ts';
import { fetchBodies, UnreadableBodies } from '../shared/bodies.ts';
import { isUsable, LocalFolder } from '../shared/local-folder.ts';
import { SharingStore } from '../shared/sharing-store.ts';
import { metaPlace } from '../shared/uploader.ts';
import { rowOf } from '../store/meta.ts';
import { metaPath } from '../store/sample-files.ts';
import { type KnownSamples, knownSamples } from './known-samples-store.ts';

export interface FetchMoveOptions {
  readonly database: Sql;
  readonly objects: Objects;
  readonly seal: TextSeal;
  readonly root: string;
}

const PAGE = 100;
const READ_MS = 10_000;

export function fetchMove(options: FetchMoveOptions): StateMove {
  return pagedMove<SampleMeta>({
    name: 'samples',
    item: 'recorded exchange',
    engine: 'objects',
    open: (writes) => opened(options, writes),
  });
}

async function opened(options: FetchMoveOptions, writes: boolean): Promise<MovePass<SampleMeta>> {
  const { database, root } = options;
  const there = await tablesThere(database, ['samples', 'erasures']);
  // The list is made with the table of erasures.
  const isShared = there.has('samples') && there.has('erasures');
  if (writes) mkdirSync(root, { recursive: true, mode: 0o700 });
  const store = writes ? new SharingStore(root) : undefined;
  const folder = store && new LocalFolder(root, store);
  const known: KnownSamples =
    store === undefined
      ? knownSamples(root)
      : { replica: store.replica, knows: (id) => store.knows(id), close() {} };
  let sealed = 0;
  let lost = 0;
  return {
    async count() {
      if (!isShared) return 0;
      const [row] = await database.query<{ n: number }>(
        `SELECT count(*) AS n FROM hopgate.samples WHERE ${LISTED}`,
        [],
        READ_MS,
      );
      return row!.n;
    },
    async *pages() {
      sealed = 0;
      if (!isShared) return;
      for (let last = 0; ; ) {
        const rows = await database.query<{ seq: number; id: string; meta: Uint8Array }>(
          `SELECT seq, id, meta FROM hopgate.samples WHERE seq > $1 AND ${LISTED} ORDER BY seq LIMIT ${PAGE}`,
          [last],
          READ_MS,
        );
        const page = rows.flatMap(({ id, meta }) => metaOf(options.seal, id, meta) ?? []);
        sealed += rows.length - page.length;
        if (page.length > 0) yield page;
        if (rows.length < PAGE) return;
        last = rows.at(-1)!.seq;
      }
    },
    standings: (page) => page.map((meta) => standingOf(root, known, meta)),
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
    notes: (tally) => [...removedHere(tally), ...(sealed > 0 ? [sealedElsewhere(sealed)] : [])],
    close() {
      known.close();
      folder?.close();
    },
  };
}

/** Of the shared list: what was erased leaves it a moment later. */
const LISTED = `state = 'done' AND meta IS NOT NULL AND NOT (space IS NOT NULL AND ${isErased('space', 'began')})`;

function metaOf(seal: TextSeal, id: string, stored: Uint8Array): SampleMeta | undefined {
  const text = seal.open(stored, metaPlace(id));
  const value = text && tryParse(Buffer.from(text).toString('utf8'));
  const meta = isObject(value) ? (value as unknown as SampleMeta) : undefined;
  return meta?.id === id && isUsable(meta) ? meta : undefined;
}

function standingOf(root: string, known: KnownSamples, { id, entry, edges }: SampleMeta): Standing {
  if (!existsSync(metaPath(root, entry, id))) return known.knows(id) ? 'removed' : 'missing';
  return edges.every(({ file }) => existsSync(join(root, entry, file))) ? 'there' : 'missing';
}
