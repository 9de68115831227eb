import type { Environment } from '../config/environment.ts';
import texts from './chinese-help.json' with { type: 'json' };
import {
  COMMAND_GROUPS,
  COMMON_OPTIONS,
  type CommandGroup,
  type CommandSpec,
  type NamedOption,
  named,
  type OptionSpec,
  type Options,
} from './command.ts';
import type { ParsedLine } from './parse.ts';
import { definitions, type Terminal, wrap } from './terminal.ts';

/** An option as it is typed: `-c, --config FILE`. */
function optionUsage({ name, short, value }: NamedOption): string {
  const dashes = short === undefined ? `    --${name}` : `-${short}, --${name}`;
  return value === undefined ? dashes : `${dashes} ${value}`;
}

const ENGLISH = {
  title: 'one gateway between coding agents or chat apps and any LLM vendor',
  about:
    'Speaks OpenAI Chat Completions, OpenAI Responses, Anthropic Messages and Google Gemini on both sides. Without a configuration it uses the API keys of the environment.',
  noCommand: 'no command: serve',
  more: '"hopgate COMMAND --help" describes each command.',
  usage: 'Usage',
  commands: 'Commands',
  moreCommands: 'More commands',
  everyCommand: 'Options of every command',
  version: 'same as "hopgate version"',
  firstSteps: 'First steps',
  steps: [
    'serve with the keys and servers that it finds',
    'write a configuration by answering a few questions',
    'point Claude Code at it; --revert undoes that',
    'find out why something does not work',
  ],
  arguments: 'Arguments',
  options: 'Options',
  oneOf: 'one of ',
  default: 'default: ',
  /** Before, between and after details. */
  details: [' (', '; ', ')'],
  examples: 'Examples',
  exitCodes: 'Exit codes',
  wrongUsage: 'wrong usage',
  groups: COMMAND_GROUPS,
  /** Between a group and its commands. */
  colon: ': ',
};

const FIRST_STEPS = ['hopgate', 'hopgate init', 'hopgate setup claude', 'hopgate doctor'];

/** The summary of an option or argument, with its choices and its default. */
export function optionText(
  { summary, choices, default: standard }: Pick<OptionSpec, 'summary' | 'choices' | 'default'>,
  words = ENGLISH,
): string {
  const more = [
    choices === undefined ? undefined : words.oneOf + choices.join(', '),
    standard === undefined ? undefined : words.default + standard,
  ].filter((part) => part !== undefined);
  const [before, between, after] = words.details;
  return more.length === 0 ? summary : summary + before + more.join(between) + after;
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
function groupHelp(
  group: CommandGroup,
  commands: readonly CommandSpec[],
  terminal: Terminal,
  words = ENGLISH,
): void {
  const { paint } = terminal;
  terminal.line(`${paint('bold', `hopgate ${group}`)} - ${words.groups[group]}`);
  terminal.line();
  terminal.line(`${paint('bold', words.usage)}  hopgate [${group}] COMMAND [options]`);
  section(terminal, words.commands, rowsOf(commands, group), 20);
  terminal.line();
  terminal.line(words.more.replace('hopgate COMMAND', `hopgate ${group} COMMAND`));
}

/** The general help: the commands that everybody needs, and where the others are. */
function generalHelp(
  commands: readonly CommandSpec[],
  terminal: Terminal,
  words = ENGLISH,
  common = COMMON_OPTIONS,
): void {
  const { paint, width } = terminal;
  terminal.line(`${paint('bold', 'hopgate')} - ${words.title}`);
  terminal.line();
  for (const line of wrap(words.about, width)) terminal.line(line);
  terminal.line();
  terminal.line(
    `${paint('bold', words.usage)}  hopgate [COMMAND] [options]    (${words.noCommand})`,
  );
  section(terminal, words.commands, rowsOf(commands, undefined), 20);
  section(
    terminal,
    words.moreCommands,
    Object.entries(words.groups).map(([group, summary]) => {
      const names = commands.filter((one) => one.group === group).map(({ name }) => name);
      return [`${group} COMMAND`, summary + words.colon + names.join(', ')];
    }),
    20,
  );
  section(terminal, words.everyCommand, [
    ...named(common).map((option) => [optionUsage(option), optionText(option, words)] as const),
    ['-V, --version', words.version],
  ]);
  section(
    terminal,
    words.firstSteps,
    FIRST_STEPS.map((line, at) => [line, words.steps[at]!]),
  );
  terminal.line();
  terminal.line(words.more);
}

export function commandHelp(
  command: CommandSpec,
  terminal: Terminal,
  words = ENGLISH,
  common = COMMON_OPTIONS,
): void {
  const { paint, width } = terminal;
  terminal.line(`${paint('bold', `hopgate ${command.name}`)} - ${command.summary}`);
  terminal.line();
  terminal.line(`${paint('bold', words.usage)}  ${usage(command)}`);
  for (const paragraph of command.description) {
    terminal.line();
    for (const line of wrap(paragraph, width)) terminal.line(line);
  }
  section(
    terminal,
    words.arguments,
    (command.arguments ?? []).map((argument) => [
      argument.name.toUpperCase(),
      optionText(argument, words),
    ]),
  );
  section(
    terminal,
    words.options,
    named({ ...command.options, ...common }).map((option) => [
      optionUsage(option),
      optionText(option, words),
    ]),
  );
  terminal.line();
  terminal.line(paint('bold', words.examples));
  for (const [line, summary] of Object.entries(command.examples)) {
    terminal.line(`  ${paint('cyan', line)}`);
    for (const text of wrap(summary, width, 6)) terminal.line(text);
  }
  section(terminal, words.exitCodes, Object.entries({ ...command.exits, 2: words.wrongUsage }));
}

/** The help that a command line asks for. */
export function showHelp(
  { command, group }: ParsedLine,
  commands: readonly CommandSpec[],
  out: Terminal,
  chinese: boolean,
): void {
  const all = chinese ? commands.map(inChinese) : commands;
  const words = chinese ? CHINESE : undefined;
  const common = chinese ? CHINESE_COMMON : undefined;
  if (group !== undefined) groupHelp(group, all, out, words);
  else if (command === undefined) generalHelp(all, out, words, common);
  else commandHelp(all[commands.indexOf(command)]!, out, words, common);
}

interface ChineseCommand {
  readonly summary: string;
  readonly description: readonly string[];
  readonly arguments?: Readonly<Record<string, string>>;
  readonly options?: ChineseOptions;
  /** In the order of the command's own. */
  readonly examples: readonly string[];
  readonly exits: readonly string[];
}

/** A default that is no text for people is that of the option. */
type ChineseOptions = Readonly<Record<string, Partial<Pick<OptionSpec, 'summary' | 'default'>>>>;

export const CHINESE: typeof ENGLISH = texts.words;

const optionsIn = (options: Options, chinese: ChineseOptions): Options =>
  Object.fromEntries(
    Object.entries(options).map(([name, option]) => [name, { ...option, ...chinese[name] }]),
  );

const CHINESE_COMMON = optionsIn(COMMON_OPTIONS, texts.common);

/** The command with Chinese texts; what has none stays English. */
export function inChinese(command: CommandSpec): CommandSpec {
  const all: Readonly<Record<string, ChineseCommand>> = texts.commands;
  const chinese = all[command.name];
  if (chinese === undefined) return command;
  return {
    ...command,
    summary: chinese.summary,
    description: chinese.description,
    ...(command.arguments && {
      arguments: command.arguments.map((one) => ({
        ...one,
        summary: chinese.arguments?.[one.name] ?? one.summary,
      })),
    }),
    ...(command.options && { options: optionsIn(command.options, chinese.options ?? {}) }),
    examples: translated(command.examples, chinese.examples),
    exits: translated(command.exits, chinese.exits),
  };
}

/** The texts of a table in Chinese, which stand in the same order. */
const translated = (english: Readonly<Record<string, string>>, chinese: readonly string[]) =>
  Object.fromEntries(
    Object.entries(english).map(([name, text], at) => [name, chinese[at] ?? text]),
  );

/** The variables of POSIX, the strongest first. */
const LANGUAGE = ['LC_ALL', 'LC_MESSAGES', 'LANG'];

export const speaksChinese = (environment: Pick<Environment, 'variable'>): boolean =>
  LANGUAGE.map((name) => environment.variable(name))
    .find((value) => value !== undefined && value !== '')
    ?.startsWith('zh') === true;
