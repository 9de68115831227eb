/** Installs a coding agent from npm, once, into a cache folder outside the repository. */

import { existsSync } from 'node:fs';
import { mkdir, rename, rm } from 'node:fs/promises';
import { homedir, tmpdir } from 'node:os';
import { join } from 'node:path';

export interface Package {
  readonly name: string;
  readonly version: string;
}

function cacheFolder(): string {
  const cache = process.env.XDG_CACHE_HOME ?? join(homedir() || tmpdir(), '.cache');
  return join(cache, 'hopgate-agents');
}

/**
 * The folder that holds the package's `node_modules`.
 * @throws Error with npm's output when the package cannot be had
 */
export async function installed({ name, version }: Package): Promise<string> {
  const folder = join(
    cacheFolder(),
    `${name.replaceAll(/[@/]+/g, '-').replace(/^-/, '')}-${version}`,
  );
  if (existsSync(join(folder, 'node_modules', name))) return folder;
  // Installed beside and moved, so that a broken-off install is never taken for a whole one.
  const fresh = `${folder}.${process.pid}`;
  await mkdir(fresh, { recursive: true });
  await Bun.write(join(fresh, 'package.json'), '{"private":true}');
  // --force: the packages name a newer Node than their native binaries need.
  const npm = Bun.spawn(
    ['npm', 'install', '--force', '--no-audit', '--no-fund', `${name}@${version}`],
    {
      cwd: fresh,
      stdout: 'pipe',
      stderr: 'pipe',
    },
  );
  const words = `${await new Response(npm.stdout).text()}${await new Response(npm.stderr).text()}`;
  if ((await npm.exited) !== 0) {
    await rm(fresh, { recursive: true, force: true });
    throw new Error(words.trim());
  }
  await rm(folder, { recursive: true, force: true });
  await rename(fresh, folder);
  return folder;
}
