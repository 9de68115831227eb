/** The bash completion; works with bash 3.2 and without the bash-completion package. */

import {
  type ArgumentSpec,
  COMMAND_GROUPS,
  type CommandSpec,
  type NamedOption,
  optionsOf,
} from '../../command.ts';
import {
  firstWords,
  groupsOf,
  LIST_IDS,
  type Offer,
  offerFor,
  quoted,
  spellings,
} from './offers.ts';

const offer = (what: Offer): string => {
  if (what.kind === 'words') return `_hopgate_words ${quoted(what.words.join(' '))}`;
  if (what.kind === 'files') return '_hopgate_paths -f';
  if (what.kind === 'samples') return '_hopgate_samples';
  return what.kind === 'folders' ? '_hopgate_paths -d' : ':';
};

const valued = (command: CommandSpec): readonly NamedOption[] =>
  optionsOf(command).filter(({ value }) => value !== undefined);

function values(command: CommandSpec): string {
  const cases = valued(command).map(
    (option) => `        ${spellings(option).join('|')}) ${offer(offerFor(option))}; return ;;`,
  );
  return ['      case $prev in', ...cases, '      esac'].join('\n');
}

function positionals(specs: readonly ArgumentSpec[]): string {
  const cases = specs.map((spec, i) => {
    const pattern = spec.many === true ? '*' : String(i);
    return `        ${pattern}) ${offer(offerFor(spec))} ;;`;
  });
  return ['      case $position in', ...cases, '      esac'].join('\n');
}

function branch(command: CommandSpec): string {
  const withValue = valued(command).flatMap(spellings).join(' ');
  const lines = [
    `    ${command.name})`,
    values(command),
    `      if [[ $cur == -* ]]; then _hopgate_words ${quoted(optionsOf(command).flatMap(spellings).join(' '))}; return; fi`,
  ];
  if (command.arguments !== undefined) {
    lines.push(
      `      _hopgate_position ${quoted(` ${withValue} `)}`,
      positionals(command.arguments),
    );
  }
  return [...lines, '      ;;'].join('\n');
}

const GROUPS = Object.keys(COMMAND_GROUPS).join('|');

export function bashCompletion(commands: readonly CommandSpec[]): string {
  const names = commands.map(({ name }) => name);
  return `# Completion of hopgate for bash, made by "hopgate completions bash".
# Once: hopgate completions bash > ~/.local/share/bash-completion/completions/hopgate

_hopgate_words() {
  local IFS=$' \\t\\n'
  COMPREPLY=($(compgen -W "$1" -- "$cur"))
}

_hopgate_paths() {
  local IFS=$'\\n'
  compopt -o filenames 2>/dev/null
  COMPREPLY=($(compgen "$1" -- "$cur"))
}

_hopgate_samples() {
  _hopgate_words "$("\${COMP_WORDS[0]}" ${LIST_IDS} 2>/dev/null)"
  ((\${#COMPREPLY[@]})) || _hopgate_paths -f
}

# Sets position: how many arguments stand before the cursor. $1 lists the options that take a value.
_hopgate_position() {
  local i word
  position=0
  for ((i = 2; i < COMP_CWORD; i++)); do
    word=\${COMP_WORDS[i]}
    if [[ $1 == *" $word "* ]]; then
      [[ \${COMP_WORDS[i + 1]} == '=' ]] && i=$((i + 1))
      i=$((i + 1))
    elif [[ $word != -* ]]; then
      position=$((position + 1))
    fi
  done
}

_hopgate() {
  # "hopgate debug replay" is "hopgate replay".
  if ((COMP_CWORD > 2)) && [[ \${COMP_WORDS[1]} == @(${GROUPS}) ]]; then
    local COMP_WORDS=("\${COMP_WORDS[0]}" "\${COMP_WORDS[@]:2}") COMP_CWORD=$((COMP_CWORD - 1))
  fi
  local cur=\${COMP_WORDS[COMP_CWORD]} prev=\${COMP_WORDS[COMP_CWORD - 1]} command=\${COMP_WORDS[1]} position=0
  COMPREPLY=()
  # "--option=value" reaches us as three words.
  if [[ $cur == '=' ]]; then cur=; elif [[ $prev == '=' ]]; then prev=\${COMP_WORDS[COMP_CWORD - 2]}; fi
  if ((COMP_CWORD == 1)) && [[ $cur != -* ]]; then
    _hopgate_words ${quoted(
      firstWords(commands)
        .map(([word]) => word)
        .join(' '),
    )}
    return
  fi
  # Options without a command are those of ${names[0]}.
  [[ $command == -* ]] && command=${names[0]}
  case $command in
${groupsOf(commands)
  .map(
    ([group, inside]) =>
      `    ${group}) ((COMP_CWORD == 2)) && _hopgate_words ${quoted(inside.join(' '))} ;;`,
  )
  .join('\n')}
    help) ((COMP_CWORD == 2)) && _hopgate_words ${quoted(names.join(' '))} ;;
${commands.map(branch).join('\n')}
  esac
}

complete -F _hopgate hopgate
`;
}
