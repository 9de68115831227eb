/** `hopgate logs`: prints the log of the service, or of a file, in lines for people. */

import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { prettyLine } from '../../telemetry/pretty-line.ts';
import { type CommandSpec, errorMessage, type Invocation, UsageError } from '../command.ts';
import { programPath } from '../run-program.ts';
import { jsonOption } from '../shared-options.ts';
import { type Installation, installationFor, thisMachine } from './service/installation.ts';

export const LOGS: CommandSpec = {
  name: 'logs',
  group: 'Look',
  summary: 'print the log of the service, or a log file, in readable lines',
  description: [
    'Without FILE: the log of the service that "hopgate service install" or a package installed, from the journal of systemd or from the log file of launchd. A gateway that runs in a terminal logs there.',
    'With FILE: JSON log lines of that file; "-" reads them from the standard input.',
  ],
  arguments: [{ name: 'file', summary: 'a file with JSON log lines, or -' }],
  options: [
    { name: 'follow', short: 'f', summary: 'go on with new lines; of the service only' },
    {
      name: 'lines',
      short: 'n',
      value: 'N',
      summary: 'how many of the last lines; of the service only',
      default: '50',
      range: [1, 1_000_000],
    },
    { name: 'user', summary: "the service of this user, where there is the machine's as well" },
    { name: 'system', summary: "the machine's service, where there is the user's as well" },
    jsonOption('the lines as they were written'),
  ],
  examples: [
    { line: 'hopgate logs --follow', summary: 'What the service does, as it happens.' },
    { line: 'docker logs hopgate 2>&1 | hopgate logs -', summary: 'The log of a container.' },
  ],
  exits: [
    [0, 'printed'],
    [1, 'there is no service, or the log cannot be read'],
  ],
  run: runLogs,
};

async function runLogs(invocation: Invocation): Promise<number> {
  const { arguments: words, flag, number, err } = invocation;
  const [file] = words;
  if (flag('user') && flag('system')) throw new UsageError('Either --user or --system, not both.');
  if (file !== undefined) return logsOfFile(invocation, file);
  const installation = installed(invocation);
  if (installation === undefined) {
    err.line('hopgate: no service of hopgate is installed here.');
    err.line('A gateway in a terminal logs there; "hopgate logs FILE" reads a log file.');
    return 1;
  }
  const { plainLogs } = installation.commands;
  const [name, ...args] = plainLogs(number('lines') ?? 50, flag('follow'));
  const program = programPath(invocation, name!);
  if (program === undefined) {
    err.line(`hopgate: ${name} is not on this machine.`);
    return 1;
  }
  const child = Bun.spawn([program, ...args], { stdio: ['ignore', 'pipe', 'inherit'] });
  await print(invocation, child.stdout);
  const code = await child.exited;
  if (code !== 0) err.line(`hopgate: "${[name, ...args].join(' ')}" ended with ${code}.`);
  return code === 0 ? 0 : 1;
}

/** The service whose log is meant: the user's, else the machine's. */
function installed(invocation: Invocation): Installation | undefined {
  const machine = thisMachine(invocation);
  const scopes = invocation.flag('system')
    ? (['system'] as const)
    : invocation.flag('user')
      ? (['user'] as const)
      : (['user', 'system'] as const);
  return scopes
    .map((scope) => installationFor(scope, machine))
    .find((one) => one !== undefined && [one.file, ...one.packaged].some(existsSync));
}

async function logsOfFile(invocation: Invocation, file: string): Promise<number> {
  const { io, err } = invocation;
  try {
    const source = file === '-' ? io.stdin : Bun.file(resolve(io.cwd, file)).stream();
    await print(invocation, source as AsyncIterable<Uint8Array | string>);
    return 0;
  } catch (thrown) {
    err.line(`hopgate: ${file}: ${errorMessage(thrown)}`);
    return 1;
  }
}

// A longer line is printed in parts, so that no file without line breaks fills the memory.
const LONGEST = 1024 * 1024;

async function print(
  { io, flag, out }: Invocation,
  source: AsyncIterable<Uint8Array | string>,
): Promise<void> {
  const colour = out.paint('dim', '') !== '';
  const write = (line: string) =>
    io.stdout.write(flag('json') || !line.startsWith('{') ? `${line}\n` : prettyLine(line, colour));
  const decoder = new TextDecoder();
  let rest = '';
  for await (const chunk of source) {
    rest += typeof chunk === 'string' ? chunk : decoder.decode(chunk, { stream: true });
    const lines = rest.split('\n');
    rest = lines.pop()!;
    for (const line of lines) write(line);
    if (rest.length > LONGEST) {
      write(rest);
      rest = '';
    }
  }
  if (rest !== '') write(rest);
}
