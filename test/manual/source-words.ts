/** Finds in the sources which notes are taken, which events are logged, and which codes errors have. */

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ROOT } from './files.ts';

interface Source {
  readonly path: string;
  /** Without comments. */
  readonly text: string;
}

const SOURCES: readonly Source[] = [...new Bun.Glob('src/**/*.ts').scanSync({ cwd: ROOT })]
  .sort()
  .map((path) => ({
    path,
    text: readFileSync(join(ROOT, path), 'utf8')
      .replace(/\/\*[\s\S]*?\*\//g, '')
      .replace(/^\s*\/\/.*$/gm, ''),
  }));

/** The text of an argument list up to its first comma on its own level. */
function firstArgument(text: string, from: number): string {
  let depth = 0;
  let quote = '';
  for (let at = from; at < text.length; at++) {
    const character = text[at]!;
    if (quote !== '') {
      if (character === quote) quote = '';
    } else if (character === "'" || character === '`' || character === '"') quote = character;
    else if ('([{'.includes(character)) depth++;
    else if (')]}'.includes(character) && depth-- === 0) return text.slice(from, at);
    else if (character === ',' && depth === 0) return text.slice(from, at);
  }
  return text.slice(from);
}

/** Literals of a note's name; what is computed in a template becomes N. */
const names = (argument: string): readonly string[] =>
  [...argument.matchAll(/['`]([a-z](?:[a-z0-9_]|\$\{[^}]*\})+)['`]/g)].map(([, name]) =>
    name!.replace(/\$\{[^}]*\}/g, 'N'),
  );

/**
 * Calls whose first argument is a name that came from elsewhere: the function is a way to take a note,
 * and its own calls are looked at instead.
 */
const PASSED_ON: Readonly<Record<string, RegExp>> = {
  'src/codecs/openai-chat/request/encode-content.ts': /\bnoteOnce\(\s*context\s*,\s*/g,
  'src/codecs/google-gemini/request/encode-parts.ts': /\bnoteOnce\(\s*this\.#context\s*,\s*/g,
};

export interface Found {
  readonly names: ReadonlySet<string>;
  /** Calls whose name could not be read: the test fails for these rather than overlook them. */
  readonly unread: readonly string[];
}

export function notesInSources(): Found {
  const found = new Set<string>();
  const unread: string[] = [];
  const ways = [/(?<!metrics\.)\bnotes\??\.add\(\s*/g, ...Object.values(PASSED_ON)];
  for (const { path, text } of SOURCES) {
    for (const way of ways) {
      for (const match of text.matchAll(way)) {
        const argument = firstArgument(text, match.index + match[0].length);
        const read = names(argument);
        for (const name of read) found.add(name);
        const passedOn = Object.hasOwn(PASSED_ON, path) && argument === 'name';
        if (read.length === 0 && !passedOn) unread.push(`${path}: ${match[0]}${argument}`);
      }
    }
  }
  return { names: found, unread };
}

/** `mcp.` stands before the events of an MCP server. */
const PREFIX: Readonly<Record<string, string>> = {
  'src/features/server-tools/tools/mcp/server.ts': 'mcp.',
};

export function eventsInSources(): ReadonlySet<string> {
  const found = new Set<string>();
  const ways = [
    /\b(?:maskedE|e)vent\(\s*(?:[\w.]*\.#?)?log\s*,\s*'([^']+)'/g,
    /(?<!console\.)\blog\(\s*'([^']+)'/g,
    /\btold\(\s*'([^']+)'/g,
  ];
  for (const { path, text } of SOURCES) {
    for (const way of ways) {
      for (const [, name] of text.matchAll(way)) found.add(`${PREFIX[path] ?? ''}${name}`);
    }
  }
  return found;
}

/** Their codes are those of a protocol or of another program: codecs, results of tools, the page, the demo model. */
const CODES_OF_OTHERS =
  /^src\/(codecs|lib|ui\/page|upstream|config\/vendors|features\/server-tools)\//;

/** The codes that this gateway gives its own errors. */
export function codesInSources(): ReadonlySet<string> {
  const found = new Set<string>();
  for (const { path, text } of SOURCES) {
    if (CODES_OF_OTHERS.test(path)) continue;
    for (const [, code] of text.matchAll(/\bcode(?:: | = )'([a-z_]+)'/g)) found.add(code!);
  }
  return found;
}
