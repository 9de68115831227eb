/** Text files of people: read as UTF-8, written whole or not at all. */

import {
  chmodSync,
  closeSync,
  existsSync,
  fstatSync,
  mkdirSync,
  openSync,
  readFileSync,
  readlinkSync,
  readSync,
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

/** No request or answer that is worth a look is larger. */
const MAX_NAMED_BYTES = 512 * 1024 * 1024;

/** The bytes of a file that a person names, which may be a device without an end. @throws Error where there are more */
export function readNamed(path: string, maxBytes = MAX_NAMED_BYTES): Buffer {
  const file = openSync(path, 'r');
  try {
    const known = fstatSync(file).size;
    let bytes = Buffer.allocUnsafe(Math.min(maxBytes, Math.max(known, CHUNK_BYTES)) + 1);
    let length = 0;
    for (;;) {
      const read = readSync(file, bytes, length, bytes.length - length, null);
      length += read;
      if (length > maxBytes) throw new Error(`it has more than ${maxBytes} bytes`);
      if (read === 0) return bytes.subarray(0, length);
      if (length === bytes.length) {
        bytes = Buffer.concat([bytes], Math.min(2 * length, maxBytes + 1));
      }
    }
  } finally {
    closeSync(file);
  }
}

const CHUNK_BYTES = 64 * 1024;

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
