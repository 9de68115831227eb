/** The Chinese texts of the help, by command and option; shown where the language of the environment is Chinese. */

import type { Environment } from '../config/environment.ts';
import texts from './chinese-help.json' with { type: 'json' };
import { COMMON_OPTIONS, type CommandSpec, type OptionSpec, type Options } from './command.ts';
import type { HelpWords } from './help.ts';

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

export const CHINESE: HelpWords = texts.words;

const optionsIn = (options: Options, chinese: ChineseOptions): Options =>
  Object.fromEntries(
    Object.entries(options).map(([name, option]) => [name, { ...option, ...chinese[name] }]),
  );

export const CHINESE_COMMON = optionsIn(COMMON_OPTIONS, texts.common);

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
