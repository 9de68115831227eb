/** The manual's files as the tests of this folder see them. */

import { readFileSync } from 'node:fs';
import { join } from 'node:path';

export const ROOT = Bun.fileURLToPath(new URL('../..', import.meta.url));

export interface MarkdownFile {
  /** From the root: `docs/notes.md`. */
  readonly path: string;
  readonly text: string;
}

export const read = (path: string): string => readFileSync(join(ROOT, path), 'utf8');

/** The pages, both READMEs and the other documents of the root. */
export const FILES: readonly MarkdownFile[] = [
  'README.md',
  'README.zh-CN.md',
  'ARCHITECTURE.md',
  'CHANGELOG.md',
  ...[...new Bun.Glob('docs/*.md').scanSync({ cwd: ROOT })].sort(),
].map((path) => ({ path, text: read(path) }));

export interface Block {
  readonly language: string;
  readonly code: string;
}

/** All fenced blocks, also those inside of lists. */
export const blocksOf = (text: string): readonly Block[] =>
  [...text.matchAll(/^( *)```(\S*)\n([\s\S]*?)^\1```$/gm)].map(([, indent, language, body]) => ({
    language: language!,
    code: body!.replaceAll(new RegExp(`^${indent}`, 'gm'), ''),
  }));

/** Fenced blocks of a language, in order. */
export const fences = (text: string, language: string): readonly string[] =>
  blocksOf(text)
    .filter((block) => block.language === language)
    .map(({ code }) => code);

/** Pages beside the manual that show commands to a user. CONTRIBUTING.md has a test of its own. */
export const OTHER_FILES: readonly MarkdownFile[] = [
  ...new Bun.Glob('{examples,deploy,packaging,samples}/**/*.md').scanSync({ cwd: ROOT }),
]
  .sort()
  .map((path) => ({ path, text: read(path) }));

/** The file without its fenced blocks. */
export const prose = (text: string): string => text.replace(/^```[\s\S]*?^```$/gm, '');

/** Names in the first column of tables that stand as code. */
export const firstCells = (text: string): readonly string[] =>
  [...text.matchAll(/^\| `([^`]+)` \|/gm)].map(([, name]) => name!);
