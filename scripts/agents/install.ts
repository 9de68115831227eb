/** Installs a coding agent from npm or PyPI, once, into a cache folder outside the repository. */

import { existsSync } from 'node:fs';
import { mkdir, rename, rm } from 'node:fs/promises';
import { homedir, tmpdir } from 'node:os';
import { join } from 'node:path';

export interface Package {
  readonly name: string;
  readonly version: string;
  /** Left out: npm. */
  readonly from?: 'pypi';
}

function cacheFolder(): string {
  const cache = process.env.XDG_CACHE_HOME ?? join(homedir() || tmpdir(), '.cache');
  return join(cache, 'hopgate-agents');
}

/** What a package leaves in its folder when it is whole. */
const mark = ({ name, from }: Package): string =>
  from === 'pypi' ? 'complete' : join('node_modules', name);

const installs = new Map<string, Promise<string>>();

/**
 * The folder that holds the package's `node_modules`, or its Python environment.
 * @throws Error with the installer's output when the package cannot be had
 */
export function installed(wanted: Package): Promise<string> {
  const name = `${wanted.name}@${wanted.version}`;
  const known = installs.get(name) ?? install(wanted);
  installs.set(name, known);
  return known;
}

async function install(wanted: Package): Promise<string> {
  const { name, version, from } = wanted;
  const folder = join(
    cacheFolder(),
    `${name.replaceAll(/[@/]+/g, '-').replace(/^-/, '')}-${version}`,
  );
  if (existsSync(join(folder, mark(wanted)))) return folder;
  if (from === 'pypi') return python(folder, `${name}==${version}`);
  // Installed beside and moved, so that a broken-off install is never taken for a whole one.
  const fresh = `${folder}.${process.pid}`;
  await mkdir(fresh, { recursive: true });
  await Bun.write(join(fresh, 'package.json'), '{"private":true}');
  try {
    // --force: the packages name a newer Node than their native binaries need.
    await run(
      ['npm', 'install', '--force', '--no-audit', '--no-fund', `${name}@${version}`],
      fresh,
    );
  } catch (thrown) {
    await rm(fresh, { recursive: true, force: true });
    throw thrown;
  }
  await rm(folder, { recursive: true, force: true });
  await rename(fresh, folder);
  return folder;
}

/** A Python environment cannot be moved: a file says that it is whole. */
async function python(folder: string, wanted: string): Promise<string> {
  await rm(folder, { recursive: true, force: true });
  await mkdir(folder, { recursive: true });
  await run(['python3', '-m', 'venv', folder], folder);
  await run([join(folder, 'bin/pip'), 'install', '--quiet', wanted], folder);
  await Bun.write(join(folder, 'complete'), '');
  return folder;
}

/** @throws Error with what it printed when it fails */
async function run(command: readonly string[], cwd: string): Promise<void> {
  const child = Bun.spawn([...command], { cwd, stdout: 'pipe', stderr: 'pipe' });
  const words = `${await new Response(child.stdout).text()}${await new Response(child.stderr).text()}`;
  if ((await child.exited) !== 0) throw new Error(words.trim());
}
