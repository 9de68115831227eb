/** The real world for `run`: this process's streams, directory and network. */

import type { Environment } from '../config/environment.ts';
import type { Io, Output } from './command.ts';

function output(stream: NodeJS.WriteStream): Output {
  // `hopgate models | head` closes the pipe early; that is no error.
  stream.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE') throw error;
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
    stdin: process.stdin,
    interactive: process.stdin.isTTY === true && process.stderr.isTTY === true,
    environment,
    cwd: process.cwd(),
    fetch: globalThis.fetch,
  };
}
