/** Keeps the bytes of a form that may have to be sent again: the first in memory, the rest in a temporary file. */

import type { FileHandle } from 'node:fs/promises';
import { GatewayError } from '../../conversation/errors.ts';
import { Pieces } from '../../lib/bytes/bytes.ts';
import { requestId } from '../../lib/text/ids.ts';

/** What is larger goes to a file. */
const MEMORY_BYTES = 256 * 1024;
const PIECE_BYTES = 64 * 1024;

export class FormSpool {
  #pieces = new Pieces();
  /** Bytes in the file; the pieces stand behind them. */
  #filed = 0;
  #file: FileHandle | undefined;
  #closed = false;

  constructor(private readonly folder: string) {}

  get size(): number {
    return this.#filed + this.#pieces.size;
  }

  /** @throws GatewayError internal where the temporary file cannot be written */
  async append(chunk: Uint8Array): Promise<void> {
    this.#pieces.push(chunk);
    if (this.#pieces.size > MEMORY_BYTES) await this.#toFile();
  }

  /** The bytes from one index up to another, piece by piece. */
  async *read(from: number, to: number): AsyncGenerator<Uint8Array> {
    let at = from;
    while (at < Math.min(to, this.#filed)) {
      const length = Math.min(PIECE_BYTES, Math.min(to, this.#filed) - at);
      const { buffer, bytesRead } = await this.#open().read(
        Buffer.allocUnsafe(length),
        0,
        length,
        at,
      );
      if (bytesRead === 0) throw unusable(new Error('the file is shorter than it was'));
      yield buffer.subarray(0, bytesRead);
      at += bytesRead;
    }
    if (at < to) yield this.#pieces.joined().subarray(at - this.#filed, to - this.#filed);
  }

  /** Gives memory and file back. Safe to call twice. */
  async close(): Promise<void> {
    this.#closed = true;
    this.#pieces = new Pieces();
    const file = this.#file;
    this.#file = undefined;
    await file?.close();
  }

  #open(): FileHandle {
    if (this.#file === undefined) throw unusable(new Error('the spool is closed'));
    return this.#file;
  }

  async #toFile(): Promise<void> {
    const bytes = this.#pieces.joined();
    this.#pieces = new Pieces();
    try {
      this.#file ??= await create(this.folder);
      for (let at = 0; at < bytes.length; ) {
        const { bytesWritten } = await this.#file.write(bytes, at, bytes.length - at, this.#filed);
        at += bytesWritten;
        this.#filed += bytesWritten;
      }
    } catch (thrown) {
      throw unusable(thrown);
    }
    if (this.#closed) await this.close();
  }
}

/** A file for its owner alone, without a name: it is gone when the process is. */
async function create(folder: string): Promise<FileHandle> {
  const { mkdir, open, unlink } = process.getBuiltinModule('node:fs/promises');
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const path = `${folder}/form-${process.pid}-${requestId()}`;
  const file = await open(path, 'wx+', 0o600);
  await unlink(path);
  return file;
}

const unusable = (cause: unknown) =>
  new GatewayError('internal', 'The form could not be kept in a temporary file.', { cause });
