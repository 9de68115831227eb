/** Moves stored responses between the file of a machine and the database of all replicas. */

import type { Sql } from '../../../state/engines/engine.ts';
import { batchesOf, originOf } from '../../../state/moving/moved-items.ts';
import {
  erasedHere,
  erasedThere,
  type MovePass,
  outdatedFile,
  pagedMove,
  removedHere,
  removedThere,
  sealedElsewhere,
} from '../../../state/moving/paged-move.ts';
import type { MoveDirection, StateMove } from '../../../state/state-move.ts';
import type { TextSeal } from '../../../state/text-seal.ts';
import { openResponseFile, type TakenRow } from '../sqlite-store.ts';
import { pack } from '../stored-response.ts';
import { type EngineKey, EngineRows } from './engine-rows.ts';
import { FileRows, type RowKey } from './file-rows-store.ts';

export interface ResponsesMoveOptions {
  readonly database: Sql;
  readonly seal: TextSeal;
  /** The file of this machine. */
  readonly path: string;
  readonly to: MoveDirection;
}

// Of one transaction.
const BATCH = 64;
const BATCH_BYTES = 2_000_000;
/** Milliseconds to wait for a gateway that writes. */
const BUSY_MS = 5000;

export function responsesMove(options: ResponsesMoveOptions): StateMove {
  const facts = { name: 'responses', item: 'response', engine: 'database' } as const;
  return options.to === 'engines'
    ? pagedMove<RowKey>({ ...facts, open: (writes) => toEngines(options, writes) })
    : pagedMove<EngineKey>({ ...facts, open: (writes) => toFile(options, writes) });
}

async function toEngines(
  { path, ...rest }: ResponsesMoveOptions,
  writes: boolean,
): Promise<MovePass<RowKey>> {
  const file = FileRows.open(path);
  const engines = await EngineRows.open(
    { ...rest, origin: originOf(path) },
    writes && file !== undefined,
  );
  return {
    count: () => file?.count() ?? 0,
    pages: () => file?.pages() ?? [],
    standings: (page) => engines.standings(page),
    async write(missing) {
      let written = 0;
      for (const batch of batchesOf(missing, BATCH, BATCH_BYTES)) {
        const rows = batch.flatMap((key) => {
          const row = file!.read(key);
          return row === undefined ? [] : [{ ...row, key }];
        });
        written += await engines.write(rows);
      }
      return written;
    },
    async notes(tally) {
      const left = file === undefined ? 0 : await leftThere(file, engines);
      const unusable = file?.unusable ?? 0;
      return [
        ...(unusable > 0 ? [`${unusable} have ids that the database cannot hold.`] : []),
        ...removedThere(tally),
        ...erasedThere(tally, 'memory space'),
        ...(left > 0
          ? [
              `${left} that were on both sides are not on this machine any more, but still there: delete there what must not stay.`,
            ]
          : []),
      ];
    },
    close: () => file?.close(),
  };
}

/** How many are still in the engines of those that were copied one way or the other, and removed from the file. */
async function leftThere(file: FileRows, engines: EngineRows): Promise<number> {
  let count = 0;
  for await (const page of engines.moved()) {
    count += await engines.have(page.filter(({ owner, id }) => !file.has(owner, id)));
  }
  for (const page of file.removed()) count += await engines.have(page, 'not moved');
  return count;
}

async function toFile(
  options: ResponsesMoveOptions,
  writes: boolean,
): Promise<MovePass<EngineKey>> {
  const { path, ...rest } = options;
  const engines = await EngineRows.open({ ...rest, origin: originOf(path) }, false);
  const target = writes ? openResponseFile(path, BUSY_MS) : undefined;
  const file = FileRows.open(path);
  let sealed = 0;
  return {
    count: () => engines.count(),
    pages: () => engines.pages(),
    standings: (page) => page.map((key) => file?.standing(key) ?? 'missing'),
    async write(missing) {
      let written = 0;
      for (const batch of batchesOf(missing, BATCH, BATCH_BYTES)) {
        const rows: TakenRow[] = [];
        for (const { thread, used, ...key } of batch) {
          const response = await engines.read(key);
          if (response === 'sealed') sealed++;
          else if (response !== undefined) {
            rows.push({ row: pack(response), thread: numberOf(thread), used });
          }
        }
        written += target!.take(rows);
      }
      return written;
    },
    finish() {
      if (sealed > 0) throw new Error(sealedElsewhere(sealed));
    },
    async notes(tally) {
      const there = await toEngines({ ...options, to: 'engines' }, false);
      return [
        ...removedHere(tally),
        ...erasedHere(tally, 'memory space'),
        ...(await outdatedFile(path, there)),
      ];
    },
    close() {
      file?.close();
      target?.close();
    },
  };
}

/** The number of a conversation in a file: the same for the same name, and far from those that a file gives out. */
const numberOf = (thread: string): number =>
  Number.parseInt(new Bun.CryptoHasher('sha256').update(thread).digest('hex').slice(0, 12), 16) +
  2 ** 32;
