/** A build-time macro that bundles `page/` into the one text that a browser loads. */

import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { extname, join } from 'node:path';

const FOLDER = join(import.meta.dir, 'page');

/**
 * The page: HTML with its style sheet and its script inside. The result becomes part of the program, which therefore
 * needs no file for the page and bundles nothing at run time.
 * @throws Error with what the bundler says, or where a text of the page would end the script
 */
export function bundlePage(): string {
  const { '.html': html, '.css': css, '.js': script } = bundledFiles();
  if (/<!--|<\/script|<script/i.test(script!))
    throw new Error('the script holds markup of scripts');
  // Functions, as `$&` in a text would mean something.
  return html!
    .replace(
      /<link rel="stylesheet"[^<>]*>/,
      () => `<style>${writtenOut(withoutOldSelectors(css!))}</style>`,
    )
    .replace(/<script [^<>]*><\/script>/, () => `<script type="module">${script}</script>`);
}

/** The bundler's three files, each by its ending. */
function bundledFiles(): Readonly<Record<string, string>> {
  const out = mkdtempSync(join(tmpdir(), 'hopgate-page-'));
  try {
    // Bun.build would deadlock: it waits for the bundler, which waits for this macro. Another process does not.
    const options = ['--target=browser', '--production', `--outdir=${out}`];
    const { success, stderr } = Bun.spawnSync(
      [process.execPath, 'build', 'index.html', ...options],
      { cwd: FOLDER, stdout: 'ignore', stderr: 'pipe' },
    );
    if (!success) throw new Error(`bundling the page failed: ${stderr.toString()}`);
    return Object.fromEntries(
      readdirSync(out).map((name) => [extname(name), readFileSync(join(out, name), 'utf8')]),
    );
  } finally {
    rmSync(out, { recursive: true, force: true });
  }
}

/**
 * The style sheet without the copies that the bundler makes of every rule with `:is(…)` for browsers of before 2021.
 * Today's browsers read `:-webkit-any(…)` too, and count it as a class, so that such a copy beats rules that the
 * source puts above it.
 */
const withoutOldSelectors = (css: string): string =>
  css
    .split(/(?<=\})/)
    .map((rule) => {
      const at = rule.search(/:-(?:webkit|moz)-any\(/);
      return at < 0 ? rule : rule.slice(0, rule.lastIndexOf('{', at) + 1);
    })
    .join('');

/**
 * The style sheet with `a, b` for each `:is(a, b)` that can be written so. A browser finds the rules for an element by
 * the last name of a selector, and tries one that ends in a list on every element.
 */
export const writtenOut = (css: string): string =>
  css
    .split('{')
    .map((text, i, all) => {
      const from = Math.max(text.lastIndexOf('}'), text.lastIndexOf(';')) + 1;
      const selectors = text.slice(from);
      if (i === all.length - 1 || selectors === '' || selectors.startsWith('@')) return text;
      return text.slice(0, from) + partsOf(selectors).flatMap(alternatives).join(',');
    })
    .join('{');

function alternatives(selector: string): readonly string[] {
  const own = outside(selector);
  const at = own.indexOf(LIST);
  if (at < 0) return [selector];
  const end = own.indexOf(')', at);
  const before = selector.slice(0, at);
  const parts = partsOf(selector.slice(at + LIST.length, end));
  // `a :is(b c)` also finds a `b` outside of `a`, and `.a:is(b)` cannot be written as `.ab`.
  const isTied = before !== '' && parts.some((part) => /[\s>+~]/.test(part));
  const isJoined = /[^\s>+~]$/.test(before) && parts.some((part) => /^[a-z*]/.test(part));
  if (isTied || isJoined) return [selector];
  const after = selector.slice(end + 1);
  return parts.flatMap((part) => alternatives(before + part + after));
}

const LIST = ':is(';

/** The text with `_` in the place of every sign inside of parentheses. */
function outside(text: string): string {
  let depth = 0;
  return text.replace(/./gs, (sign) => {
    if (sign === ')') depth--;
    const shown = depth === 0 ? sign : '_';
    if (sign === '(') depth++;
    return shown;
  });
}

/** Selectors between commas that are in no parentheses. */
function partsOf(text: string): readonly string[] {
  const commas = [...outside(text).matchAll(/,/g)].map(({ index }) => index);
  return [-1, ...commas].map((comma, i) => text.slice(comma + 1, commas[i]));
}
