/** The zsh completion: a function for `_arguments`, to be found in fpath or to be sourced. */

import { type ArgumentSpec, type CommandSpec, type NamedOption, optionsOf } from '../../command.ts';
import {
  firstWords,
  groupsOf,
  LIST_IDS,
  type Offer,
  offerFor,
  quoted,
  spellings,
} from './offers.ts';

// Inside a spec of _arguments a colon ends a field and brackets enclose the explanation.
const escaped = (text: string) => text.replace(/[\\:[\]]/g, '\\$&');

const action = (what: Offer): string => {
  if (what.kind === 'words') return `(${what.words.join(' ')})`;
  if (what.kind === 'files') return '_files';
  if (what.kind === 'samples') return '_hopgate_samples';
  return what.kind === 'folders' ? '_files -/' : ' ';
};

function option(spec: NamedOption): readonly string[] {
  const all = spellings(spec);
  return all.map((spelling) => {
    const excludes = all.length > 1 ? `(${all.join(' ')})` : '';
    const words = `[${escaped(spec.summary)}]`;
    if (spec.value === undefined) return quoted(`${excludes}${spelling}${words}`);
    const mark = spelling.startsWith('--') ? '=' : '+';
    return quoted(`${excludes}${spelling}${mark}${words}:${spec.value}:${action(offerFor(spec))}`);
  });
}

const argument = (spec: ArgumentSpec): string =>
  quoted(
    `${spec.many === true ? '*' : ''}:${spec.required === true ? '' : ':'}${escaped(spec.summary)}:${action(offerFor(spec))}`,
  );

function branch(command: CommandSpec): string {
  const specs = [
    ...optionsOf(command).flatMap(option),
    ...(command.arguments ?? []).map(argument),
  ].map((spec) => ` \\\n        ${spec}`);
  return `    ${command.name})\n      _arguments -s -S${specs.join('')}\n      ;;`;
}

export function zshCompletion(commands: readonly CommandSpec[]): string {
  const lines = (words: readonly (readonly [string, string])[]) =>
    words.map(([name, summary]) => `    ${quoted(`${name}:${escaped(summary)}`)}`).join('\n');
  const all = commands.map(({ name, summary }) => [name, summary] as const);
  const first = commands[0]!.name;
  return `#compdef hopgate
# Completion of hopgate for zsh, made by "hopgate completions zsh".
# Once: hopgate completions zsh > "\${fpath[1]}/_hopgate"

_hopgate_samples() {
  local -a ids
  ids=(\${(f)"$(\${(Q)hopgate_program} ${LIST_IDS} 2>/dev/null)"})
  if (( $#ids )); then compadd "$@" -V samples -a ids; else _files; fi
}

_hopgate() {
  local hopgate_program=$words[1]
  local -a commands
  commands=(
${lines(firstWords(commands))}
  )
  if (( CURRENT == 2 )) && [[ $words[2] != -* ]]; then
    _describe -t commands 'command' commands
    return
  fi
  # "hopgate debug replay" is "hopgate replay".
  if (( CURRENT > 3 )) && [[ $words[2] == (${groupsOf(commands)
    .map(([group]) => group)
    .join('|')}) ]]; then
    words=($words[1] "\${(@)words[3,-1]}")
    (( CURRENT-- ))
  fi
  local command=$words[2]
  # Options without a command are those of ${first}.
  if [[ $command == -* ]]; then
    command=${first}
  else
    shift words
    (( CURRENT-- ))
  fi
  case $command in
    help)
      commands=(
${lines(all)}
      )
      (( CURRENT == 2 )) && _describe -t commands 'command' commands
      ;;
${groupsOf(commands)
  .map(
    ([group, inside]) =>
      `    ${group})\n      commands=(\n${lines(all.filter(([name]) => inside.includes(name)))}\n      )\n      _describe -t commands 'command' commands\n      ;;`,
  )
  .join('\n')}
${commands.map(branch).join('\n')}
  esac
}

if [[ $funcstack[1] == _hopgate ]]; then
  _hopgate "$@"
else
  compdef _hopgate hopgate
fi
`;
}
