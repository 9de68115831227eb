/** The folder in which tests write: in memory where there is room, since they make and remove files by the hundred thousand. */

import { rmSync } from 'node:fs';
import { chmod, mkdtemp, rm, statfs } from 'node:fs/promises';
import { tmpdir, totalmem } from 'node:os';
import { join } from 'node:path';

const MEMORY = '/dev/shm';
const GIB = 2 ** 30;
/** What tests that run at the same time may hold, many times over. */
const MIN_FREE = 4 * GIB;
/** Of the machine: files in memory take it from the programs. */
const MIN_MEMORY = 8 * GIB;

/** Whether files in memory have room, and may be run as programs. */
async function hasRoom(): Promise<boolean> {
  if (totalmem() < MIN_MEMORY) return false;
  try {
    const { bavail, bsize } = await statfs(MEMORY);
    return bavail * bsize >= MIN_FREE && (await runsPrograms());
  } catch {
    return false;
  }
}

async function runsPrograms(): Promise<boolean> {
  const folder = await mkdtemp(join(MEMORY, 'hopgate-try-'));
  try {
    const program = join(folder, 'program');
    await Bun.write(program, '#!/bin/sh\nexit 0\n');
    await chmod(program, 0o755);
    return (await Bun.spawn([program]).exited) === 0;
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/**
 * A new folder for `TMPDIR`, removed when this process ends. Programs of other users may enter: databases run as one of
 * their own.
 */
export async function openScratch(): Promise<string> {
  const folder = await mkdtemp(join((await hasRoom()) ? MEMORY : tmpdir(), 'hopgate-tests-'));
  await chmod(folder, 0o1777);
  process.on('exit', () => rmSync(folder, { recursive: true, force: true }));
  for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => process.exit(1));
  return folder;
}
