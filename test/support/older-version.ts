/** The program as it was before the newest change of the shared tables, built from the history of this clone. */

import { existsSync } from 'node:fs';
import { mkdir, symlink } from 'node:fs/promises';
import { join } from 'node:path';

const ROOT = join(import.meta.dir, '../..');
/** Beside this one's: the build runs code of it, which the runtime refuses within modules. */
const BUILDS = join(ROOT, 'dist/older');
/** A statement that changes shared tables, in whatever file it stands. */
const CHANGE = '^(CREATE|ALTER|DROP) .*hopgate\\.';

function git(...args: readonly string[]): string | undefined {
  const { success, stdout } = Bun.spawnSync(['git', ...args], { cwd: ROOT });
  return success ? stdout.toString().trim() : undefined;
}

/** The statements of a commit that make and change the tables; undefined where it is not in this clone. */
const migrationsAt = (commit: string): string | undefined =>
  git('grep', '-hE', CHANGE, commit, '--', 'src')?.split('\n').sort().join('\n');

/** Undefined where the clone has no such commit: it is shallow, or no clone. */
export function olderCommit(): string | undefined {
  const changes = git('log', '--format=%H', '-M', '-G', CHANGE, '--', 'src')?.split('\n') ?? [];
  // In a shallow clone the oldest commit seems to bring everything, and has no parent.
  const before = (commit: string) => git('rev-parse', '--verify', '--quiet', `${commit}^`);
  // Most changes of these files leave the tables as they are.
  const newest = changes.find((commit) => {
    const older = before(commit);
    return older === undefined || migrationsAt(older) !== migrationsAt(commit);
  });
  const older = newest && before(newest);
  return older && migrationsAt(older) !== undefined ? older : undefined;
}

/** The path of its binary; built once for each commit of this checkout. */
export async function olderBinary(commit: string): Promise<string> {
  const folder = join(BUILDS, commit.slice(0, 12));
  const { platform, arch } = process;
  const path = join(folder, 'dist', `${platform}-${arch}`, 'hopgate');
  if (existsSync(path)) return path;
  await mkdir(folder, { recursive: true });
  const archive = Bun.spawn(['git', 'archive', commit], { cwd: ROOT, stdout: 'pipe' });
  const files = Bun.spawn(['tar', 'x', '-C', folder], { stdin: archive.stdout });
  if ((await files.exited) !== 0) throw new Error(`commit ${commit} cannot be unpacked`);
  await symlink(join(ROOT, 'node_modules'), join(folder, 'node_modules')).catch(() => {});
  const built = Bun.spawnSync([process.execPath, 'build.ts'], { cwd: folder });
  if (!built.success) throw new Error(`commit ${commit} cannot be built: ${built.stderr}`);
  return path;
}
