/** The fish completion: one `complete` line for each thing that can be typed. */

import { type CommandSpec, type NamedOption, optionsOf } from '../../command.ts';
import { firstWords, groupsOf, LIST_IDS, type Offer, offerFor, quoted } from './offers.ts';

const fishQuoted = (text: string) => `'${text.replace(/[\\']/g, '\\$&')}'`;

const offered = (what: Offer): string => {
  if (what.kind === 'words') return ` -x -a ${quoted(what.words.join(' '))}`;
  if (what.kind === 'files') return ' -r -F';
  if (what.kind === 'samples') return " -x -k -a '(__hopgate_samples)'";
  return what.kind === 'folders' ? " -x -a '(__fish_complete_directories)'" : ' -x';
};

const line = (condition: string, rest: string) => `complete -c hopgate -n ${condition}${rest}`;

function option(condition: string, spec: NamedOption): string {
  const short = spec.short === undefined ? '' : ` -s ${spec.short}`;
  const value = spec.value === undefined ? '' : offered(offerFor(spec));
  return line(condition, `${short} -l ${spec.name}${value} -d ${fishQuoted(spec.summary)}`);
}

function branch(command: CommandSpec): string[] {
  const here = `'__hopgate_command ${command.name}'`;
  const lines = optionsOf(command).map((spec) => option(here, spec));
  (command.arguments ?? []).forEach((spec, i) => {
    const what = offerFor(spec);
    if (what.kind === 'free') return;
    const place = spec.many === true ? `${i}+` : String(i);
    const condition = `'__hopgate_command ${command.name} ${place} ${takers(command)}'`;
    const rest = what.kind === 'files' ? ' -F' : offered(what).replace(' -x', ' -f');
    lines.push(line(condition, rest));
  });
  return lines;
}

/** Options that take the next word, so that it is not counted as an argument. */
const takers = (command: CommandSpec) =>
  optionsOf(command)
    .filter(({ value }) => value !== undefined)
    .flatMap(({ name, short }) => [`--${name}`, ...(short === undefined ? [] : [`-${short}`])])
    .join(' ');

export function fishCompletion(commands: readonly CommandSpec[]): string {
  const first = commands[0]!;
  const names = commands.map(({ name }) => name);
  const groups = groupsOf(commands).map(([group]) => group);
  return `# Completion of hopgate for fish, made by "hopgate completions fish".
# Once: hopgate completions fish > ~/.config/fish/completions/hopgate.fish

# Is this the command, and (with a number) do that many arguments precede the cursor; with "2+", two or more?
# The words after the number are options whose next word is their value.
function __hopgate_command
    set -l words (commandline -opc)
    # "hopgate debug replay" is "hopgate replay".
    if contains -- "$words[2]" ${groups.join(' ')}; and set -q words[3]
        set -e words[2]
    end
    set -l name ${first.name}
    set -l rest $words[2..-1]
    if set -q words[2]; and not string match -q -- '-*' $words[2]
        set name $words[2]
        set rest $words[3..-1]
    else if not set -q words[2]
        # Nothing but the program's name: only its options, which are those of ${first.name}.
        test "$argv[1]" = ${first.name}; and string match -q -- '-*' (commandline -ct)
        return
    end
    test "$name" = "$argv[1]"; or return 1
    set -q argv[2]; or return 0
    set -l count 0
    set -l skip 0
    for word in $rest
        if test $skip = 1
            set skip 0
        else if contains -- $word $argv[3..-1]
            set skip 1
        else if not string match -q -- '-*' $word
            set count (math $count + 1)
        end
    end
    if string match -q '*+' $argv[2]
        test $count -ge (string replace + '' $argv[2])
    else
        test $count = $argv[2]
    end
end

function __hopgate_samples
    set -l words (commandline -opc)
    set -l ids ($words[1] ${LIST_IDS} 2>/dev/null | string match -- (commandline -ct)'*')
    if set -q ids[1]
        printf '%s\\n' $ids
    else
        __fish_complete_path (commandline -ct)
    end
end

complete -c hopgate -f
${firstWords(commands)
  .map(([name, summary]) => line('__fish_use_subcommand', ` -a ${name} -d ${fishQuoted(summary)}`))
  .join('\n')}
${groupsOf(commands)
  .map(([group, inside]) =>
    line(`'__hopgate_command ${group} 0'`, ` -f -a ${quoted(inside.join(' '))}`),
  )
  .join('\n')}
complete -c hopgate -n '__hopgate_command help 0' -f -a ${quoted(names.join(' '))}
${commands.flatMap(branch).join('\n')}
`;
}
