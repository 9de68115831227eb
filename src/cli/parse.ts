/** Parses a command line into a command with its options and arguments, or throws a message for the user. */

import { parseArgs } from 'node:util';
import { suggest } from '../lib/text/did-you-mean.ts';
import {
  COMMAND_GROUPS,
  type CommandGroup,
  type CommandSpec,
  isGroup,
  type OptionSpec,
  optionsOf,
  UsageError,
} from './command.ts';

export interface ParsedLine {
  /** Undefined for the general help, and for that of a group. */
  readonly command: CommandSpec | undefined;
  readonly group?: CommandGroup;
  readonly values: Readonly<Record<string, string | boolean | undefined>>;
  readonly arguments: readonly string[];
}

/** ` Did you mean "NAME"?`, or nothing. */
export const hint = (typed: string, names: readonly string[], show = (name: string) => name) => {
  const name = suggest(typed, names);
  return name === undefined ? '' : ` Did you mean "${show(name)}"?`;
};

const HELP = ['--help', '-h'];
const VERSION = ['--version', '-V', '-v'];

/** Does the line run the gateway, or ask for the help of that command? */
export const isServing = ([first]: readonly string[]): boolean =>
  first === undefined ||
  first === 'serve' ||
  (first.startsWith('-') && !HELP.includes(first) && !VERSION.includes(first));

/**
 * Parses the words after the program's name. Without a command the first one of the table is meant, so
 * `hopgate --port 0` serves.
 * @throws UsageError
 */
export function parseLine(argv: readonly string[], commands: readonly CommandSpec[]): ParsedLine {
  const isHelp = argv[0] === 'help';
  const words = isHelp ? argv.slice(1) : argv;
  if (isGroup(words[0])) return parseInGroup(words[0], words.slice(1), isHelp, commands);
  const [first, ...rest] = argv;
  if (first !== undefined && HELP.includes(first)) {
    return { command: undefined, values: { help: true }, arguments: [] };
  }
  if (first !== undefined && VERSION.includes(first)) {
    return parseFor(find('version', commands), rest);
  }
  if (first === 'help') {
    const command = rest[0] === undefined ? undefined : find(rest[0], commands);
    return { command, values: { help: true }, arguments: [] };
  }
  if (first === undefined || first.startsWith('-')) return parseFor(commands[0]!, argv);
  return parseFor(find(first, commands), rest);
}

function parseInGroup(
  group: CommandGroup,
  [name, ...rest]: readonly string[],
  isHelp: boolean,
  commands: readonly CommandSpec[],
): ParsedLine {
  if (name === undefined || name === '-h' || name === '--help') {
    return { command: undefined, group, values: { help: true }, arguments: [] };
  }
  const inside = commands.filter((command) => command.group === group);
  const command = find(name, inside, `hopgate ${group}`);
  return isHelp ? { command, values: { help: true }, arguments: [] } : parseFor(command, rest);
}

function find(name: string, commands: readonly CommandSpec[], program = 'hopgate'): CommandSpec {
  const command = commands.find((entry) => entry.name === name);
  if (command !== undefined) return command;
  const meant = commands.find(({ others }) => others?.includes(name));
  const names = [...commands.map((entry) => entry.name), ...Object.keys(COMMAND_GROUPS)];
  const near = meant ? ` Did you mean "${meant.name}"?` : hint(name, names);
  throw new UsageError(
    `Unknown command "${name}".${near} See "${program} --help" for all of them.`,
  );
}

function parseFor(command: CommandSpec, words: readonly string[]): ParsedLine {
  const options = optionsOf(command);
  const { tokens } = parseArgs({
    args: [...words],
    options: Object.fromEntries(
      options.flatMap(({ name, short, value, aliases = [] }) => {
        const type = value === undefined ? ('boolean' as const) : ('string' as const);
        return [
          [name, { type, ...(short && { short }) }] as const,
          ...aliases.map((alias) => [alias, { type }] as const),
        ];
      }),
    ),
    strict: false,
    tokens: true,
    allowPositionals: true,
  });
  const values: Record<string, string | boolean> = {};
  const positionals: string[] = [];
  for (const token of tokens) {
    if (token.kind === 'positional') positionals.push(token.value);
    if (token.kind !== 'option') continue;
    const option = options.find(
      ({ name, aliases }) => name === token.name || aliases?.includes(token.name),
    );
    if (option === undefined) {
      // `--version` works without a command.
      const names = [...options.map(({ name }) => name), 'version'];
      const meant = hint(token.name, names, (name) => `--${name}`);
      throw new UsageError(
        `Unknown option "${token.rawName}" for "${command.name}".${meant} See "hopgate ${command.name} --help".`,
      );
    }
    values[option.name] = valueGiven(option, token.rawName, token.value);
  }
  if (values.help !== true) checkArguments(command, positionals);
  return { command, values, arguments: positionals };
}

function valueGiven(
  option: OptionSpec,
  typed: string,
  value: string | undefined,
): string | boolean {
  if (option.value === undefined) {
    if (value !== undefined) throw new UsageError(`Option "${typed}" takes no value.`);
    return true;
  }
  if (value === undefined || value === '') {
    throw new UsageError(`Option "${typed}" needs a value: ${typed} ${option.value}.`);
  }
  checkChoice(value, option.choices, `Option "${typed}"`);
  if (option.range !== undefined) {
    const [least, most] = option.range;
    if (!/^\d{1,15}$/.test(value) || Number(value) < least || Number(value) > most) {
      throw new UsageError(
        `Option "${typed}" needs a whole number from ${least} to ${most}, not "${value}".`,
      );
    }
  }
  return value;
}

function checkChoice(value: string, choices: readonly string[] | undefined, what: string): void {
  if (choices === undefined || choices.includes(value)) return;
  throw new UsageError(
    `${what} is one of ${choices.join(', ')}, not "${value}".${hint(value, choices)}`,
  );
}

function checkArguments(command: CommandSpec, given: readonly string[]): void {
  const specs = command.arguments ?? [];
  specs.forEach((spec, i) => {
    const value = given[i];
    if (value === undefined) {
      if (spec.required !== true) return;
      const choices = spec.choices === undefined ? '' : ` (${spec.choices.join(', ')})`;
      throw new UsageError(
        `"hopgate ${command.name}" needs ${spec.name.toUpperCase()}: ${spec.summary}${choices}.`,
      );
    }
    checkChoice(value, spec.choices, spec.name.toUpperCase());
  });
  const extra = given[specs.length];
  if (extra !== undefined && specs.at(-1)?.many !== true) {
    throw new UsageError(`Unexpected argument "${extra}". See "hopgate ${command.name} --help".`);
  }
}
