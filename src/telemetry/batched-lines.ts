/** Lines on their way to stderr: together where they may wait, and never in the way of the program. */

export interface Lines {
  /** Written on return, behind all that waited. */
  now(line: string): void;
  soon(line: string): void;
}

/** What `pino.destination` gives. */
export interface Destination {
  write(text: string): unknown;
  on(event: 'error', listener: (error: Error) => void): unknown;
  on(event: 'drop', listener: (text: string) => void): unknown;
  on(event: 'drain', listener: () => void): unknown;
}

/** What cannot be written for the moment is held up to this much; what comes then is lost. */
export const MOST_HELD_BYTES = 1024 * 1024;

// A reader that is only busy is waited for, once; one that reads no more costs the program nothing from then on.
const MOMENT_MS = 5;
const PARTING_MS = 1000;

/**
 * The lines that may wait go out together at the end of the turn of the event loop, or of the process: one
 * search for secrets and one system call under load, and a crash loses none but of its own turn. A full disk
 * fails no exchange, and a reader that stands still holds up none: neither call throws, or waits for long.
 * @param onLost told once lines can be written again how many were lost meanwhile
 */
export function batched(
  stderr: Destination,
  withoutSecrets: (lines: string) => string,
  onLost: (lines: number) => void,
): Lines {
  let waiting = '';
  let lost = 0;
  /** The last write failed, and what was to be written is held. */
  let full = false;
  /** It was waited for in vain. */
  let stuck = false;
  // Without a listener it would throw into whoever had something to tell.
  stderr.on('error', () => {
    full = true;
  });
  stderr.on('drop', (text) => {
    lost += text.split('\n').length - 1;
  });
  stderr.on('drain', () => {
    if (lost === 0) return;
    const lines = lost;
    lost = 0;
    onLost(lines);
  });
  const flush = () => {
    if (waiting === '') return;
    const text = waiting;
    waiting = '';
    const before = lost;
    const written = attempt(withoutSecrets(text)) && (lost === before || attempt(''));
    stuck = !written && (stuck || !taken(MOMENT_MS));
  };
  /** Writes what is held and this; whether all of it went. What would be too much is dropped without a try. */
  const attempt = (text: string): boolean => {
    full = false;
    stderr.write(text);
    return !full;
  };
  const taken = (ms: number): boolean => {
    for (let waited = 0; waited < ms; waited++) {
      Bun.sleepSync(1);
      if (attempt('')) return true;
    }
    return false;
  };
  process.on('exit', () => {
    flush();
    if (full) taken(PARTING_MS);
  });
  return {
    now(line) {
      waiting += line;
      flush();
    },
    soon(line) {
      if (waiting === '') queueMicrotask(flush);
      waiting += line;
    },
  };
}
