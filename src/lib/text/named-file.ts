/** Reads a small text file that a user names, and waits for no pipe or device without end. */

import { closeSync, constants, fstatSync, openSync, readSync } from 'node:fs';

/** The file cannot be read. The message says why, as the end of a sentence that begins with the file's name. */
export class UnreadableFile extends Error {
  override readonly name = 'UnreadableFile';

  constructor(
    message: string,
    /** `ENOENT` and other codes of the system, where it refused. */
    readonly code?: string,
    options?: ErrorOptions,
  ) {
    super(message, options);
  }
}

/** How long a pipe may have no writer before its first byte, in milliseconds. */
const NO_WRITER_MS = 1000;
/** How long its writer may say nothing: a command that decrypts a file asks a server first. */
const SILENT_MS = 10_000;

/**
 * The text of a file, as UTF-8. A pipe is read to its end.
 * @param maxBytes more than these are not read
 * @throws UnreadableFile
 */
export function readNamedFile(path: string, maxBytes: number): string {
  let file: number | undefined;
  try {
    // Otherwise opening a pipe without a writer never returns.
    file = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
    const about = fstatSync(file);
    if (about.size > maxBytes) throw tooLarge(maxBytes);
    return readOpen(file, about.isFIFO(), maxBytes).toString('utf8');
  } catch (thrown) {
    if (thrown instanceof UnreadableFile) throw thrown;
    throw new UnreadableFile(whyUnreadable(thrown), codeOf(thrown), { cause: thrown });
  } finally {
    if (file !== undefined) closeSync(file);
  }
}

const codeOf = (thrown: unknown) => (thrown as NodeJS.ErrnoException).code ?? 'unknown';

/** The system's refusal to read a file, as the end of a sentence that begins with the file's name. */
export const whyUnreadable = (thrown: unknown): string =>
  WORDS[codeOf(thrown)] ?? `cannot be read (${codeOf(thrown)})`;

const WORDS: Readonly<Record<string, string>> = {
  ENOENT: 'does not exist',
  EISDIR: 'is a folder (EISDIR)',
};

const tooLarge = (maxBytes: number) =>
  new UnreadableFile(`is larger than ${Math.ceil(maxBytes / 1024)} KB`, 'EFBIG');

function readOpen(file: number, isPipe: boolean, maxBytes: number): Buffer {
  const chunks: Buffer[] = [];
  let bytes = 0;
  let waitedFrom = performance.now();
  for (;;) {
    const chunk = Buffer.allocUnsafe(64 * 1024);
    const read = readSome(file, chunk);
    if (read > 0) {
      bytes += read;
      if (bytes > maxBytes) throw tooLarge(maxBytes);
      chunks.push(chunk.subarray(0, read));
      waitedFrom = performance.now();
      continue;
    }
    const isSilent = read === SILENT;
    if (!isSilent && (!isPipe || bytes > 0)) return Buffer.concat(chunks);
    if (performance.now() - waitedFrom > (isSilent ? SILENT_MS : NO_WRITER_MS)) {
      throw new UnreadableFile('is a pipe or device that says nothing', 'EAGAIN');
    }
    Bun.sleepSync(10);
  }
}

/** The file is open to a writer that has written nothing yet. */
const SILENT = -1;

function readSome(file: number, into: Buffer): number {
  try {
    return readSync(file, into);
  } catch (thrown) {
    if ((thrown as NodeJS.ErrnoException).code === 'EAGAIN') return SILENT;
    throw thrown;
  }
}
