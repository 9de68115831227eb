import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { whyUnreadable } from '../../lib/text/named-file.ts';
import { prettyLine } from '../../telemetry/pretty-line.ts';
import { type CommandSpec, type Invocation, UsageError } from '../command.ts';
import { programPath } from '../run-program.ts';
import { type Installation, installationFor, thisMachine } from './service/installation.ts';

export const LOGS: CommandSpec = {
  name: 'logs',
  summary: "print the service's log, or a log file, in readable form",
  description: [
    'Without FILE, prints the log of the service that "hopgate service install" or a package installed, from the journal of systemd or from the log file of launchd. A gateway that runs in a terminal writes its log there.',
    'With FILE, prints the JSON log lines of that file; "-" reads standard input.',
  ],
  arguments: [{ name: 'file', summary: 'a file with JSON log lines, or -' }],
  options: {
    follow: { short: 'f', summary: 'keep printing new lines; service only' },
    lines: {
      short: 'n',
      value: 'N',
      summary: 'how many lines to show from the end; service only',
      default: '50',
      range: [1, 1_000_000],
    },
    user: { summary: "the user's service, if there is also a system service" },
    system: { summary: "the system service, if there is also a user's service" },
    json: { summary: 'print the lines as they were written' },
  },
  examples: {
    'hopgate logs --follow': "Follows the service's log.",
    'docker logs hopgate 2>&1 | hopgate logs -': 'Prints the log of a container.',
  },
  exits: { 0: 'printed', 1: 'there is no service, or the log cannot be read' },
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
    err.line(`hopgate: ${file} ${whyUnreadable(thrown)}`);
    return 1;
  }
}

// A longer line is printed in parts, so that no file without line breaks fills the memory.
const MAX_LENGTH = 1024 * 1024;

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
    if (rest.length > MAX_LENGTH) {
      write(rest);
      rest = '';
    }
  }
  if (rest !== '') write(rest);
}
