/** Text files of people: read as UTF-8, written whole or not at all. */

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
import { dirname, isAbsolute } from 'node:path';

/** A file's bytes, undefined when it does not exist. */
export const readBytes = (path: string): Uint8Array | undefined =>
  existsSync(path) ? readFileSync(path) : undefined;

/** A file's text, undefined when it is not there. @throws Error when it is not UTF-8 */
export function readText(file: string): string | undefined {
  const bytes = readBytes(file);
  if (bytes === undefined) return undefined;
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    throw new Error(`${file} is not UTF-8 text`);
  }
}

/** Linux follows as many. */
const MAX_LINKS = 40;

/**
 * The path that a chain of links ends at, whether it exists or not: dotfiles are often links to files that do not
 * exist yet. @throws Error for a circle of links
 */
export function linkEnd(path: string): string {
  if (existsSync(path)) return realpathSync(path);
  let at = path;
  for (let links = 0; links < MAX_LINKS; links++) {
    let next: string;
    try {
      next = readlinkSync(at);
    } catch {
      return at;
    }
    // Not joined: `join` would resolve `..` textually, across folders that are links themselves.
    at = isAbsolute(next) ? next : `${realpathSync(dirname(at))}/${next}`;
  }
  throw new Error(`${path} is a link that leads in a circle`);
}

/**
 * Writes a file whole or not at all. A link stays a link, and permissions stay. A new file is readable by its
 * owner only, since it may hold a key. @throws Error when it cannot be written; nothing is left behind
 */
export function writeWhole(file: string, content: Uint8Array | string): void {
  const real = linkEnd(file);
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
