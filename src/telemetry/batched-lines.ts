/** Writes log lines to stderr: in batches where they may wait, and without ever blocking the program for long. */

export interface Lines {
  /** Written before this returns, after all lines that waited. */
  now(line: string): void;
  /** Written at the end of this turn of the event loop. */
  soon(line: string): void;
}

/** The part of `pino.destination` that is used. */
export interface Destination {
  write(text: string): unknown;
  on(event: 'error', listener: (error: Error) => void): unknown;
  on(event: 'drop', listener: (text: string) => void): unknown;
  on(event: 'drain', listener: () => void): unknown;
}

/** Bytes that are held while stderr accepts none; lines beyond that are lost. */
export const MAX_HELD_BYTES = 1024 * 1024;

// A busy reader is waited for once. After that, a reader that has stopped costs the program no more time.
const BUSY_WAIT_MS = 5;
const EXIT_WAIT_MS = 1000;

/**
 * Lines that may wait are written together at the end of the turn of the event loop, or when the process
 * exits: one search for secrets and one system call for all of them. A crash loses only the lines of its own
 * turn. No call throws or waits for long, whether the disk is full or the reader has stopped.
 * @param onLost called with the number of lines that were lost, once lines can be written again
 */
export function batched(
  stderr: Destination,
  withoutSecrets: (lines: string) => string,
  onLost: (lines: number) => void,
): Lines {
  let waiting = '';
  let lost = 0;
  /** The last write failed; its text is held. */
  let full = false;
  /** Waiting for the reader did not help. */
  let stuck = false;
  // Without a listener, the error would be thrown into the code that logs.
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
    stuck = !written && (stuck || !retriedFor(BUSY_WAIT_MS));
  };
  /** Writes the held text and this one; returns whether all was written. Text beyond the limit is dropped. */
  const attempt = (text: string): boolean => {
    full = false;
    stderr.write(text);
    return !full;
  };
  /** Tries again every millisecond; returns whether all was written. */
  const retriedFor = (ms: number): boolean => {
    for (let waited = 0; waited < ms; waited++) {
      Bun.sleepSync(1);
      if (attempt('')) return true;
    }
    return false;
  };
  process.on('exit', () => {
    flush();
    if (full) retriedFor(EXIT_WAIT_MS);
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
