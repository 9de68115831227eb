/** Entries that must not be lost: a process appends them to segment files of its own, before it answers. */

import {
  closeSync,
  existsSync,
  fstatSync,
  ftruncateSync,
  futimesSync,
  mkdirSync,
  openSync,
  readSync,
  writeSync,
} from 'node:fs';
import { join } from 'node:path';
import { startOf } from '../../lib/process/running.ts';
import { randomBase36 } from '../../lib/text/ids.ts';
import { messageOf } from '../../lib/text/thrown.ts';

/** A segment that is larger is followed by another one: what is in the tables goes by whole files. */
const SEGMENT_BYTES = 4 * 2 ** 20;
/** Limit of all segments that are not in the tables yet. */
const MAX_BYTES = 256 * 2 ** 20;
/** Characters that wait in memory while the disk takes nothing. */
const MAX_WAITING = 32 * 2 ** 20;
const RETRY_MS = 1000;

export interface JournalOptions {
  readonly folder: string;
  /** Nothing can be written; once until it can. */
  readonly onProblem: (message: string) => void;
  readonly onRecovered: () => void;
  /** For tests. */
  readonly segmentBytes?: number;
  readonly maxBytes?: number;
  readonly maxWaiting?: number;
}

/** The first line of a segment, as the entry with the number 0. */
export interface SegmentHead {
  readonly pid: number;
  /** As `startOf`; null: the system does not tell. */
  readonly started: string | null;
}

/** The last line of a writer that has ended in order, with the number 0, too. */
export const CLOSED = '{"closed":true}';

/**
 * All entries that are appended before the next microtask but one go out in one `write`. It comes before the answers
 * that they belong to: whoever appends and then resolves a promise with the answer has its entry in the hands of the
 * operating system first, where a kill of the process cannot reach it. Nothing is synced: a power cut can lose what the
 * system has not written.
 */
export class Journal {
  /** Tells this process from all others, those before it with the same number too. */
  readonly writer = `${process.pid}-${randomBase36(12)}`;
  readonly #head: string;
  readonly #flush = () => this.flush();
  readonly #onExit = () => this.flush();
  #n = 0;
  #pending = '';
  #scheduled = false;
  #fd: number | undefined;
  #size = 0;
  #segments: { readonly path: string; bytes: number }[] = [];
  #segmentNumber = 1;
  #retryAt = 0;
  #problem = false;
  #retry: ReturnType<typeof setTimeout> | undefined;
  #closed = false;

  constructor(private readonly options: JournalOptions) {
    const head: SegmentHead = { pid: process.pid, started: startOf(process.pid) ?? null };
    this.#head = `0\t${JSON.stringify(head)}\n`;
    process.on('exit', this.#onExit);
  }

  /** The number of the last entry. */
  get last(): number {
    return this.#n;
  }

  /** Entries can be written. */
  get isWell(): boolean {
    return !this.#problem;
  }

  /**
   * @param payload JSON
   * @param common a JSON object that many entries have: it is read once for all of them
   * @returns its number; 0: there is no room, neither on disk nor in memory, and it is lost
   */
  append(payload: string, common?: string): number {
    if (this.#pending.length > (this.options.maxWaiting ?? MAX_WAITING)) return 0;
    const n = ++this.#n;
    this.#pending +=
      common === undefined ? `${n}\t${payload}\n` : `${n}\t[${payload},\t${common}]\n`;
    if (!this.#scheduled) {
      this.#scheduled = true;
      queueMicrotask(this.#flush);
    }
    return n;
  }

  /** Writes what waits, now. */
  flush(): void {
    this.#scheduled = false;
    if (this.#pending === '' || (this.#problem && performance.now() < this.#retryAt)) return;
    try {
      this.#write();
    } catch (thrown) {
      this.#failed(thrown);
      return;
    }
    if (!this.#problem) return;
    this.#problem = false;
    clearTimeout(this.#retry);
    this.options.onRecovered();
  }

  /** Others see that this process lives, although it has nothing to write. */
  touch(): void {
    if (this.#fd === undefined) return;
    const now = Date.now() / 1000;
    try {
      futimesSync(this.#fd, now, now);
    } catch {
      // They see it by its process, too.
    }
  }

  /** Somebody may have removed the file that is written to: what it holds is written again, into another one. */
  rewriteIfRemoved(): void {
    const fd = this.#fd;
    if (fd === undefined || fstatSync(fd).nlink > 0) return;
    const head = Buffer.byteLength(this.#head);
    const held = Buffer.alloc(Math.max(0, this.#size - head));
    readSync(fd, held, 0, held.length, head);
    closeSync(fd);
    this.#fd = undefined;
    this.#pending = held.toString() + this.#pending;
    if (!this.#problem) {
      this.#problem = true;
      this.options.onProblem(`${this.options.folder}: a file was removed while it was in use`);
    }
    this.#retryAt = 0;
    this.flush();
  }

  close(): void {
    if (this.#closed) return;
    this.rewriteIfRemoved();
    this.#closed = true;
    process.off('exit', this.#onExit);
    clearTimeout(this.#retry);
    this.#retryAt = 0;
    this.flush();
    if (this.#fd === undefined) return;
    try {
      if (this.#pending === '') writeSync(this.#fd, `0\t${CLOSED}\n`);
    } catch {
      // A keeper sees it by its process.
    }
    closeSync(this.#fd);
    this.#fd = undefined;
  }

  #write(): void {
    const fd = this.#fd ?? this.#next();
    const text = this.#size === 0 ? this.#head + this.#pending : this.#pending;
    const bytes = Buffer.byteLength(text);
    let written = writeSync(fd, text);
    if (written < bytes) {
      const all = Buffer.from(text);
      while (written < bytes) written += writeSync(fd, all, written);
    }
    this.#pending = '';
    this.#size += bytes;
    this.#segments.at(-1)!.bytes = this.#size;
    if (this.#size < (this.options.segmentBytes ?? SEGMENT_BYTES)) return;
    closeSync(fd);
    this.#fd = undefined;
  }

  /** Begins a segment. @throws where the last ones have not left room for it */
  #next(): number {
    this.#segments = this.#segments.filter(({ path }) => existsSync(path));
    const waiting = this.#segments.reduce((sum, { bytes }) => sum + bytes, 0);
    if (waiting >= (this.options.maxBytes ?? MAX_BYTES)) {
      throw new Error(`${Math.round(waiting / 2 ** 20)} MB wait for the database already`);
    }
    mkdirSync(this.options.folder, { recursive: true, mode: 0o700 });
    const path = join(this.options.folder, segmentName(this.writer, this.#segmentNumber++));
    const fd = openSync(path, 'a+', 0o600);
    this.#fd = fd;
    this.#segments.push({ path, bytes: 0 });
    this.#size = 0;
    return fd;
  }

  #failed(thrown: unknown): void {
    // A part of the text may be there. It is written again as a whole, at the same place.
    if (this.#fd !== undefined) {
      try {
        ftruncateSync(this.#fd, this.#size);
      } catch {
        // A broken line stays a line of its own, which no keeper can read.
        if (!this.#pending.startsWith('\n')) this.#pending = `\n${this.#pending}`;
      }
    }
    this.#retryAt = performance.now() + RETRY_MS;
    if (!this.#closed) {
      clearTimeout(this.#retry);
      this.#retry = setTimeout(() => {
        this.#retryAt = 0;
        this.flush();
      }, RETRY_MS).unref();
    }
    if (this.#problem) return;
    this.#problem = true;
    const why = messageOf(thrown);
    this.options.onProblem(`${this.options.folder}: ${why}`);
  }
}

/** Segments of a writer sort in the order in which they were written. */
export const segmentName = (writer: string, number: number) =>
  `${writer}.${String(number).padStart(6, '0')}.journal`;
