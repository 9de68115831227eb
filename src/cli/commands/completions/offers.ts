/** Words that a shell may offer next on a command line, read from the command table. */

import {
  type ArgumentSpec,
  COMMAND_GROUPS,
  type CommandSpec,
  type NamedOption,
} from '../../command.ts';

/** The first word of a command line, and what it does: commands outside groups, the groups, help. */
export const firstWords = (
  commands: readonly CommandSpec[],
): readonly (readonly [string, string])[] => [
  ...commands
    .filter(({ group }) => group === undefined)
    .map(({ name, summary }) => [name, summary] as const),
  ...Object.entries(COMMAND_GROUPS),
  ['help', 'show the help of a command'],
];

/** Groups with the names of their commands. */
export const groupsOf = (
  commands: readonly CommandSpec[],
): readonly (readonly [group: string, names: readonly string[]])[] =>
  Object.keys(COMMAND_GROUPS).map((group) => [
    group,
    commands.filter((command) => command.group === group).map(({ name }) => name),
  ]);

/** What a shell may offer for a value. */
export type Offer =
  | { readonly kind: 'words'; readonly words: readonly string[] }
  | { readonly kind: 'files' }
  | { readonly kind: 'folders' }
  /** The ids of the newest recorded exchanges, asked of the program; files where none begins so. */
  | { readonly kind: 'samples' }
  /** Something only the user knows. */
  | { readonly kind: 'free' };

/** The stages that nearly every exchange has. */
const STAGES: readonly string[] = [
  'client-request',
  'provider-request',
  'provider-response',
  'client-response',
];

/** The command that prints the ids for {@link Offer} `samples`; `$1` of the shells is the program as it was typed. */
export const LIST_IDS = 'samples list --ids --limit 200';

/** The offer for an argument, or for the value of an option that takes one. */
export function offerFor(spec: NamedOption | ArgumentSpec): Offer {
  if (spec.choices !== undefined) return { kind: 'words', words: spec.choices };
  if ('offers' in spec && spec.offers !== undefined) {
    return spec.offers === 'stages' ? { kind: 'words', words: STAGES } : { kind: 'samples' };
  }
  const placeholder = ('value' in spec ? (spec.value ?? '') : spec.name).toUpperCase();
  if (placeholder === 'FILE') return { kind: 'files' };
  if (placeholder === 'DIR') return { kind: 'folders' };
  return { kind: 'free' };
}

/** `--port` and, where there is one, `-p`. */
export const spellings = ({ name, short }: NamedOption): readonly string[] =>
  short === undefined ? [`--${name}`] : [`--${name}`, `-${short}`];

/** A text in single quotes, for the three shells alike. */
export const quoted = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`;
