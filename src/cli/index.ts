/** Runs a command line: picks the command, shows help, and turns failures into exit codes. */

import { isatty } from 'node:tty';
import type { Environment } from '../config/environment.ts';
import { GatewayError } from '../conversation/errors.ts';
import {
  COMPLETE,
  type CommandServices,
  type CommandSpec,
  type Io,
  type Output,
  UsageError,
} from './command.ts';
import { SERVE } from './commands/serve.ts';
import { showHelp, speaksChinese } from './help.ts';
import { isServing, type ParsedLine, parseLine } from './parse.ts';
import { createTerminal, prose } from './terminal.ts';

/**
 * Runs one command line (without the program's name). Returns the exit code: the command's own, 2 for
 * wrong usage, 70 when the program itself failed. Never throws.
 */
export async function run(
  argv: readonly string[],
  io: Io,
  services: () => Promise<CommandServices>,
  table?: readonly CommandSpec[],
): Promise<number> {
  const colours = !argv.includes('--no-color');
  const out = terminalOf(io, 'stdout', colours);
  const err = terminalOf(io, 'stderr', colours);
  try {
    // The other commands are a tenth of the program: a start of the gateway does without them.
    const commands =
      table ?? (isServing(argv) ? [SERVE] : (await import('./commands.ts')).COMMANDS);
    if (argv[0] === COMPLETE) {
      const { offersText } = await import('./commands/completions/index.ts');
      io.stdout.write(offersText(argv.slice(1), commands));
      return 0;
    }
    const parsed = parseLine(argv, commands);
    const { command, group, values } = parsed;
    if (group !== undefined || command === undefined || values.help === true) {
      showHelp(parsed, commands, out, speaksChinese(io.environment));
      return 0;
    }
    return await command.run({ ...access(parsed), io, services, commands, out, err });
  } catch (thrown) {
    if (thrown instanceof UsageError || isRefusal(thrown)) {
      for (const line of prose(`hopgate: ${thrown.message}`, err)) err.line(line);
      return 2;
    }
    // An engine that does not answer is no error of the program.
    if (thrown instanceof GatewayError && thrown.kind === 'overloaded') {
      for (const line of prose(`hopgate: ${thrown.message}`, err)) err.line(line);
      return 1;
    }
    // EX_SOFTWARE of sysexits.h: an error of the program. A bug report needs the stack.
    const details = thrown instanceof Error ? (thrown.stack ?? thrown.message) : String(thrown);
    err.line(`hopgate: internal error: ${details}`);
    return 70;
  }
}

/** Something that the command line names does not exist, or cannot be used. */
const isRefusal = (thrown: unknown): thrown is GatewayError =>
  thrown instanceof GatewayError &&
  (thrown.kind === 'invalid_request' || thrown.kind === 'not_found');

function access({ values, arguments: words }: ParsedLine) {
  const text = (name: string) => {
    const value = values[name];
    return typeof value === 'string' ? value : undefined;
  };
  return {
    arguments: words,
    text,
    number: (name: string) => {
      const value = text(name);
      return value === undefined ? undefined : Number(value);
    },
    flag: (name: string) => values[name] === true,
  };
}

function terminalOf(io: Io, which: 'stdout' | 'stderr', colours: boolean) {
  const output = io[which];
  const { environment } = io;
  const forced = environment.variable('FORCE_COLOR') !== undefined;
  return createTerminal((text) => output.write(text), {
    colour: colours && environment.color && (output.isTTY || forced),
    columns: output.columns ?? (Number(environment.variable('COLUMNS')) || undefined),
    tty: output.isTTY,
  });
}

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

/** @param program the command that starts this program */
export function processIo(environment: Environment, program: readonly string[]): Io {
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
    program,
  };
}
