/** The words that a shell can offer at the end of a command line, read from the command table. */

import {
  type ArgumentSpec,
  COMMAND_GROUPS,
  type CommandSpec,
  isGroup,
  type NamedOption,
  optionsOf,
} from '../../command.ts';

export interface Offer {
  /** Else what the shell itself finds: paths, folders, or the ids of the newest recorded exchanges. */
  readonly kind: 'words' | 'files' | 'folders' | 'samples';
  readonly words: readonly Choice[];
}

type Choice = readonly [word: string, summary: string];

/** The stages that nearly every exchange has. */
const STAGES: readonly string[] = [
  'client-request',
  'provider-request',
  'provider-response',
  'client-response',
];

/** @param typed the words behind the program's name; the last one is not finished */
export function offersFor(typed: readonly string[], commands: readonly CommandSpec[]): Offer {
  // bash cuts "--option=value" in three.
  const words = typed.filter((word) => word !== '=');
  if (typed.at(-1) === '=') words.push('');
  // "hopgate debug replay" is "hopgate replay".
  if (words.length > 2 && isGroup(words[0])) words.shift();
  const [first = '', ...rest] = words;
  const all = commands.map(({ name, summary }): Choice => [name, summary]);
  const inGroup = (wanted: string | undefined) =>
    all.filter((_, at) => commands[at]!.group === wanted);
  // Options without a command are those of the first one.
  if (first.startsWith('-')) return inCommand(commands[0]!, words);
  if (rest.length === 0) {
    const groups = Object.entries(COMMAND_GROUPS);
    return choices(
      [...inGroup(undefined), ...groups, ['help', 'show the help of a command']],
      first,
    );
  }
  if (isGroup(first)) return choices(inGroup(first), rest[0]!);
  if (first === 'help') return choices(rest.length === 1 ? all : [], rest[0]!);
  const command = commands.find(({ name }) => name === first);
  return command === undefined ? choices([], '') : inCommand(command, rest);
}

function inCommand(command: CommandSpec, words: readonly string[]): Offer {
  const options = optionsOf(command);
  const optionOf = (word: string | undefined) =>
    options.find((one) => one.value !== undefined && spellings(one).includes(word ?? ''));
  const before = words.slice(0, -1);
  const current = words.at(-1)!;
  const [name] = /^--[^=]+(?==)/.exec(current) ?? [];
  const option = optionOf(name ?? before.at(-1));
  if (option !== undefined) return offerOf(option, current, name === undefined ? '' : `${name}=`);
  if (current.startsWith('-')) {
    const all = options.flatMap((one) => spellings(one).map((word): Choice => [word, one.summary]));
    return choices(all, current);
  }
  const places = before.filter(
    (word, at) => !word.startsWith('-') && optionOf(before[at - 1]) === undefined,
  ).length;
  const specs = command.arguments ?? [];
  const spec = specs[places] ?? specs.findLast(({ many }) => many);
  return spec === undefined ? choices([], '') : offerOf(spec, current);
}

/** For an argument, or for the value of an option. @param prefix of the word, before the value */
function offerOf(spec: NamedOption | ArgumentSpec, current: string, prefix = ''): Offer {
  const offers = 'offers' in spec ? spec.offers : undefined;
  const words = spec.choices ?? (offers === 'stages' ? STAGES : undefined);
  if (words !== undefined) {
    return choices(
      words.map((word): Choice => [prefix + word, '']),
      current,
    );
  }
  const placeholder = ('value' in spec ? (spec.value ?? '') : spec.name).toUpperCase();
  if (offers === 'samples') return { kind: 'samples', words: [] };
  if (placeholder === 'FILE') return { kind: 'files', words: [] };
  if (placeholder === 'DIR') return { kind: 'folders', words: [] };
  return choices([], '');
}

/** Those that begin like this. */
const choices = (words: readonly Choice[], start: string): Offer => ({
  kind: 'words',
  words: words.filter(([word]) => word.startsWith(start)),
});

/** `--port` and, where there is one, `-p`. */
const spellings = ({ name, short }: NamedOption): readonly string[] =>
  short === undefined ? [`--${name}`] : [`--${name}`, `-${short}`];
