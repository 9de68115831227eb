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

/**
 * The lines that may wait go out together at the end of the turn of the event loop, or of the process: one
 * search for secrets and one system call under load, and a crash loses none but of its own turn. A full disk
 * fails no exchange: neither call throws.
 * @param onLost told once lines can be written again how many were lost meanwhile
 */
export function batched(
  stderr: Destination,
  withoutSecrets: (lines: string) => string,
  onLost: (lines: number) => void,
): Lines {
  let waiting = '';
  let lost = 0;
  // Without a listener it would throw into whoever had something to tell.
  stderr.on('error', () => {});
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
    stderr.write(withoutSecrets(text));
  };
  process.on('exit', flush);
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
