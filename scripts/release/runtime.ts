/** Bun's runtimes for other machines: taken from npm, and only what the lock file sealed. */

import { createHash } from 'node:crypto';
import { chmodSync, existsSync, mkdirSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { hostTarget, type Target } from '../../build.ts';

const ROOT = join(import.meta.dir, '../..');

/** `linux-arm64-musl` → `@oven/bun-linux-aarch64-musl` */
const packageOf = (target: Target) => `@oven/bun-${target.replace('arm64', 'aarch64')}`;

interface Lock {
  readonly packages: Readonly<
    Record<string, { readonly version: string; readonly integrity: string }>
  >;
}

/**
 * The path of a runtime, undefined for the host (whose own is at hand). Fetched once, by the npm that
 * is configured here, into node_modules/.cache.
 * @throws Error in words when it cannot be had or is not what the lock file says
 */
export function runtimeFor(target: Target): string | undefined {
  if (target === hostTarget()) return undefined;
  const name = packageOf(target);
  const lock = JSON.parse(readFileSync(join(ROOT, 'package-lock.json'), 'utf8')) as Lock;
  const locked = lock.packages[`node_modules/${name}`];
  if (locked === undefined) throw new Error(`${name} is not in package-lock.json`);
  if (locked.version !== Bun.version) {
    throw new Error(`${name} is locked at ${locked.version}, this is bun ${Bun.version}`);
  }
  const folder = join(ROOT, 'node_modules/.cache/runtimes', `${target}-${locked.version}`);
  const binary = join(folder, 'bun');
  if (existsSync(binary)) return binary;
  const work = `${folder}.${process.pid}`;
  mkdirSync(work, { recursive: true });
  try {
    const run = (command: string[]) => {
      const { success, stdout, stderr } = Bun.spawnSync(command, { cwd: work });
      if (!success)
        throw new Error(`${command.join(' ')}: ${stderr.toString().trim().split('\n')[0]}`);
      return stdout.toString();
    };
    const packed = JSON.parse(run(['npm', 'pack', '--json', `${name}@${locked.version}`])) as [
      { filename: string },
    ];
    const archive = join(work, packed[0].filename);
    const sum = `sha512-${createHash('sha512').update(readFileSync(archive)).digest('base64')}`;
    if (sum !== locked.integrity) throw new Error(`${name} is not what package-lock.json says`);
    run(['tar', '-xzf', archive, '--strip-components=2', 'package/bin/bun']);
    chmodSync(join(work, 'bun'), 0o755);
    rmSync(archive);
    rmSync(folder, { recursive: true, force: true });
    renameSync(work, folder);
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
  return binary;
}
