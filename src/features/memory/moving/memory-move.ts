/** Moves the memory between the file of a machine and the database of all replicas. */

import { printableLine } from '../../../lib/text/printable-text.ts';
import type { Sql } from '../../../state/engines/engine.ts';
import { batchesOf, originOf } from '../../../state/move/moved-items.ts';
import {
  erasedHere,
  erasedThere,
  type MovePass,
  outdatedFile,
  pagedMove,
  removedHere,
  removedThere,
  sealedElsewhere,
} from '../../../state/move/paged-move.ts';
import type { MoveDirection, StateMove } from '../../../state/move/state-move.ts';
import type { TextSeal } from '../../../state/text-seal.ts';
import type { MemoryLimits } from '../event.ts';
import { EngineEvents, vectorKey } from './engine-events.ts';
import { FileEvents, fileEventWriter } from './file-events-store.ts';
import type { MovedEvent } from './moved-event.ts';

export interface MemoryMoveOptions {
  readonly database: Sql;
  readonly seal: TextSeal;
  readonly limits: MemoryLimits;
  /** The file of this machine. */
  readonly path: string;
  readonly to: MoveDirection;
}

// Of one transaction: all of it is indexed.
const BATCH = 100;
const BATCH_BYTES = 64_000;

export function memoryMove(options: MemoryMoveOptions): StateMove {
  return pagedMove<MovedEvent>({
    name: 'memory',
    item: 'memory event',
    engine: 'database',
    open: (writes) =>
      options.to === 'engines' ? toEngines(options, writes) : toFile(options, writes),
  });
}

async function toEngines(
  { path, ...rest }: MemoryMoveOptions,
  writes: boolean,
): Promise<MovePass<MovedEvent>> {
  const file = FileEvents.open(path);
  const own = { ...rest, origin: originOf(path) };
  const engines = await EngineEvents.open(own, writes && file !== undefined);
  return {
    count: () => file?.count() ?? 0,
    pages: () => file?.pages() ?? [],
    standings: (page) => engines.standings(page),
    async write(missing) {
      let written = 0;
      for (const batch of batchesOf(missing, BATCH, BATCH_BYTES)) {
        const given = batch.map((one) => ({ ...one, vector: file!.vector(one) }));
        written += await engines.write(given);
      }
      return written;
    },
    async notes(tally) {
      return [
        ...removedThere(tally),
        ...erasedThere(tally, 'space'),
        ...(file === undefined ? [] : await leftThere(file, engines)),
      ];
    },
    close: () => file?.close(),
  };
}

/** A message names at most so many spaces. */
const MAX_NAMES = 5;

/** What is still in the engines of what was copied one way or the other, and removed from the file. */
async function leftThere(file: FileEvents, engines: EngineEvents): Promise<readonly string[]> {
  let count = 0;
  const names = new Set<string>();
  const add = (found: Awaited<ReturnType<EngineEvents['have']>>) => {
    for (const one of found) {
      count += one.count;
      if (names.size <= MAX_NAMES) names.add(printableLine(one.space, 100));
    }
  };
  for await (const page of engines.moved()) {
    add(await engines.have(page.filter((one) => !file.has(one))));
  }
  for (const page of file.removed()) add(await engines.have(page, 'not moved'));
  if (count === 0) return [];
  const told = [...names].slice(0, MAX_NAMES).join(', ');
  const more = names.size > MAX_NAMES ? ' and more' : '';
  return [
    `${count} that were on both sides were removed on this machine, and are still there, in ${told}${more}: delete there what must not stay.`,
  ];
}

async function toFile(options: MemoryMoveOptions, writes: boolean): Promise<MovePass<MovedEvent>> {
  const { path, limits, ...rest } = options;
  const own = { ...rest, limits, origin: originOf(path) };
  const engines = await EngineEvents.open(own, false);
  const writer = writes ? fileEventWriter(path, limits) : undefined;
  const file = FileEvents.open(path);
  return {
    count: () => engines.count(),
    pages: () => engines.pages(),
    standings: (page) => page.map((one) => file?.standing(one) ?? 'missing'),
    async write(missing) {
      let written = 0;
      for (const batch of batchesOf(missing, BATCH, BATCH_BYTES)) {
        const vectors = await engines.vectors(batch);
        written += writer!.write(
          batch.map((one) => ({
            ...one,
            vector: vectors.get(vectorKey(one.space, one.event.id)),
          })),
        );
      }
      return written;
    },
    finish() {
      if (engines.unreadable > 0) throw new Error(sealedElsewhere(engines.unreadable));
    },
    async notes(tally) {
      const there = await toEngines({ ...options, to: 'engines' }, false);
      return [
        ...removedHere(tally),
        ...erasedHere(tally, 'space'),
        ...(engines.unreadable > 0 ? [sealedElsewhere(engines.unreadable)] : []),
        ...(await outdatedFile(path, there)),
      ];
    },
    close() {
      file?.close();
      writer?.close();
    },
  };
}
