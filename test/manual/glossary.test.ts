/** One word for one thing: words that the glossary rules out stand nowhere in the manual, the page, the commands and the metrics. */

import { expect, test } from 'bun:test';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { COMMANDS } from '../../src/cli/commands.ts';
import { createGatewayMetrics } from '../../src/telemetry/gateway-metrics.ts';
import { OTHER_FILES, ROOT, read } from './files.ts';

interface Text {
  /** A file with its line, or the name of a command. */
  readonly place: string;
  readonly text: string;
}

/** Words of the first column under the last heading, each with what is said instead. */
function ruledOut(page: string): ReadonlyMap<string, string> {
  const text = read(page);
  const rows = text.slice(text.lastIndexOf('\n## ')).matchAll(/^\| ([^|]+) \| ([^|]+) \|$/gm);
  return new Map(
    [...rows]
      .slice(1)
      .flatMap(([, words, instead]) =>
        words!.split(/[,、]\s*/).map((word) => [word.trim(), instead!] as const),
      ),
  );
}

/** Lines of a page without code, which holds names, and without addresses of links. */
function linesOf(path: string, text: string): readonly Text[] {
  const fenced = text.replace(/^ *```[\s\S]*?^ *```$/gm, (block) => block.replace(/[^\n]/g, ''));
  return fenced.split('\n').map((line, index) => ({
    place: `${path}:${index + 1}`,
    text: line.replace(/`[^`]*`/g, '').replace(/\]\([^)]*\)/g, ']'),
  }));
}

/** Texts between quotes and between tags of the sources of the page and the commands. */
const textsOf = (path: string): readonly Text[] =>
  readFileSync(join(ROOT, path), 'utf8')
    .replace(/\/\*[\s\S]*?\*\//g, (comment) => comment.replace(/[^\n]/g, ''))
    .split('\n')
    .flatMap((line, index) =>
      [...line.replace(/^\s*\/\/.*|^import .*/, '').matchAll(/'([^']*)'|`([^`]*)`|>([^<>{}]+)</g)]
        .map(([, ...texts]) => texts.find((text) => text !== undefined)!)
        // One small word is a name in the code.
        .filter((text) => /[A-Z ]/.test(text))
        .map((text) => ({ place: `${path}:${index + 1}`, text: text.replace(/\$\{[^}]*\}/g, '') })),
    );

/** Every text in a table of texts. */
function textsIn(place: string, value: unknown): readonly Text[] {
  if (typeof value === 'string') return [{ place, text: value }];
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([name, inner]) => textsIn(`${place} ${name}`, inner));
}

const pages = [...new Bun.Glob('docs/*.md').scanSync({ cwd: ROOT }), 'README.md', 'README.zh-CN.md']
  .sort()
  .map((path) => ({ path, text: read(path) }));
const inChinese = (path: string) => path.includes('zh-CN');

/** The glossary names the words under its last heading. */
const withoutList = ({ path, text }: { path: string; text: string }) =>
  path.startsWith('docs/glossary') ? text.slice(0, text.lastIndexOf('\n## ')) : text;

const found = (words: ReadonlyMap<string, string>, texts: readonly Text[], chinese: boolean) =>
  [...words].flatMap(([word, instead]) => {
    const pattern = chinese ? new RegExp(word) : new RegExp(`\\b${word}\\b(?! of the\\b)`, 'i');
    return texts
      .filter(({ text }) => pattern.test(text))
      .map(({ place }) => `${place}: "${word}": say ${instead}`);
  });

test('the words of English texts', () => {
  const words = ruledOut('docs/glossary.md');
  expect(words.size).toBeGreaterThan(15);
  const sources = [
    ...new Bun.Glob('src/{cli,ui/page}/**/*.{ts,tsx}').scanSync({ cwd: ROOT }),
  ].sort();
  const texts = [
    ...[...pages.filter(({ path }) => !inChinese(path)), ...OTHER_FILES].flatMap((page) =>
      linesOf(page.path, withoutList(page)),
    ),
    ...sources.flatMap(textsOf),
    ...COMMANDS.flatMap((command) => textsIn(`hopgate ${command.name}:`, command)),
    ...createGatewayMetrics('1')
      .render()
      .split('\n')
      .filter((line) => line.startsWith('# HELP'))
      .map((line) => ({ place: line.split(' ')[2]!, text: line })),
  ];
  expect(texts.length).toBeGreaterThan(3000);
  expect(found(words, texts, false)).toEqual([]);
});

test('the words of Chinese texts', () => {
  const words = ruledOut('docs/glossary.zh-CN.md');
  const help: unknown = JSON.parse(read('src/cli/chinese-help.json'));
  const texts = [
    ...pages
      .filter(({ path }) => inChinese(path))
      .flatMap((page) => linesOf(page.path, withoutList(page))),
    ...textsIn('src/cli/chinese-help.json', help),
    ...textsIn(
      'src/ui/page/chinese.json',
      Object.values(JSON.parse(read('src/ui/page/chinese.json'))),
    ),
  ];
  expect(found(words, texts, true)).toEqual([]);
});

test('a word that is ruled out is found, with its place', () => {
  const words = new Map([['a try', 'attempt']]);
  const texts = linesOf('x.md', '# One\n\n`a try` and a try.\n\n```sh\na try\n```\n');
  expect(found(words, texts, false)).toEqual(['x.md:3: "a try": say attempt']);
});
