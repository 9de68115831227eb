/** Watches a file by its path: reports changes also when its folder or a link on the way is replaced. */

import { type FSWatcher, type Stats, stat, statSync, watch } from 'node:fs';
import { basename, dirname } from 'node:path';

export interface WatchTimes {
  /** How long the file must be unchanged before a change is reported. */
  readonly debounceMs: number;
  /** How often the file is checked in addition. */
  readonly pollMs: number;
}

/** A file that changes all the time is reported at least this often. */
const MAX_WAIT_MS = 1000;

/**
 * Calls `changed` soon after the file was written, replaced, removed or put back, and sometimes when
 * nothing has changed. Never throws, and keeps no process alive.
 * @returns a function that ends the watch
 */
export function watchFile(
  file: string,
  changed: () => void,
  { debounceMs, pollMs }: WatchTimes,
): () => void {
  const name = basename(file);
  let watcher: FSWatcher | undefined;
  let timer: ReturnType<typeof setTimeout> | undefined;
  let latest = 0;
  let stamp = '';
  let comparing = false;
  let ended = false;

  function reportSoon(): void {
    const now = performance.now();
    if (timer === undefined) latest = now + MAX_WAIT_MS;
    clearTimeout(timer);
    timer = setTimeout(
      () => {
        timer = undefined;
        changed();
      },
      Math.max(0, Math.min(debounceMs, latest - now)),
    );
  }

  // Asynchronous: on a network disk that hangs, a synchronous call would stop every request.
  function compare(then: (differs: boolean) => void): void {
    if (comparing) return;
    comparing = true;
    stat(file, (_, found) => {
      comparing = false;
      if (ended) return;
      const now = stampOf(found);
      const differs = now !== stamp;
      stamp = now;
      then(differs);
    });
  }

  function arm(): void {
    watcher?.close();
    watcher = undefined;
    try {
      // The folder, not the file: editors replace the file with a new one.
      watcher = watch(dirname(file), (type, named) => {
        const own = named === null || named === name;
        // A log beside the file is written all the time.
        if (!own && type === 'change') return;
        if (own) reportSoon();
        // Another entry may be the link that leads to the file, as in a mounted Kubernetes ConfigMap.
        compare((differs) => {
          if (differs && !own) reportSoon();
        });
      });
      watcher.on('error', () => undefined);
      watcher.unref();
    } catch {
      // No folder, or no watches left on this machine: the poll still finds changes.
    }
  }

  arm();
  // Synchronous: a change during an asynchronous first look would be taken for the initial state.
  stamp = firstStamp(file);
  const poll = setInterval(
    () =>
      compare((differs) => {
        if (!differs) return;
        // The watch missed it: the folder may have been replaced.
        arm();
        reportSoon();
      }),
    pollMs,
  ).unref();
  return () => {
    ended = true;
    clearTimeout(timer);
    clearInterval(poll);
    watcher?.close();
  };
}

function firstStamp(file: string): string {
  try {
    return stampOf(statSync(file));
  } catch {
    return stampOf(undefined);
  }
}

/** Differs after every change, except for changes within one tick of the file system's clock. */
const stampOf = (found: Stats | undefined) =>
  found === undefined ? 'none' : `${found.dev} ${found.ino} ${found.size} ${found.mtimeMs}`;
