/** The rows of tries that have ended and are not in the database yet: a line each, written at the end of their tick. */

import {
  closeSync,
  ftruncateSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  unlinkSync,
  writeSync,
} from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { atTickEnd, type TickTask } from '../lib/loop/tick-end.ts';
import { isRunning, startOf } from '../lib/process/running.ts';
import type { SpendRow } from './spend.ts';

/** A row, and its number among the lines of its process. */
export interface TailLine {
  readonly line: number;
  readonly row: SpendRow;
  /** As in `WaitingRow`. */
  readonly running: number;
  readonly n: number;
  readonly at: number;
}

interface Head {
  readonly writer: string;
  readonly pid: number;
  readonly started: string | null;
}

/** A file that is smaller stays as it is: the database knows which of its lines it has. */
const MIN_EMPTIED_BYTES = 2 ** 20;
/** Beyond this, rows wait in memory alone. */
const MAX_BYTES = 64 * 2 ** 20;
/** Of journals that are open in this process. */
const live = new Set<string>();
const OWN_START = startOf(process.pid) ?? null;

/**
 * What one process adds to. Nothing is synced to the disk: the operating system has it, so it survives a kill of the
 * process. Where it cannot be written (a full disk), rows wait in memory until the database can be.
 */
export class TailFile implements TickTask {
  readonly #path: string;
  readonly #writer: string;
  readonly #head: string;
  #fd: number | undefined;
  #size = 0;
  #lines = 0;
  #pending: TailLine[] = [];
  /** The last write may have left a part of a line. */
  #torn = false;

  constructor(path: string, writer: string) {
    this.#path = tailPath(path, writer);
    this.#writer = writer;
    live.add(writer);
    const head: Head = { writer, pid: process.pid, started: OWN_START };
    this.#head = `${JSON.stringify(head)}\n`;
  }

  /** The number of the next line. */
  get next(): number {
    return this.#lines + 1;
  }

  /** @param row with the number {@link next} */
  add(row: TailLine): void {
    this.#lines = row.line;
    if (this.#pending.length === 0) atTickEnd(this);
    this.#pending.push(row);
  }

  onTickEnd(): void {
    const pending = this.#pending;
    if (pending.length === 0) return;
    this.#pending = [];
    let text = this.#torn ? '\n' : '';
    for (const one of pending) text += `${JSON.stringify(one)}\n`;
    try {
      if (this.#size < MAX_BYTES) this.#write(text);
      this.#torn = false;
    } catch {
      // The database has the same disk, and its failure is reported.
      this.#torn = true;
    }
  }

  onExit(): void {
    this.onTickEnd();
  }

  /** All its rows are in the database. */
  empty(): void {
    this.#pending = [];
    if (this.#fd === undefined || this.#size < MIN_EMPTIED_BYTES) return;
    try {
      ftruncateSync(this.#fd, 0);
      this.#size = 0;
      this.#torn = false;
    } catch {
      // The database knows which of its lines it has.
    }
  }

  /** @param done all its rows are in the database */
  close(done: boolean): void {
    live.delete(this.#writer);
    if (!done) this.onTickEnd();
    if (this.#fd === undefined) return;
    closeSync(this.#fd);
    this.#fd = undefined;
    if (done) dropTail(this.#path);
  }

  #write(text: string): void {
    if (this.#fd === undefined) {
      mkdirSync(dirname(this.#path), { recursive: true });
      this.#fd = openSync(this.#path, 'a', 0o600);
    }
    const bytes = Buffer.from(this.#size === 0 ? this.#head + text : text);
    let written = 0;
    while (written < bytes.length) {
      const count = writeSync(this.#fd, bytes, written);
      written += count;
      this.#size += count;
    }
  }
}

const tailPath = (path: string, writer: string) => `${path}.tail-${writer}`;

export interface LeftTail {
  readonly path: string;
  readonly writer: string;
  readonly lines: readonly TailLine[];
}

/**
 * The next file that a killed process left; undefined: there is none. A line that broke off is left out.
 * @param seen those that were taken already
 */
export function leftTail(path: string, seen: ReadonlySet<string>): LeftTail | undefined {
  const prefix = tailPath(basename(path), '');
  for (const name of readdirSync(dirname(path))) {
    const full = join(dirname(path), name);
    if (!name.startsWith(prefix) || seen.has(full) || live.has(name.slice(prefix.length))) continue;
    let text: string;
    try {
      text = readFileSync(full, 'utf8');
    } catch {
      continue;
    }
    const [head, ...lines] = text.split('\n').map(parsed);
    const { writer, pid, started } = (head ?? {}) as Partial<Head>;
    if (writer === undefined || pid === undefined) {
      // Of a process that may just begin it, or one that was killed before it had written a line.
      if (pidOf(name.slice(prefix.length))) continue;
      return { path: full, writer: name.slice(prefix.length), lines: [] };
    }
    if (pid !== process.pid && isRunning(pid, started ?? null)) continue;
    return { path: full, writer, lines: lines.filter(isLine) };
  }
  return undefined;
}

export function dropTail(path: string): void {
  try {
    unlinkSync(path);
  } catch {
    // Another process was faster.
  }
}

const pidOf = (writer: string): boolean => {
  const pid = Number(writer.split('-')[0]);
  return pid !== process.pid && isRunning(pid, null);
};

function parsed(line: string): unknown {
  try {
    return JSON.parse(line);
  } catch {
    return undefined;
  }
}

const isLine = (value: unknown): value is TailLine =>
  typeof value === 'object' && value !== null && 'line' in value && 'row' in value;
