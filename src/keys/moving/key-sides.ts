/** Both sides of a move of keys: the file of a machine and the database, each opened to be looked at or to be written. */

import type { KeyValue, Sql } from '../../state/engines/engine.ts';
import { tablesThere } from '../../state/moving/moved-items.ts';
import type { MoveDirection } from '../../state/state-move.ts';
import { FileKeyStore, openKeysToRead } from '../file-key-store.ts';
import type { MovableKeys } from '../key-store.ts';
import { SharedKeyStore } from '../shared/shared-key-store.ts';
import { KEYS_CHANNEL } from '../shared/shared-keys.ts';

export interface KeysMoveOptions {
  readonly database: Sql;
  /** Replicas that run hear of changes by it. */
  readonly cache: KeyValue | undefined;
  /** The file of this machine. */
  readonly path: string;
  readonly to: MoveDirection;
  /** For the audit: who moves. */
  readonly actor: string;
}

/** Undefined: there is nothing yet on that side. */
export interface KeySides {
  readonly source: MovableKeys | undefined;
  readonly target: MovableKeys | undefined;
  /** Gateways that run are told of changes. */
  changed(): Promise<void>;
  close(): void;
}

/** Milliseconds in which the cache must take the hint. */
const HINT_MS = 2000;

/** @param writes the target is made where there is none; else nothing is written */
export async function openSides(options: KeysMoveOptions, writes: boolean): Promise<KeySides> {
  const { database, cache, path, to } = options;
  const isTarget = (side: MoveDirection) => writes && side === to;
  const file = isTarget('embedded') ? new FileKeyStore(path) : openKeysToRead(path);
  try {
    const shared = isTarget('engines')
      ? new SharedKeyStore(database)
      : await sharedAsItIs(database);
    const [source, target] = to === 'engines' ? [file, shared] : [shared, file];
    return {
      source,
      target,
      async changed() {
        if (to === 'engines') await cache?.publish(KEYS_CHANNEL, '', HINT_MS).catch(() => {});
      },
      close: () => file?.close(),
    };
  } catch (thrown) {
    file?.close();
    throw thrown;
  }
}

async function sharedAsItIs(database: Sql): Promise<SharedKeyStore | undefined> {
  const there = await tablesThere(database, ['keys']);
  return there.has('keys') ? new SharedKeyStore(database, async () => {}) : undefined;
}
