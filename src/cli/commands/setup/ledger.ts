/** What was written into other programs' files, and the bytes that were there before. */

import { createHash } from 'node:crypto';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { basename, dirname, isAbsolute, join } from 'node:path';
import type { Undo } from './client.ts';

export interface Entry {
  /** The file that was changed. */
  readonly file: string;
  /** Whether it was there before. */
  readonly existed: boolean;
  /** SHA-256 of what was written; a file that has it was not touched since. */
  readonly written: string;
  readonly undo: readonly Undo[];
}

const sha256 = (bytes: Uint8Array | string) => createHash('sha256').update(bytes).digest('hex');
const bytesOf = (path: string): Uint8Array | undefined =>
  existsSync(path) ? readFileSync(path) : undefined;

/** The folder that keeps the entry and the backup for one file. */
export const folderFor = (home: string, client: string, file: string) =>
  join(home, 'setup', `${client}-${sha256(file).slice(0, 8)}`);

export const backupPath = (folder: string, file: string) =>
  join(folder, `${basename(file)}.backup`);

/** The entry in a folder, or undefined when nothing was set up. */
export function readEntry(folder: string): Entry | undefined {
  const bytes = bytesOf(join(folder, 'entry.json'));
  if (bytes === undefined) return undefined;
  return JSON.parse(new TextDecoder().decode(bytes)) as Entry;
}

/** Is the file still what we wrote? */
export const untouched = (entry: Entry, current: Uint8Array | undefined) =>
  current !== undefined && sha256(current) === entry.written;

/** A file's text, undefined when it is not there. @throws Error when it is not UTF-8 */
export function readText(file: string): string | undefined {
  const bytes = bytesOf(file);
  if (bytes === undefined) return undefined;
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    throw new Error(`${file} is not UTF-8 text`);
  }
}

export const readBytes = bytesOf;

/** As many as Linux follows. */
const MOST_LINKS = 40;

/**
 * Where a path's links lead in the end, whether or not anything is there: dotfiles are often links to
 * what does not exist yet. @throws Error when they lead in a circle
 */
function endOf(path: string): string {
  if (existsSync(path)) return realpathSync(path);
  let at = path;
  for (let links = 0; links < MOST_LINKS; links++) {
    let next: string;
    try {
      next = readlinkSync(at);
    } catch {
      return at;
    }
    // Not joined: that would take `..` back over folders that are links themselves.
    at = isAbsolute(next) ? next : `${realpathSync(dirname(at))}/${next}`;
  }
  throw new Error(`${path} is a link that leads in a circle`);
}

/**
 * Writes a file whole or not at all; a link keeps being one, permissions stay. A new file is for its
 * owner alone: it may hold a key. @throws Error when it cannot be written; nothing is left behind
 */
export function writeWhole(file: string, content: Uint8Array | string): void {
  const real = endOf(file);
  const present = existsSync(real) ? statSync(real) : undefined;
  if (present?.isDirectory()) throw new Error(`${real} is a folder`);
  mkdirSync(dirname(real), { recursive: true });
  const temporary = `${real}.hopgate-${process.pid}`;
  try {
    writeFileSync(temporary, content, { mode: 0o600 });
    chmodSync(temporary, present === undefined ? 0o600 : present.mode & 0o777);
    renameSync(temporary, real);
  } catch (thrown) {
    rmSync(temporary, { force: true });
    throw thrown;
  }
}

/** Keeps `before` (undefined: there was no file), then writes `text` and the entry. */
export function record(
  folder: string,
  file: string,
  before: Uint8Array | string | undefined,
  text: string,
  undo: readonly Undo[],
): void {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  if (before !== undefined) writeWhole(backupPath(folder, file), before);
  const entry: Entry = { file, existed: before !== undefined, written: sha256(text), undo };
  // The entry first: should the second write fail, the file is simply not what the entry says.
  writeWhole(join(folder, 'entry.json'), `${JSON.stringify(entry, null, 2)}\n`);
  writeWhole(file, text);
}

/** Puts back exactly what was there, and forgets the entry. */
export function restore(folder: string, entry: Entry): void {
  if (entry.existed) writeWhole(entry.file, readFileSync(backupPath(folder, entry.file)));
  // Behind a link: the link was there before.
  else rmSync(endOf(entry.file), { force: true });
  rmSync(folder, { recursive: true, force: true });
}

export const forget = (folder: string) => rmSync(folder, { recursive: true, force: true });
