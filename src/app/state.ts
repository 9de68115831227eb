/** Tells in the log of what is wrong with the files of state: a damaged database, a folder that others may write. */

import { statSync } from 'node:fs';
import { onSetAside } from '../lib/store/versioned-store.ts';
import { event, type Log } from '../telemetry/log.ts';

/** Others than the owner may write there. */
const OTHERS_WRITE = 0o022;

/** Tells of databases that are set aside from now on. Call what comes back to tell no more. */
export function tellOfDamage(log: Log): () => void {
  return onSetAside(({ path, aside, cause }) => {
    const message = cause instanceof Error ? cause.message : String(cause);
    event(log, 'state.damaged', { path, aside, message }, 'error');
  });
}

/**
 * Names a folder of state in which others may write. It is left as it is: it was there before, and may be
 * shared on purpose; the files in it are private.
 */
export function tellOfExposed(log: Log, folders: readonly string[]): void {
  if (process.platform === 'win32') return;
  for (const path of new Set(folders)) {
    const mode = statSync(path, { throwIfNoEntry: false })?.mode ?? 0;
    if ((mode & OTHERS_WRITE) === 0) continue;
    event(log, 'state.exposed', { path, mode: (mode & 0o777).toString(8) }, 'warn');
  }
}
