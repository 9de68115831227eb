/** Backups of the client settings that `setup` changes, and a record of each change, so that it can be reverted. */

import { mkdirSync, readFileSync, rmSync } from 'node:fs';
import { basename, join } from 'node:path';
import { sha256Hex } from '../../../lib/text/sha256.ts';
import { linkEnd, readBytes, writeWhole } from '../../whole-file.ts';
import type { EditUndo } from './client.ts';

export interface SetupEntry {
  /** The file that was changed. */
  readonly file: string;
  /** Whether it existed before. */
  readonly existed: boolean;
  /** SHA-256 of the written text; a file that has it has not changed since. */
  readonly writtenHash: string;
  readonly undo: readonly EditUndo[];
}

/** The folder for the entry and the backup of one file. */
export const folderFor = (home: string, client: string, file: string) =>
  join(home, 'setup', `${client}-${sha256Hex(file).slice(0, 8)}`);

export const backupPath = (folder: string, file: string) =>
  join(folder, `${basename(file)}.backup`);

/** The entry in a folder, or undefined when nothing was set up. */
export function readEntry(folder: string): SetupEntry | undefined {
  const bytes = readBytes(join(folder, 'entry.json'));
  if (bytes === undefined) return undefined;
  return JSON.parse(new TextDecoder().decode(bytes)) as SetupEntry;
}

/** Is the file still as it was written? */
export const isUnchanged = (entry: SetupEntry, current: Uint8Array | undefined) =>
  current !== undefined && sha256Hex(current) === entry.writtenHash;

/** Backs up `before` (undefined: there was no file), then writes the entry and `text`. */
export function writeWithBackup(
  folder: string,
  file: string,
  before: Uint8Array | string | undefined,
  text: string,
  undo: readonly EditUndo[],
): void {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  if (before !== undefined) writeWhole(backupPath(folder, file), before);
  const entry: SetupEntry = {
    file,
    existed: before !== undefined,
    writtenHash: sha256Hex(text),
    undo,
  };
  // The entry first: if the second write fails, the file just does not match its entry.
  writeWhole(join(folder, 'entry.json'), `${JSON.stringify(entry, null, 2)}\n`);
  writeWhole(file, text);
}

/** Restores exactly what was there, and removes the entry. */
export function restoreBackup(folder: string, entry: SetupEntry): void {
  if (entry.existed) writeWhole(entry.file, readFileSync(backupPath(folder, entry.file)));
  // Only the file that a link leads to: the link was there before.
  else rmSync(linkEnd(entry.file), { force: true });
  rmSync(folder, { recursive: true, force: true });
}

export const forgetEntry = (folder: string) => rmSync(folder, { recursive: true, force: true });
