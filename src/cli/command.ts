/** A command is data for parsing, help and completions, and a function that runs it. */

import type { Finding, Linter } from '../codecs/lint.ts';
import type { Config } from '../config/config.ts';
import type { Environment } from '../config/environment.ts';
import type { LoadOptions } from '../config/load.ts';
import type { Notes } from '../conversation/notes.ts';
import type { Target } from '../conversation/target.ts';
import type { Conversation, ProtocolName } from '../conversation/types.ts';
import type { Json } from '../lib/json/json.ts';
import type { SampleServices } from '../samples/in-process-gateway.ts';
import type { Engines } from '../state/engines/open-engines.ts';
import type { MoveDirection, StateMove } from '../state/move/paged-move.ts';
import type { Terminal } from './terminal.ts';

export interface OptionSpec {
  /** One letter. */
  readonly short?: string;
  /** Older names that still work; help and completions do not show them. */
  readonly aliases?: readonly string[];
  /** The placeholder of its value, e.g. `FILE`; left out: a flag. */
  readonly value?: string;
  readonly summary: string;
  readonly choices?: readonly string[];
  /** The text for the help; the command itself applies the default. */
  readonly default?: string;
  /** A whole number in this range. */
  readonly range?: readonly [least: number, most: number];
}

/** By their names, without dashes. */
export type Options = Readonly<Record<string, OptionSpec>>;

export interface NamedOption extends OptionSpec {
  readonly name: string;
}

export const named = (options: Options = {}): readonly NamedOption[] =>
  Object.entries(options).map(([name, option]) => ({ name, ...option }));

export interface ArgumentSpec {
  readonly name: string;
  readonly summary: string;
  readonly required?: boolean;
  /** Takes all further arguments. */
  readonly many?: boolean;
  readonly choices?: readonly string[];
  /** What shells offer for it where there are no choices: ids of recorded exchanges, or names of their stages. */
  readonly offers?: 'samples' | 'stages';
}

export type CommandGroup = 'debug' | 'admin';

/** Groups of commands, with the purpose of each. */
export const COMMAND_GROUPS: Readonly<Record<CommandGroup, string>> = {
  debug: 'look into recorded exchanges, and try requests again',
  admin: 'run it as a service, move its state, and more that is rarely needed',
};

/** The word by which a shell asks what to offer; behind it come the shell's name, and the words of the line. */
export const COMPLETE = '__complete';

export const isGroup = (word: string | undefined): word is CommandGroup =>
  word !== undefined && Object.hasOwn(COMMAND_GROUPS, word);

export interface CommandSpec {
  readonly name: string;
  /** Words of other programs for the same: typed in its place, it is what was meant. */
  readonly others?: readonly string[];
  /** The group of a rarely needed command. Both `hopgate debug replay` and `hopgate replay` work. */
  readonly group?: CommandGroup;
  /** Half a line, for lists. */
  readonly summary: string;
  /** What users should know before they use it; paragraphs. */
  readonly description: readonly string[];
  readonly arguments?: readonly ArgumentSpec[];
  /** Besides the common ones. */
  readonly options?: Options;
  /** Command lines, with what they do. */
  readonly examples: Readonly<Record<string, string>>;
  /** Exit codes besides 2 (wrong usage) and what they mean. */
  readonly exits: Readonly<Record<number, string>>;
  readonly run: (invocation: Invocation) => Promise<number>;
}

/** A parsed command line, and the environment that it runs in. */
export interface Invocation {
  readonly arguments: readonly string[];
  /** The value of an option that takes one. */
  text(name: string): string | undefined;
  number(name: string): number | undefined;
  flag(name: string): boolean;
  readonly io: Io;
  /** Loads the gateway, which takes most of a command's start: few need it. */
  readonly services: () => Promise<CommandServices>;
  /** The command table, for commands that are made from it. */
  readonly commands: readonly CommandSpec[];
  readonly out: Terminal;
  readonly err: Terminal;
}

export interface Output {
  write(text: string): void;
  readonly isTTY: boolean;
  /** Characters in a line; undefined when not known. */
  readonly columns?: number;
}

/** The program's input, output and environment as a value, so that tests can run every command. */
export interface Io {
  readonly stdout: Output;
  readonly stderr: Output;
  readonly stdin: NodeJS.ReadableStream;
  /** A person can answer questions at stdin. */
  readonly interactive: boolean;
  readonly environment: Environment;
  readonly cwd: string;
  readonly fetch: typeof globalThis.fetch;
  /** The command that starts this program; left out: its executable alone. */
  readonly program?: readonly string[];
  /** `linux`, `darwin` and so on; left out: that of this process. */
  readonly platform?: string;
}

/** What `serve` needs to start: the configuration with the flags applied. */
export interface ServeOptions {
  readonly config: Config;
  /** How it was loaded, for loading it again. */
  readonly load: LoadOptions;
  /** Applies the same flags to a configuration that was loaded again. */
  withFlags(config: Config): Config;
}

/** What only the entry can provide. */
export interface CommandServices extends Omit<SampleServices, 'environment'> {
  /** Runs the server until it is stopped; resolves to the exit code. */
  serve(options: ServeOptions): Promise<number>;
  /** The repair of broken histories. */
  readonly pairing: Pairing;
  /** Strict validators of the three protocols. */
  readonly lint: Lint;
  /** What can be moved between the files of this machine and the engines. */
  stateMoves(options: StateMoveOptions): Promise<readonly StateMove[]>;
  /** Tries MCP servers and HTTP tools, each for so many milliseconds. */
  checkTools(config: Config, version: string, timeoutMs: number): Promise<readonly ToolCheck[]>;
}

/** The result for one source of tools; `message` may hold a program's own words. */
export interface ToolCheck {
  readonly about: string;
  readonly status: 'ok' | 'warn' | 'fail';
  readonly message: string;
}

export interface StateMoveOptions {
  /** The directory of the program's files. */
  readonly home: string;
  readonly config: Config;
  readonly engines: Engines;
  readonly to: MoveDirection;
}

export interface Lint {
  readonly linters: Readonly<Record<ProtocolName, Linter>>;
  /** What this vendor refuses in addition to the protocol; never throws. */
  vendor(body: Json, target: Target): readonly Finding[];
}

/** What `repair` needs of the pairing feature. */
export interface Pairing {
  /** The raw body, repaired where the decoder of its protocol could not read it. */
  mend(body: Json, protocol: ProtocolName, notes: Notes): Json;
  /** The conversation as the target accepts it; the same object when nothing is wrong. */
  repair(conversation: Conversation, target: Target, notes: Notes, madeBy?: string): Conversation;
  /** The conversation with its turns in the order that the target's profile wants. */
  fitTurns(conversation: Conversation, target: Target, notes: Notes): Conversation;
}

export const COMMON_OPTIONS: Options = {
  config: {
    short: 'c',
    value: 'FILE',
    summary: 'configuration file',
    default: '$HOPGATE_CONFIG, ~/.config/hopgate/hopgate.yaml, /etc/hopgate/hopgate.yaml',
  },
  'no-color': { summary: 'no colours, as NO_COLOR=1 does' },
  help: { short: 'h', summary: 'show this help' },
};

/** All options of a command, its own first. */
export const optionsOf = ({ options }: CommandSpec): readonly NamedOption[] =>
  named({ ...options, ...COMMON_OPTIONS });

/** Wrong usage: a message for people, printed with exit code 2. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
}

export const JSON_OPTION: OptionSpec = { summary: 'print JSON, for scripts' };

export const YES: OptionSpec = { short: 'y', summary: 'do not ask' };

/** The parts of a list as it is typed, between commas. */
export const partsOf = (list: string): readonly string[] =>
  list
    .split(',')
    .map((part) => part.trim())
    .filter((part) => part !== '');
