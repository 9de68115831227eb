/** The input and output of this process for `run`: its streams, directory and network. */

import { isatty } from 'node:tty';
import type { Environment } from '../config/environment.ts';
import type { Io, Output } from './command.ts';

function output(stream: NodeJS.WriteStream): Output {
  // `hopgate models | head` closes the pipe early; that is no error.
  stream.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code === 'EPIPE') return;
    // A full disk: what was written is not all there, which the exit code has to say.
    if (stream !== process.stderr)
      process.stderr.write(
        `hopgate: the output cannot be written (${error.code ?? error.message}).\n`,
      );
    process.exitCode = 1;
  });
  return {
    write: (text) => {
      stream.write(text);
    },
    isTTY: stream.isTTY === true,
    columns: stream.columns,
  };
}

/** The io of this process. */
export function processIo(environment: Environment): Io {
  return {
    stdout: output(process.stdout),
    stderr: output(process.stderr),
    // Created on demand: it takes some milliseconds, and few commands read it.
    get stdin() {
      return process.stdin;
    },
    interactive: isatty(0) && process.stderr.isTTY === true,
    environment,
    cwd: process.cwd(),
    fetch: globalThis.fetch,
  };
}
