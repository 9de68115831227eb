/** The keys made at run time, in the file of this machine or in the database of all replicas, and what is reported about them. */

import { join } from 'node:path';
import { BEGINNING } from '../../keys/key-store.ts';
import { keyFileToRead } from '../../keys/move.ts';
import { databaseSource, fileSource, RunTimeKeys } from '../../keys/run-time-keys.ts';
import type { Engines } from '../../state/engines/open-engines.ts';
import { event, type Log } from '../../telemetry/log.ts';

const READ_MS = 5000;

/**
 * `report`: undefined for keys in a file.
 * @param home the folder of the state
 */
export function keyServices(
  home: string,
  { cache, database }: Pick<Engines, 'cache' | 'database'>,
  log: Log,
) {
  const warn = (message: string) => event(log, 'keys.problem', { message }, 'warn');
  const path = (name: string) => join(home, 'state', name);
  if (database === undefined) {
    const source = fileSource(path('keys.db'), warn);
    return { keys: new RunTimeKeys({ source, warn }), report: () => undefined };
  }
  const keys: RunTimeKeys = new RunTimeKeys({
    source: databaseSource(database),
    cache,
    snapshot: path('shared-keys.db'),
    warn,
    onSnapshot: ({ keys, time }) =>
      event(log, 'keys.snapshot', { keys, as_of: new Date(time).toISOString() }, 'warn'),
    async onLoaded() {
      const left = await keysLeft(path('keys.db'), keys);
      if (left > 0) event(log, 'keys.left', { keys: left, path: path('keys.db') }, 'warn');
    },
  });
  return { keys, report: () => keys.report };
}

/** How many keys of the file of this machine are not in the database: they no longer work. Never rejects. */
async function keysLeft(path: string, keys: RunTimeKeys): Promise<number> {
  try {
    const file = keyFileToRead(path);
    const all = await file?.news(BEGINNING, READ_MS);
    file?.close();
    const left = (all?.keys ?? []).filter(
      ({ record: { id, revoked } }) => revoked === undefined && keys.loaded.byId(id) === undefined,
    );
    return left.length;
  } catch {
    // The command that takes its keys over reports a file that cannot be read.
    return 0;
  }
}
