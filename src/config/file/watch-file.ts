/** Tells when what stands at a path may have changed, whatever was done to its folder or behind its links. */

import { type FSWatcher, type Stats, stat, statSync, watch } from 'node:fs';
import { basename, dirname } from 'node:path';

export interface WatchTimes {
  /** How long it must have been quiet before a change is told. */
  readonly debounceMs: number;
  /** How often the file is looked at besides. */
  readonly pollMs: number;
}

/** A file that is written without a pause is told of at least this often. */
const LONGEST_WAIT_MS = 1000;

/**
 * Calls `changed` some time after the file was written, replaced, removed or put back; now and then
 * without need. Never throws, and keeps no process alive. Returns the end of it.
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
  let looking = false;
  let ended = false;

  function soon(): void {
    const now = performance.now();
    if (timer === undefined) latest = now + LONGEST_WAIT_MS;
    clearTimeout(timer);
    timer = setTimeout(
      () => {
        timer = undefined;
        changed();
      },
      Math.max(0, Math.min(debounceMs, latest - now)),
    );
  }

  // Not the synchronous call: on a network's disk that hangs it would hold up every request.
  function look(then: (differs: boolean) => void): void {
    if (looking) return;
    looking = true;
    stat(file, (_, found) => {
      looking = false;
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
      // The folder and not the file: editors put a new file in its place.
      watcher = watch(dirname(file), (_, named) => {
        const own = named === null || named === name;
        if (own) soon();
        // A neighbour may be the link that leads to the file, as in a configuration map.
        look((differs) => {
          if (differs && !own) soon();
        });
      });
      watcher.on('error', () => undefined);
      watcher.unref();
    } catch {
      // No folder, or no watches left on this machine: there are the looks now and then.
    }
  }

  arm();
  // At once: a change that comes while a first look is under way would be taken for the beginning.
  stamp = firstStamp(file);
  const poll = setInterval(
    () =>
      look((differs) => {
        if (!differs) return;
        // The watch did not tell: the folder may be another one by now.
        arm();
        soon();
      }),
    pollMs,
  );
  poll.unref();
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

/** What is different after every change that is not made within one tick of the file system's clock. */
const stampOf = (found: Stats | undefined) =>
  found === undefined ? 'none' : `${found.dev} ${found.ino} ${found.size} ${found.mtimeMs}`;
