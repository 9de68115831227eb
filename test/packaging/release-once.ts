/** One release for the host's target, built twice from the same files in two different folders. */

import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { hostTarget } from '../../build.ts';

const ROOT = join(import.meta.dir, '../..');

/** A program of this machine, or undefined: tests that need it then skip and say so. */
export const tool = (name: string): string | undefined =>
  Bun.which(name, { PATH: `${process.env.PATH}:/usr/sbin:/sbin` }) ?? undefined;

/** The reason for a skip, for test names; '' when everything is available. */
export const without = (...names: string[]): string => {
  const missing = names.filter((name) => tool(name) === undefined);
  return missing.length === 0 ? '' : ` [SKIPPED: no ${missing.join(', no ')} on this machine]`;
};

export interface Ran {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

/** Runs a program to its end. */
export async function ran(
  command: readonly string[],
  options: { readonly cwd?: string; readonly env?: Record<string, string> } = {},
): Promise<Ran> {
  const child = Bun.spawn([...command], {
    ...options,
    stdin: 'ignore',
    stdout: 'pipe',
    stderr: 'pipe',
  });
  const [out, err, code] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ]);
  return { code, out, err };
}

const scratch: string[] = [];

/** For `afterAll` of every file that creates scratch folders. */
export function removeScratch(): void {
  for (const folder of scratch.splice(0)) rmSync(folder, { recursive: true, force: true });
}

/** A new folder, removed by `removeScratch`. */
export function scratchFolder(name: string, within = tmpdir()): string {
  const folder = mkdtempSync(join(within, `hopgate-${name}-`));
  scratch.push(folder);
  return folder;
}

/** The files of this checkout in their current state, committed or not, with their own modules. */
async function copyTree(from: string, to: string): Promise<void> {
  const list = await ran(['git', 'ls-files', '-z', '--cached', '--others', '--exclude-standard'], {
    cwd: ROOT,
  });
  if (list.code !== 0) throw new Error(list.err);
  for (const path of list.out.split('\0')) {
    if (path === '' || /^(samples|test|bench)\//.test(path) || !existsSync(join(from, path)))
      continue;
    mkdirSync(dirname(join(to, path)), { recursive: true });
    cpSync(join(from, path), join(to, path));
  }
  // Links cost no space; copies replace them across disks.
  const modules = [join(ROOT, 'node_modules'), join(to, 'node_modules')];
  const linked = await ran(['cp', '-al', ...modules]);
  if (linked.code !== 0) {
    rmSync(modules[1]!, { recursive: true, force: true });
    await ran(['cp', '-a', ...modules]);
  }
  // Both builds need the same commit, and the checkout may change meanwhile.
  const commit = await ran(['git', 'rev-parse', 'HEAD'], { cwd: ROOT });
  const objects = await ran(['git', 'rev-parse', '--git-path', 'objects'], { cwd: ROOT });
  mkdirSync(join(to, '.git/objects/info'), { recursive: true });
  mkdirSync(join(to, '.git/refs'));
  writeFileSync(
    join(to, '.git/HEAD'),
    from === ROOT ? commit.out : readFileSync(join(from, '.git/HEAD')),
  );
  writeFileSync(join(to, '.git/objects/info/alternates'), `${resolve(ROOT, objects.out.trim())}\n`);
}

export interface Release {
  /** The contents of `dist/release`, of both builds. */
  readonly folders: readonly [string, string];
  readonly target: string;
}

async function make(): Promise<Release> {
  // On the disk of the checkout, so that its modules can be linked.
  const dist = join(ROOT, 'dist');
  mkdirSync(dist, { recursive: true });
  const work = scratchFolder('release', dist);
  const trees = [join(work, 'first'), join(work, 'another/place')] as const;
  // The second copy comes from the first, since the checkout may change meanwhile.
  await copyTree(ROOT, trees[0]);
  await copyTree(trees[0], trees[1]);
  const target = hostTarget();
  for (const tree of trees) {
    // HOPGATE_RELEASE_ALL=1 compares every target; it takes minutes.
    const which = process.env.HOPGATE_RELEASE_ALL === '1' ? [] : ['--target', target];
    const command = [process.execPath, 'scripts/release.ts', '--fast', ...which];
    const { code, out, err } = await ran(command, { cwd: tree });
    if (code !== 0) throw new Error(`the release failed:\n${out}${err}`);
  }
  return { folders: [join(trees[0], 'dist/release'), join(trees[1], 'dist/release')], target };
}

let made: Promise<Release> | undefined;

/** Builds on first use. */
export function releaseOnce(): Promise<Release> {
  made ??= make();
  return made;
}
