/** A build-time macro that reads the manual from `docs/`: a page that is added there needs no line in the program. */

import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

const ROOT = join(import.meta.dir, '../..');

/** Markdown by the names of its pages: English ones, then Chinese ones, which end in `zh-CN`. */
export function readTexts(): Readonly<Record<string, string>> {
  const files = readdirSync(join(ROOT, 'docs')).filter((name) => name.endsWith('.md'));
  const pages = Object.groupBy(files, (name) =>
    name.endsWith('.zh-CN.md') ? 'chinese' : 'english',
  );
  const textsOf = (names: readonly string[] = []) =>
    names.toSorted().map((name) => [name.replace(/\.md$/, ''), text(join('docs', name))]);
  return Object.fromEntries([
    ...textsOf(pages.english),
    ['zh-CN', withoutPicture(text('README.zh-CN.md'))],
    ...textsOf(pages.chinese),
  ]);
}

const text = (path: string) => readFileSync(join(ROOT, path), 'utf8');

/** The text without its `<picture>`: that is HTML for code hosts, and the program carries no such image. */
function withoutPicture(text: string): string {
  const from = text.indexOf('<picture>');
  const to = text.indexOf('</picture>\n\n', from);
  return from < 0 || to < 0 ? text : text.slice(0, from) + text.slice(to + '</picture>\n\n'.length);
}
