/** The keys made at run time, in the file of this machine or in the database of all replicas, and what is told of them. */

import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { FileKeyStore } from '../../keys/file-key-store.ts';
import { FileKeys } from '../../keys/file-keys.ts';
import type { RunTimeKeys } from '../../keys/run-time-keys.ts';
import { SharedKeys, type SharedKeysReport } from '../../keys/shared/shared-keys.ts';
import type { Engines } from '../../state/engines/open-engines.ts';
import { event, type Log } from '../../telemetry/log.ts';

export interface KeyServices {
  readonly keys: RunTimeKeys;
  /** Of shared ones. */
  report(): SharedKeysReport | undefined;
}

/** @param home the folder of the state */
export function keyServices(
  home: string,
  { cache, database }: Pick<Engines, 'cache' | 'database'>,
  log: Log,
): KeyServices {
  const warn = (message: string) => event(log, 'keys.problem', { message }, 'warn');
  const path = (name: string) => join(home, 'state', name);
  if (database === undefined) {
    return { keys: new FileKeys({ path: path('keys.db'), warn }), report: () => undefined };
  }
  const keys: SharedKeys = new SharedKeys({
    database,
    cache,
    path: path('shared-keys.db'),
    warn,
    onSnapshot: ({ keys, time }) =>
      event(log, 'keys.snapshot', { keys, as_of: new Date(time).toISOString() }, 'warn'),
    onLoaded() {
      const left = keysLeft(path('keys.db'), keys);
      if (left > 0) event(log, 'keys.left', { keys: left, path: path('keys.db') }, 'warn');
    },
  });
  return { keys, report: () => keys.report };
}

/** How many keys of the file of this machine are not in the database: they do not work any more. */
function keysLeft(path: string, keys: RunTimeKeys): number {
  if (!existsSync(path)) return 0;
  try {
    const file = new FileKeyStore(path);
    try {
      const all = file.changesSince(0).keys;
      return all.filter(
        ({ record: { id, revoked } }) => revoked === undefined && keys.byId(id) === undefined,
      ).length;
    } finally {
      file.close();
    }
  } catch {
    // A file that cannot be read is told by the command that takes its keys over.
    return 0;
  }
}
