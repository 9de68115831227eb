import {
  COMMAND_GROUPS,
  COMMON_OPTIONS,
  type CommandGroup,
  type CommandSpec,
  type Invocation,
  type NamedOption,
  named,
} from '../command.ts';
import { optionText, usage } from '../help.ts';
import { version } from './version.ts';

export const MAN: CommandSpec = {
  name: 'man',
  group: 'admin',
  summary: 'print the manual page',
  description: ['Prints everything that --help says about every command, in the format of man.'],
  examples: {
    'hopgate man > hopgate.1': 'Writes a file; "man ./hopgate.1" shows it.',
  },
  exits: { 0: 'printed' },
  run: runMan,
};

/** Text escaped for roff: no line is taken for a macro, and hyphens that people copy stay ASCII. */
function escaped(text: string): string {
  const safe = text
    .replaceAll('\\', '\\e')
    .replaceAll('-', '\\-')
    .replaceAll("'", '\\(aq')
    .replaceAll('`', '\\(ga')
    .replaceAll('^', '\\(ha')
    .replaceAll('~', '\\(ti')
    .replaceAll('…', '\\&...')
    // Other characters by name: roff reads bytes where it does not know the encoding.
    .replace(
      /[^\n -~]/gu,
      (mark) => `\\[u${mark.codePointAt(0)!.toString(16).toUpperCase().padStart(4, '0')}]`,
    );
  return /^[.']/.test(safe) ? `\\&${safe}` : safe;
}

const bold = (text: string) => `\\fB${escaped(text)}\\fR`;
const italic = (text: string) => `\\fI${escaped(text)}\\fR`;
const paragraphs = (texts: readonly string[]) => texts.flatMap((text) => ['.PP', escaped(text)]);
const term = (head: string, words: string) => ['.TP', head, escaped(words)];

function option(spec: NamedOption): string[] {
  const short = spec.short === undefined ? '' : `${bold(`-${spec.short}`)}, `;
  const value = spec.value === undefined ? '' : ` ${italic(spec.value)}`;
  return term(`${short}${bold(`--${spec.name}`)}${value}`, optionText(spec));
}

function command(spec: CommandSpec): string[] {
  const { name, summary, description, options, examples, exits } = spec;
  const words = (spec.arguments ?? []).flatMap((argument) => {
    const choices =
      argument.choices === undefined ? '' : ` (one of ${argument.choices.join(', ')})`;
    return term(italic(argument.name.toUpperCase()), `${argument.summary}${choices}`);
  });
  return [
    `.SS ${escaped(usage(spec)).replaceAll(' ', '\\ ')}`,
    escaped(`${summary[0]!.toUpperCase()}${summary.slice(1)}.`),
    ...paragraphs(description),
    ...words,
    ...named(options).flatMap(option),
    ...Object.entries(examples).flatMap(([line, says]) => [
      '.PP',
      escaped(says),
      '.PP',
      '.in +4n',
      '.EX',
      escaped(line),
      '.EE',
      '.in',
    ]),
    '.PP',
    escaped(
      `Exit status of ${name}: ${Object.entries(exits)
        .map(([code, means]) => `${code} ${means}`)
        .join('; ')}.`,
    ),
  ];
}

const ENVIRONMENT: Readonly<Record<string, string>> = {
  HOPGATE_CONFIG: 'the configuration file, if --config does not name one',
  HOPGATE_HOME: 'the folder for state; ~/.hopgate when unset',
  'OPENAI_API_KEY, ANTHROPIC_API_KEY, ...': 'keys of vendors, found without a configuration',
  'NO_COLOR, FORCE_COLOR': 'colours off, colours on',
};

const FILES: Readonly<Record<string, string>> = {
  '~/.config/hopgate/hopgate.yaml': "a user's configuration",
  '/etc/hopgate/hopgate.yaml': 'the configuration of the machine',
  '/etc/hopgate/hopgate.env': 'variables for the system service, one NAME=value per line',
  '~/.hopgate, /var/lib/hopgate': 'state, of a user and of the system service',
};

const SIGNALS: Readonly<Record<string, string>> = {
  'SIGTERM, SIGINT':
    'accept no new connections, let open streams finish, then exit; a second one exits immediately',
  SIGHUP: 'load the configuration again; a terminal that closes sends it, and ends nothing',
  SIGUSR2: 'start the program that is now on disk on the same port, then exit as with SIGTERM',
};

const EXAMPLES: Readonly<Record<string, string>> = {
  hopgate: 'Serves on 127.0.0.1:5520 with the keys and servers that it finds.',
  'hopgate init': 'Writes a configuration by answering a few questions.',
  'hopgate check --config ./hopgate.yaml': 'Shows what is wrong with a file, and where.',
  'hopgate setup claude': 'Points Claude Code at the gateway; --revert undoes that.',
  'hopgate models --explain claude-sonnet-5-5': 'Shows where a model name goes, and why.',
  'hopgate status': 'Shows whether the gateway is running and which targets are available.',
  'hopgate logs --follow': 'Prints the log of the service as it is written.',
  'hopgate samples --status failed --since 1d': 'Lists what went wrong since yesterday.',
  'hopgate samples show ID client-request': 'Prints a recorded request.',
  'hopgate samples diff ID': 'Prints what the gateway changed in it, and by which rule.',
  'hopgate replay ID --to glm/glm-4.6': 'Sends it again, to another model.',
};

/** The page for man(1), section 1. `release`: the version for its footer. */
export function manPage(commands: readonly CommandSpec[], release: string): string {
  const lines = [
    '.\\" Made by "hopgate man" from the table of commands.',
    `.TH HOPGATE 1 "" "hopgate ${release}" "User Commands"`,
    '.SH NAME',
    'hopgate \\- one gateway between coding agents or chat apps and any LLM vendor',
    '.SH SYNOPSIS',
    `${bold('hopgate')} [${italic('COMMAND')}] [${italic('options')}]`,
    '.SH DESCRIPTION',
    'hopgate speaks OpenAI Chat Completions, OpenAI Responses, Anthropic Messages and Google Gemini on both sides.',
    escaped(
      `Without a command it does what "hopgate ${commands[0]!.name}" does; without a configuration it uses the API keys of the environment.`,
    ),
    ...[undefined, ...(Object.keys(COMMAND_GROUPS) as CommandGroup[])].flatMap((group) => [
      '.PP',
      group === undefined ? 'Commands:' : escaped(`hopgate ${group}, to ${COMMAND_GROUPS[group]}:`),
      ...commands
        .filter((entry) => entry.group === group)
        .flatMap(({ name, summary }) => term(bold(name), summary)),
    ]),
    '.PP',
    'Commands also work without the name of their group.',
    '.SH OPTIONS OF EVERY COMMAND',
    ...named(COMMON_OPTIONS).flatMap(option),
    ...term(`${bold('-V')}, ${bold('--version')}`, 'same as "hopgate version"'),
    '.SH COMMANDS',
    ...commands.flatMap(command),
    '.SH ENVIRONMENT',
    ...Object.entries(ENVIRONMENT).flatMap(([name, words]) => term(bold(name), words)),
    '.SH FILES',
    ...Object.entries(FILES).flatMap(([name, words]) => term(italic(name), words)),
    '.SH SIGNALS',
    ...Object.entries(SIGNALS).flatMap(([name, words]) => term(bold(name), words)),
    '.SH EXAMPLES',
    ...Object.entries(EXAMPLES).flatMap(([line, words]) => ['.TP', bold(line), escaped(words)]),
    '.SH EXIT STATUS',
    'Every command exits with 0 on success, 2 on wrong usage, and 70 on a failure inside hopgate.',
    'Other codes are listed with each command.',
    '.SH SEE ALSO',
    escaped(
      'The manual is served by a running gateway at /docs, and the page for recorded exchanges at /ui.',
    ),
    '.PP',
    `${bold('systemctl')}(1), ${bold('journalctl')}(1), ${bold('curl')}(1)`,
  ];
  return `${lines.join('\n')}\n`;
}

async function runMan({ io, commands }: Invocation): Promise<number> {
  io.stdout.write(manPage(commands, version.version));
  return 0;
}
