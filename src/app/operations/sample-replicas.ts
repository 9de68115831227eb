/** Recorded exchanges and erasures over all replicas: what a process does where engines are configured, and nothing where none are. */

import { join } from 'node:path';
import { GatewayError } from '../../conversation/errors.ts';
import type { Recorder } from '../../samples/record/recorder.ts';
import { RunningElsewhere } from '../../samples/replicas/running-elsewhere.ts';
import { Sharing } from '../../samples/replicas/sharing.ts';
import type { SampleMeta, SampleWatcher } from '../../samples/sample.ts';
import type { Retention } from '../../samples/store/retention.ts';
import { EngineAway } from '../../state/engines/engine.ts';
import type { Engines } from '../../state/engines/open-engines.ts';
import { type HashedName, ReplicaErasures } from '../../state/erasures.ts';
import { isPassing } from '../../state/versioned-store.ts';

const OPEN_AGAIN_MS = 10_000;

export interface SampleReplicasOptions {
  readonly engines: Engines;
  /** The folder of the state. */
  readonly home: string;
  /** Folder of the samples. */
  readonly root: string;
  readonly recorder: () => Recorder;
  readonly retention: () => Retention;
  /**
   * Erases what this process holds of a memory space, and returns the number of samples.
   * @param until what began later stays, in ms since 1970; left out: nothing does
   */
  readonly eraseHere: (space: string | HashedName, until?: number) => Promise<number>;
  /** Called once for each new problem. */
  readonly warn: (message: string) => void;
  readonly onPending: (count: number) => void;
}

export function sampleReplicas(options: SampleReplicasOptions) {
  const { engines, home, root, recorder, retention, eraseHere, warn, onPending } = options;
  const { database, objects, cache, seal } = engines;
  const erasures =
    database &&
    new ReplicaErasures({
      database,
      cache,
      positionPath: join(home, 'state', 'erasures.json'),
      onProblem: (message) => warn(`erasures of other replicas cannot be followed (${message})`),
    });
  const running =
    cache && database && objects
      ? new RunningElsewhere({ cache, seal, watch: (watcher) => recorder().watch(watcher) })
      : undefined;
  let sharing: Sharing | undefined;
  let opening: ReturnType<typeof setTimeout> | undefined;
  const watchers = new Set<SampleWatcher>();

  function openSharing(): void {
    if (erasures === undefined || database === undefined || objects === undefined) return;
    try {
      sharing = new Sharing({
        ...{ root, database, objects, cache, seal, erasures, retention, warn, onPending },
      });
    } catch (thrown) {
      const ends = isPassing(thrown);
      if (opening === undefined || !ends) {
        warn(`samples are not shared with other replicas${ends ? ' yet' : ''} (${thrown})`);
      }
      if (ends) opening = setTimeout(openSharing, OPEN_AGAIN_MS).unref();
      return;
    }
    recorder().watch({
      row: ({ state }) => state !== 'open' && sharing?.wake(),
      gone() {},
    });
    sharing.watch({
      row(row) {
        running?.settled(row.id);
        for (const watcher of watchers) watcher.row(row);
      },
      gone(ids) {
        for (const watcher of watchers) watcher.gone(ids);
      },
    });
    sharing.open();
  }

  async function eraseEverywhere(space: string, noted: ReplicaErasures): Promise<number> {
    try {
      const { name } = await noted.note(space);
      noted.hint();
      const here = await eraseHere(space);
      running?.eraseSpace(name);
      const there = (await sharing?.eraseSpace(name.hash)) ?? 0;
      // What others recorded is in this folder, too.
      return Math.max(here, there);
    } catch (thrown) {
      if (!(thrown instanceof EngineAway)) throw thrown;
      throw new GatewayError(
        'overloaded',
        `The erasure is not complete: the engine "${thrown.engine}" is away. Ask again until it is.`,
        { cause: thrown, retryAfter: 10 },
      );
    }
  }

  return {
    /** Undefined without a database. Stores of others hang on it. */
    erasures,
    /** Exchanges that run on other replicas; undefined where nobody tells. */
    running,
    /** The watcher is told of exchanges of other replicas until the returned function is called. */
    watch(watcher: SampleWatcher): () => void {
      watchers.add(watcher);
      const unwatch = running?.watch(watcher);
      return () => {
        watchers.delete(watcher);
        unwatch?.();
      };
    },
    /** As {@link Sharing.fetch}. */
    fetch: async (meta: SampleMeta): Promise<void> => sharing?.fetch(meta),
    purged: (ids: readonly string[]) => sharing?.purged(ids),
    /**
     * Erases a memory space on all replicas and in the engines, which are clean when it resolves; returns the number of
     * samples.
     * @throws GatewayError overloaded where an engine is away
     */
    eraseSpace: (space: string): Promise<number> =>
      erasures === undefined ? eraseHere(space) : eraseEverywhere(space, erasures),
    open(): void {
      erasures?.listen(async ({ name, at }) => {
        running?.eraseSpace(name);
        await eraseHere(name, at);
      });
      erasures?.follow();
      running?.open();
      openSharing();
    },
    async close(): Promise<void> {
      clearTimeout(opening);
      running?.close();
      await Promise.all([erasures?.close(), sharing?.close()]);
    },
  };
}
