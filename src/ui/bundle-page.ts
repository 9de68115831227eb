/** A build-time macro that bundles `page/` into the files that a browser loads. */

import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const FOLDER = join(import.meta.dir, 'page');

/**
 * The page's files by name: `index.html`, and the scripts and styles that it names, bundled and named
 * by their content. The result becomes part of the program, which therefore needs no file for the page and
 * bundles nothing at run time. Files are sorted by name, so that builds are reproducible.
 * @throws Error with what the bundler says
 */
export function bundlePage(): Record<string, string> {
  const out = mkdtempSync(join(tmpdir(), 'hopgate-page-'));
  try {
    // Bun.build would deadlock: it waits for the bundler, which waits for this macro. Another process does not.
    const options = ['--target=browser', '--production', '--public-path=/ui/', `--outdir=${out}`];
    const { success, stderr } = Bun.spawnSync(
      [process.execPath, 'build', 'index.html', ...options],
      { cwd: FOLDER, stdout: 'ignore', stderr: 'pipe' },
    );
    if (!success) throw new Error(`bundling the page failed: ${stderr.toString()}`);
    const names = readdirSync(out).sort();
    return Object.fromEntries(
      names.map((name) => {
        const text = readFileSync(join(out, name), 'utf8');
        return [name, name.endsWith('.css') ? withoutOldSelectors(text) : text];
      }),
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
