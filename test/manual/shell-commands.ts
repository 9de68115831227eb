/** Shell blocks of a page as single commands, each with what of its block it builds on. */

import { fences } from './files.ts';

export interface ShellCommand {
  /** As one would type it; lines that go on are kept together. */
  readonly text: string;
  /** Settings of variables and changes of folder that stand before it in its block. */
  readonly before: readonly string[];
}

/** Does the line end inside quotes, or with a backslash that continues it? */
function goesOn(text: string): boolean {
  let quote = '';
  for (let at = 0; at < text.length; at++) {
    const character = text[at]!;
    if (character === '\\' && quote !== "'") {
      if (at === text.length - 1) return true;
      at++;
    } else if (quote !== '') {
      if (character === quote) quote = '';
    } else if (character === "'" || character === '"') quote = character;
    else if (character === '#' && /\s|^$/.test(text[at - 1] ?? '')) {
      at = text.indexOf('\n', at);
      if (at < 0) return false;
    }
  }
  return quote !== '';
}

const HERE = /<<-?\s*['"]?(\w+)['"]?/;
const SETTING = /^(?:export\s|cd\s|[A-Za-z_]\w*=\S*$|[A-Za-z_]\w*=\$\(.*\)$)/;

/** The commands of a block, comments at the end of a line left out. */
export function commandsOf(block: string): readonly ShellCommand[] {
  const lines = block.split('\n');
  const found: ShellCommand[] = [];
  const before: string[] = [];
  for (let at = 0; at < lines.length; at++) {
    let text = lines[at]!;
    const end = HERE.exec(text)?.[1];
    if (end !== undefined) {
      do text += `\n${lines[++at] ?? end}`;
      while (lines[at] !== undefined && lines[at]!.trim() !== end);
    } else while (goesOn(text) && at < lines.length - 1) text += `\n${lines[++at]}`;
    text = end === undefined ? withoutComment(text).trim() : text;
    if (text === '') continue;
    found.push({ text, before: [...before] });
    if (SETTING.test(text)) before.push(text);
  }
  return found;
}

/** Words of a command line as a shell has them, and the file that its output goes to; undefined if it needs a shell. */
export function plainWords(
  line: string,
): { readonly words: readonly string[]; readonly into: string | undefined } | undefined {
  const [, command = line, into] = /^(.*?)\s+>\s*(\S+)$/.exec(line) ?? [];
  const unquoted = command.replace(/'[^']*'/g, '');
  if (/[|&;<>$"`*]/.test(unquoted)) return undefined;
  const words = [...command.matchAll(/(?:[^\s']|'[^']*')+/g)].map(([word]) =>
    word.replaceAll("'", ''),
  );
  return { words, into };
}

/** Variables that settings of a block export; `$(…)` and `…` become a text of some length. */
export const exportsIn = (before: readonly string[]): Record<string, string> =>
  Object.fromEntries(
    before
      .filter((line) => line.startsWith('export '))
      .flatMap((line) => [...line.matchAll(/(\w+)=(\$\([^)]*\)|\S+)/g)])
      .map(([, name, value]) => [
        name!,
        /^\$\(|^…$/.test(value!) ? `${name!.toLowerCase()}-0123456789abcdef` : value!,
      ]),
  );

/** A `#` in quotes is none; comments here stand behind two blanks or begin a line. */
function withoutComment(text: string): string {
  for (const { index } of text.matchAll(/(?:^|\s{2,})#/g)) {
    const before = text.slice(0, index);
    if (['"', "'"].every((quote) => before.split(quote).length % 2 === 1)) return before;
  }
  return text;
}

export const shellCommands = (text: string): readonly ShellCommand[] =>
  fences(text, 'sh').flatMap(commandsOf);
