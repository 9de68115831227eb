import { COMPLETE, type CommandSpec, type Invocation } from '../../command.ts';
import { offersFor } from './offers.ts';

/** The command that prints ids of recorded exchanges. */
const LIST_IDS = 'samples list --ids --limit 200';

const BASH = `# Completion of hopgate for bash, made by "hopgate completions bash".
# Once: hopgate completions bash > ~/.local/share/bash-completion/completions/hopgate
# It works with bash 3.2 and without the bash-completion package.

_hopgate() {
  local IFS=$'\\n' cur=\${COMP_WORDS[COMP_CWORD]} kind offers
  offers=($("\${COMP_WORDS[0]}" ${COMPLETE} bash "\${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null))
  kind=\${offers[0]}
  COMPREPLY=("\${offers[@]:1}")
  [[ $cur == '=' ]] && cur=
  if [[ $kind == samples ]]; then
    COMPREPLY=($(compgen -W "$("\${COMP_WORDS[0]}" ${LIST_IDS} 2>/dev/null)" -- "$cur"))
    ((\${#COMPREPLY[@]})) || kind=files
  fi
  if [[ $kind == files || $kind == folders ]]; then
    compopt -o filenames 2>/dev/null
    [[ $kind == files ]] && kind=-f || kind=-d
    COMPREPLY=($(compgen $kind -- "$cur"))
  fi
}

complete -F _hopgate hopgate
`;

const ZSH = `#compdef hopgate
# Completion of hopgate for zsh, made by "hopgate completions zsh".
# Once: hopgate completions zsh > "\${fpath[1]}/_hopgate"

_hopgate() {
  local program=\${(Q)words[1]}
  local -a offers ids
  offers=(\${(f)"$($program ${COMPLETE} zsh "\${(@Q)words[2,CURRENT]}" 2>/dev/null)"})
  local kind=$offers[1]
  shift offers
  [[ $kind != words ]] && compset -P '--*='
  case $kind in
    words) _describe -V 'hopgate' offers ;;
    files) _files ;;
    folders) _files -/ ;;
    samples)
      ids=(\${(f)"$($program ${LIST_IDS} 2>/dev/null)"})
      if (( $#ids )); then compadd -V samples -a ids; else _files; fi
      ;;
  esac
}

if [[ $funcstack[1] == _hopgate ]]; then
  _hopgate "$@"
else
  compdef _hopgate hopgate
fi
`;

const FISH = `# Completion of hopgate for fish, made by "hopgate completions fish".
# Once: hopgate completions fish > ~/.config/fish/completions/hopgate.fish

function __hopgate
    set -l current (commandline -ct)
    set -l words (commandline -opc) "$current"
    set -l offers ($words[1] ${COMPLETE} fish $words[2..-1] 2>/dev/null)
    set -l option (string match -r -- '^--[^=]+=' $current)
    set -l value (string replace -r -- '^--[^=]+=' '' "$current")
    switch "$offers[1]"
        case words
            printf '%s\\n' $offers[2..-1]
        case folders
            printf '%s\\n' "$option"(__fish_complete_directories "$value")
        case samples files
            set -l ids
            test $offers[1] = samples; and set ids ($words[1] ${LIST_IDS} 2>/dev/null | string match -- "$value*")
            set -q ids[1]; or set ids (__fish_complete_path "$value")
            printf '%s\\n' "$option"$ids
    end
end

complete -c hopgate -f -k -a '(__hopgate)'
`;

/** By the shell's name. */
export const SCRIPTS: Readonly<Record<string, string>> = { bash: BASH, zsh: ZSH, fish: FISH };

/** The lines that a script gets: the kind of the offer, and its words. */
export function offersText(
  [shell, ...typed]: readonly string[],
  commands: readonly CommandSpec[],
): string {
  const { kind, words } = offersFor(typed, commands);
  const lines = words.map(([word, summary]) => {
    if (shell === 'bash' || summary === '') return word;
    return shell === 'zsh' ? `${word.replaceAll(':', '\\:')}:${summary}` : `${word}\t${summary}`;
  });
  return [kind, ...lines, ''].join('\n');
}

export const COMPLETIONS: CommandSpec = {
  name: 'completions',
  group: 'admin',
  summary: 'print a completion script for your shell',
  description: ['The script completes every command and option.'],
  arguments: [
    { name: 'shell', summary: 'which one', required: true, choices: Object.keys(SCRIPTS) },
  ],
  examples: {
    'hopgate completions bash > ~/.local/share/bash-completion/completions/hopgate':
      'Installs completions for bash; "source" loads them into the current shell.',
    'hopgate completions fish > ~/.config/fish/completions/hopgate.fish':
      'Installs completions for fish.',
  },
  exits: { 0: 'printed' },
  run: runCompletions,
};

async function runCompletions({ arguments: [shell = ''], io }: Invocation): Promise<number> {
  io.stdout.write(SCRIPTS[shell]!);
  return 0;
}
