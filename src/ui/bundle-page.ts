/** Runs while the program is bundled (or a source is loaded): makes of `page/` what a browser loads. */

import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const FOLDER = join(import.meta.dir, 'page');

/**
 * The page's files by name: `index.html`, and the scripts and styles that it names, bundled and named
 * by their content. A macro: what it returns becomes part of the program, which therefore carries the
 * page without a file beside it and bundles nothing when it runs. The order is the names', so that a
 * build comes out the same everywhere.
 * @throws Error with what the bundler says
 */
export function bundlePage(): Record<string, string> {
  const out = mkdtempSync(join(tmpdir(), 'hopgate-page-'));
  try {
    // Bun.build would wait for the bundler that waits for this macro; a process of its own does not.
    const options = ['--target=browser', '--minify', '--public-path=/ui/', `--outdir=${out}`];
    const { success, stderr } = Bun.spawnSync(
      [process.execPath, 'build', 'index.html', ...options],
      { cwd: FOLDER, stdout: 'ignore', stderr: 'pipe' },
    );
    if (!success) throw new Error(`bundling the page failed: ${stderr.toString()}`);
    const names = readdirSync(out).sort();
    return Object.fromEntries(names.map((name) => [name, readFileSync(join(out, name), 'utf8')]));
  } finally {
    rmSync(out, { recursive: true, force: true });
  }
}
