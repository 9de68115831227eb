/** The help, generated from the command table. */

import {
  COMMAND_GROUPS,
  COMMON_OPTIONS,
  type CommandGroup,
  type CommandSpec,
  type OptionSpec,
} from './command.ts';
import { definitions, type Terminal, wrap } from './terminal.ts';

/** An option as it is typed: `-c, --config FILE`. */
function optionUsage({ name, short, value }: OptionSpec): string {
  const dashes = short === undefined ? `    --${name}` : `-${short}, --${name}`;
  return value === undefined ? dashes : `${dashes} ${value}`;
}

/** What an option does, with its choices and its default. */
export function optionText({ summary, choices, default: standard }: OptionSpec): string {
  const more = [
    choices === undefined ? undefined : `one of ${choices.join(', ')}`,
    standard === undefined ? undefined : `default: ${standard}`,
  ].filter((part) => part !== undefined);
  return more.length === 0 ? summary : `${summary} (${more.join('; ')})`;
}

/** `hopgate setup CLIENT [options]`, `hopgate [debug] replay WHAT [options]` */
export function usage(command: CommandSpec): string {
  const words = (command.arguments ?? []).map(({ name, required, many }) => {
    const word = name.toUpperCase() + (many === true ? '...' : '');
    return required === true ? word : `[${word}]`;
  });
  const group = command.group === undefined ? [] : [`[${command.group}]`];
  return ['hopgate', ...group, command.name, ...words, '[options]'].join(' ');
}

function section(
  terminal: Terminal,
  title: string,
  items: readonly (readonly [string, string])[],
  termWidth = 30,
): void {
  if (items.length === 0) return;
  terminal.line();
  terminal.line(terminal.paint('bold', title));
  for (const line of definitions(items, terminal.width, { termWidth })) terminal.line(line);
}

/** Commands with what they do; the first argument says what there is to choose. */
const rowsOf = (commands: readonly CommandSpec[], group: CommandGroup | undefined) =>
  commands
    .filter((command) => command.group === group)
    .map(({ name, arguments: words = [], summary }): [string, string] => [
      [name, ...words.slice(0, 1).map((word) => word.name.toUpperCase())].join(' '),
      summary,
    ]);

/** `hopgate debug`: the commands of a group. */
export function groupHelp(
  group: CommandGroup,
  commands: readonly CommandSpec[],
  terminal: Terminal,
): void {
  const { paint } = terminal;
  terminal.line(`${paint('bold', `hopgate ${group}`)} - ${COMMAND_GROUPS[group]}`);
  terminal.line();
  terminal.line(`${paint('bold', 'Usage')}  hopgate [${group}] COMMAND [options]`);
  section(terminal, 'Commands', rowsOf(commands, group), 20);
  terminal.line();
  terminal.line(`"hopgate ${group} COMMAND --help" tells more about each command.`);
}

/** The general help: the commands that everybody needs, and where the others are. */
export function generalHelp(commands: readonly CommandSpec[], terminal: Terminal): void {
  const { paint, width } = terminal;
  terminal.line(
    `${paint('bold', 'hopgate')} - one gateway between coding agents or chat apps and any LLM vendor`,
  );
  terminal.line();
  for (const line of wrap(
    'Speaks OpenAI Chat Completions, OpenAI Responses, Anthropic Messages and Google Gemini on both sides. Without a configuration it uses the API keys of the environment.',
    width,
  )) {
    terminal.line(line);
  }
  terminal.line();
  terminal.line(
    `${paint('bold', 'Usage')}  hopgate [COMMAND] [options]    (no command: ${commands[0]!.name})`,
  );
  section(terminal, 'Commands', rowsOf(commands, undefined), 20);
  section(
    terminal,
    'More commands',
    Object.entries(COMMAND_GROUPS).map(([group, summary]) => {
      const names = commands.filter((one) => one.group === group).map(({ name }) => name);
      return [`${group} COMMAND`, `${summary}: ${names.join(', ')}`];
    }),
    20,
  );
  section(terminal, 'Options of every command', [
    ...COMMON_OPTIONS.map((option) => [optionUsage(option), optionText(option)] as const),
    ['-V, --version', 'same as "hopgate version"'],
  ]);
  section(terminal, 'First steps', [
    ['hopgate', 'serve with the keys and servers that it finds'],
    ['hopgate init', 'write a configuration by answering a few questions'],
    ['hopgate setup claude', 'point Claude Code at it; --revert undoes that'],
    ['hopgate doctor', 'find out why something does not work'],
  ]);
  terminal.line();
  terminal.line('"hopgate COMMAND --help" tells more about each command.');
}

/** One command in full. */
export function commandHelp(command: CommandSpec, terminal: Terminal): void {
  const { paint, width } = terminal;
  terminal.line(`${paint('bold', `hopgate ${command.name}`)} - ${command.summary}`);
  terminal.line();
  terminal.line(`${paint('bold', 'Usage')}  ${usage(command)}`);
  for (const paragraph of command.description) {
    terminal.line();
    for (const line of wrap(paragraph, width)) terminal.line(line);
  }
  section(
    terminal,
    'Arguments',
    (command.arguments ?? []).map(({ name, summary, choices }) => [
      name.toUpperCase(),
      choices === undefined ? summary : `${summary} (one of ${choices.join(', ')})`,
    ]),
  );
  section(
    terminal,
    'Options',
    [...(command.options ?? []), ...COMMON_OPTIONS].map((option) => [
      optionUsage(option),
      optionText(option),
    ]),
  );
  if (command.examples.length > 0) {
    terminal.line();
    terminal.line(paint('bold', 'Examples'));
    for (const { line, summary } of command.examples) {
      terminal.line(`  ${paint('cyan', line)}`);
      for (const words of wrap(summary, width, 6)) terminal.line(words);
    }
  }
  section(
    terminal,
    'Exit codes',
    [...command.exits, [2, 'wrong usage'] as const]
      .toSorted(([one], [other]) => one - other)
      .map(([code, words]) => [String(code), words]),
  );
}
