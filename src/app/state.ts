/** Logs what is wrong with the state on disk: a damaged database, a folder that other users may write to. */

import { statSync } from 'node:fs';
import { messageOf } from '../lib/text/thrown.ts';
import { onSetAside } from '../state/versioned-store.ts';
import { event, type Log } from '../telemetry/log.ts';

/** Others than the owner may write there. */
const OTHERS_WRITE = 0o022;

/** Logs every database that is set aside from now on. Returns a function that stops it. */
export function logDamage(log: Log): () => void {
  return onSetAside(({ path, aside, cause }) => {
    const message = messageOf(cause);
    event(log, 'state.damaged', { path, aside, message }, 'error');
  });
}

/**
 * Logs a folder of state that other users may write to. The folder stays as it is: it may be shared on
 * purpose. The files in it are private.
 */
export function logExposed(log: Log, folders: readonly string[]): void {
  if (process.platform === 'win32') return;
  for (const path of new Set(folders)) {
    const mode = modeOf(path);
    if ((mode & OTHERS_WRITE) === 0) continue;
    event(log, 'state.exposed', { path, mode: (mode & 0o777).toString(8) }, 'warn');
  }
}

/** 0: there is none that can be looked at. */
function modeOf(path: string): number {
  try {
    return statSync(path).mode;
  } catch {
    return 0;
  }
}
