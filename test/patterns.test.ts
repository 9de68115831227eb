/** Every regular expression of the sources takes linear time on any text, or states why its texts are short. */

import { expect, test } from 'bun:test';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseSync } from 'oxc-parser';
import { check } from 'recheck';

const ROOT = join(import.meta.dir, '..');

/**
 * Files whose patterns may take more than linear time, and what limits their texts. A text from a client, a vendor, a
 * tool or a page is never short by itself.
 */
const BOUNDED: readonly (readonly [file: string, reason: string])[] = [
  ['src/cli/commands/doctor/diagnosis.ts', 'one answer, read up to a limit, in a command'],
  ['src/cli/commands/doctor/provider.ts', 'one answer, read up to a limit, in a command'],
  ['src/cli/commands/setup/clients/codex.ts', "the settings of the user's own client"],
  ['src/cli/commands/setup/index.ts', "the settings of the user's own client"],
  ['src/cli/commands/setup/plan.ts', 'the address of this gateway'],
  ['src/cli/commands/setup/toml-block.ts', "the settings of the user's own client"],
  [
    'src/config/file/references.ts',
    "one value of the operator's file; hostile files have growth tests",
  ],
  ['src/conversation/refusal/refusal.ts', 'at most 300 characters behind each beginning'],
  ['src/conversation/refusal/refused-media.ts', 'the first 4000 characters, of a refusal'],
  ['src/conversation/refusal/refused-settings.ts', 'the first 4096 characters, of a refusal'],
  ['src/manual/markdown.ts', 'the manual, which is part of the program'],
  ['src/manual/sections.ts', 'the manual, which is part of the program'],
  ['src/features/leaked-calls/scan/quotations.ts', 'the last 400 characters'],
  [
    'src/features/leaked-calls/block/read-names.ts',
    'a header, which is given up beyond 128 characters',
  ],
  ['src/features/server-tools/tools/web-fetch/page-text.ts', 'the first 2048 bytes'],
  [
    'src/features/server-tools/tools/web-search/model-search.ts',
    'at most 2200 characters behind each bracket',
  ],
  [
    'src/features/server-tools/tools/web-search/wants-search.ts',
    'the first and last 1500 characters',
  ],
  ['src/lib/text/linear-pattern.ts', 'a quantifier, read where it stands'],
  ['src/ui/page/kit/format.ts', 'the digits of a number'],
  ['src/ui/page/kit/notes.tsx', 'the manual, which is part of the program'],
  ['src/upstream/demo/intent.ts', 'the first 1500 characters'],
  ['src/upstream/demo/tools.ts', 'the first 1500 characters'],
  ['src/samples/replay/outcome.ts', 'the first 2000 characters'],
];

/** Patterns that are assembled at run time: their parts were checked by hand. */
const COMPOSED: readonly (readonly [file: string, count: number, reason: string])[] = [
  ['src/config/file/check.ts', 2, "the schema's own patterns, over values of the operator's file"],
  ['src/config/file/schema.ts', 1, 'the pattern of the schema for one line'],
  ['src/config/sections/conditions.ts', 1, 'written by the operator'],
  ['src/config/sections/platform/index.ts', 1, "the forms of names, over the operator's file"],
  [
    'src/conversation/refusal/refused-tools.ts',
    8,
    'the same list of words in each, and bounded repetitions',
  ],
  [
    'src/features/leaked-calls/block/lex.ts',
    1,
    'a name, a sign and a value: no two repetitions side by side',
  ],
  [
    'src/features/leaked-calls/scan/code-mask.ts',
    1,
    'a set of characters and the beginnings of headers',
  ],
  ['src/features/memory/ranking/dates.ts', 8, 'words side by side; numbers of few digits'],
  ['src/features/memory/ranking/question.ts', 1, 'words side by side, one word between them'],
  [
    'src/features/memory/ranking/terms.ts',
    3,
    'sets of characters that exclude each other; words side by side, without repetition',
  ],
  [
    'src/features/server-tools/tools/web-fetch/html-tokens.ts',
    1,
    'the name of an element, without repetition',
  ],
  ['src/features/tool-results/residue-interceptor.ts', 1, 'at most 64 blanks, where it stands'],
  ['src/lib/text/linear-pattern.ts', 2, 'only tried for its syntax, and one character at a time'],
  ['src/lib/text/printable-text.ts', 2, 'sets of characters'],
  ['src/ui/page/kit/visible.ts', 1, 'a set of characters'],
  ['src/upstream/demo/request.ts', 2, 'what they read they take'],
];

interface Pattern {
  readonly file: string;
  readonly line: number;
  readonly pattern: string;
  readonly flags: string;
}

interface Node {
  readonly type: string;
  readonly start: number;
  readonly [key: string]: unknown;
}

const isNode = (value: unknown): value is Node =>
  typeof value === 'object' && value !== null && typeof (value as Node).type === 'string';

/** Calls `visit` for every node of a syntax tree. */
function walk(value: unknown, visit: (node: Node) => void): void {
  if (Array.isArray(value)) {
    for (const item of value) walk(item, visit);
  } else if (isNode(value)) {
    visit(value);
    for (const child of Object.values(value)) walk(child, visit);
  }
}

const literals: Pattern[] = [];
const composed = new Map<string, number>();
for (const file of [...new Bun.Glob('src/**/*.{ts,tsx}').scanSync({ cwd: ROOT })].sort()) {
  const text = readFileSync(join(ROOT, file), 'utf8');
  walk(parseSync(file, text).program, (node) => {
    const { regex } = node as { regex?: { pattern: string; flags: string } };
    if (node.type === 'Literal' && regex !== undefined) {
      const line = text.slice(0, node.start).split('\n').length;
      literals.push({ file, line, pattern: regex.pattern, flags: regex.flags });
    }
    const { callee } = node as { callee?: { name?: string } };
    if (/^(New|Call)Expression$/.test(node.type) && callee?.name === 'RegExp') {
      composed.set(file, (composed.get(file) ?? 0) + 1);
    }
  });
}

/** Without an unbounded repetition no growth is possible, so most patterns need no analysis. */
const repeats = ({ pattern }: Pattern) =>
  /[*+]|\{\d+,\}|\{\d*,\d{3,}\}/.test(pattern.replace(SIGNS, 'x'));
// Within these a sign is no repetition.
const SIGNS = /\\.|\[(?:\\.|[^\]\\])*\]/g;

/** Where the analysis tries texts, it measures time, and a busy machine misleads it, but not so often in a row. */
const GUESSES = 3;

/** Whether the pattern is known to be slow; a pattern that the analysis cannot decide in time is not. */
async function slow(one: Pattern): Promise<boolean> {
  for (let i = 0; i < GUESSES; i++) {
    const result = await check(one.pattern, one.flags, { timeout: 30_000 });
    if (result.status !== 'vulnerable') return false;
    if (result.checker === 'automaton') return true;
  }
  return true;
}

test('the sources contain patterns', () => {
  expect(literals.length).toBeGreaterThan(300);
  expect(literals.some(({ file }) => file === 'src/lib/text/redact.ts')).toBe(true);
});

test('the analysis tells a slow pattern from a fast one', async () => {
  const of = (pattern: string) => slow({ file: '', line: 0, pattern, flags: '' });
  expect(await of('\\s+$')).toBe(true);
  expect(await of('(?:a+)+$')).toBe(true);
  // Only texts tell here: it looks behind.
  expect(await of('(?<!a)\\s+$')).toBe(true);
  expect(await of('^\\s+')).toBe(false);
});

test('every pattern takes linear time, except on texts of limited length', async () => {
  const known = new Set(BOUNDED.map(([file]) => file));
  const found: string[] = [];
  // Many stand in several places.
  const verdicts = new Map<string, boolean>();
  for (const one of literals.filter((each) => repeats(each) && !known.has(each.file))) {
    const text = `/${one.pattern}/${one.flags}`;
    const isSlow = verdicts.get(text) ?? (await slow(one));
    verdicts.set(text, isSlow);
    if (isSlow) found.push(`${one.file}:${one.line} ${text}`);
  }
  expect(found).toEqual([]);
}, 600_000);

test('every listed exception names a file with patterns', () => {
  const files = new Set(literals.filter(repeats).map(({ file }) => file));
  expect(BOUNDED.filter(([file]) => !files.has(file))).toEqual([]);
});

test('every assembled pattern is listed', () => {
  const reviewed = COMPOSED.map(([file, count]): [string, number] => [file, count]);
  expect([...composed].toSorted()).toEqual(reviewed.toSorted());
});
