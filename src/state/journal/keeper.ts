/** Takes the entries of journals into tables: each once, whatever is killed when. */

import {
  appendFileSync,
  closeSync,
  openSync,
  readdirSync,
  readSync,
  statSync,
  unlinkSync,
} from 'node:fs';
import { join } from 'node:path';
import { tryParse } from '../../lib/json/json.ts';
import { isRunning } from '../../lib/process/running.ts';
import { messageOf } from '../../lib/text/thrown.ts';
import { CLOSED, type SegmentHead } from './journal.ts';

/** What one transaction takes in: some 500 entries. */
const READ_BYTES = 256 * 1024;
/** A file that a dead process left may be another's after all, on a machine whose processes cannot be seen. */
const SETTLED_MS = 60_000;

export interface Entry {
  /** Its number among all of its writer. */
  readonly n: number;
  readonly value: unknown;
  /** What it has in common with others: one object for all of them. */
  readonly common?: unknown;
}

/** The tables of a room. Each method is one transaction, or none. */
export interface JournalTables {
  /** The number of the last entry of a writer that is in the tables; 0: none is. */
  through(writer: string): Promise<number>;
  /**
   * Takes in entries, and notes that all up to `to` are in the tables, in one transaction.
   * @returns false: the tables are not at `from`, another keeper was faster; nothing has changed
   * @throws what the database says; then nothing has changed
   */
  fold(writer: string, from: number, to: number, entries: readonly Entry[]): Promise<boolean>;
  /** No entry of this writer follows, it seems; if one does, it counts all the same. */
  ended(writer: string): Promise<void>;
  /** Its files are gone: how far it is in the tables need not be known for much longer. */
  gone(writer: string): Promise<void>;
  /** The values of an entry are at fault, and no other time will make them right. */
  refuses(thrown: unknown): boolean;
}

export interface KeeperOptions {
  readonly folder: string;
  readonly tables: JournalTables;
  /** Journals of this process: they live. */
  readonly own?: ReadonlySet<string>;
  /** An entry that the tables do not take; it is in the file `refused` of the folder. */
  readonly onRefused: (message: string) => void;
  /** For tests: before each step. */
  readonly at?: (point: 'read' | 'fold' | 'folded' | 'gone') => void | Promise<void>;
}

export class Keeper {
  readonly #segments = new Map<string, Segment>();
  /** By writer: the last entry that is in the tables. */
  readonly #through = new Map<string, number>();
  /** Writers that may be further: the tables are asked. */
  readonly #unsure = new Set<string>();
  /** Writers whose end the tables know. */
  readonly #ended = new Set<string>();
  #running: Promise<void> | undefined;

  constructor(private readonly options: KeeperOptions) {}

  /** How far a writer is in the tables, as far as this keeper knows. */
  through(writer: string): number {
    return this.#through.get(writer) ?? 0;
  }

  /** Takes in all that is there. Rejects with what the database says. */
  async look(): Promise<void> {
    // One that is under way may have passed the newest entries.
    await this.#running?.catch(() => {});
    this.#running ??= this.#look().finally(() => {
      this.#running = undefined;
    });
    return this.#running;
  }

  async #look(): Promise<void> {
    const writers = this.#list();
    for (const writer of this.#through.keys()) {
      if (!writers.has(writer)) this.#forget(writer);
    }
    for (const [writer, segments] of writers) await this.#keep(writer, segments);
  }

  #list(): ReadonlyMap<string, readonly Segment[]> {
    const { folder } = this.options;
    const writers = new Map<string, Segment[]>();
    let names: readonly string[];
    try {
      names = readdirSync(folder).toSorted();
    } catch {
      return writers;
    }
    for (const name of names) {
      const [, writer] = /^(.+)\.\d{6,}\.journal$/.exec(name) ?? [];
      if (writer === undefined) continue;
      let segment = this.#segments.get(name);
      if (segment === undefined) {
        segment = new Segment(join(folder, name));
        this.#segments.set(name, segment);
      }
      const others = writers.get(writer);
      if (others === undefined) writers.set(writer, [segment]);
      else others.push(segment);
    }
    const there = new Set(names);
    for (const name of this.#segments.keys()) if (!there.has(name)) this.#segments.delete(name);
    return writers;
  }

  async #keep(writer: string, segments: readonly Segment[]): Promise<void> {
    const last = segments.at(-1)!;
    const alive = this.#lives(writer, last);
    for (const segment of segments) {
      await this.#foldAll(writer, segment);
      // A later one is there, so this one gets no more.
      if (segment !== last) await this.#remove(segment);
    }
    if (alive && !last.closed && !last.isQuiet()) {
      this.#ended.delete(writer);
      return;
    }
    if (this.options.own?.has(writer) === true && !last.closed) return;
    if (!this.#ended.has(writer)) {
      await this.options.tables.ended(writer);
      this.#ended.add(writer);
    }
    if (!last.closed && (alive || !last.isQuiet())) return;
    await this.#remove(last);
    await this.options.tables.gone(writer);
  }

  async #foldAll(writer: string, segment: Segment): Promise<void> {
    const { at } = this.options;
    for (;;) {
      await at?.('read');
      const { entries, end, last } = segment.read();
      if (end === segment.offset) return;
      for (let first = 0; first < entries.length; ) {
        const through = await this.#known(writer);
        while (first < entries.length && entries[first]!.n <= through) first++;
        const batch = entries.slice(first);
        if (batch.length === 0) break;
        await at?.('fold');
        if (await this.#fold(writer, through, batch)) first = entries.length;
        else this.#unsure.add(writer);
        await at?.('folded');
      }
      segment.offset = end;
      segment.last = last;
    }
  }

  async #known(writer: string): Promise<number> {
    let through = this.#through.get(writer);
    if (through === undefined || this.#unsure.has(writer)) {
      through = await this.options.tables.through(writer);
      this.#through.set(writer, through);
      this.#unsure.delete(writer);
    }
    return through;
  }

  /** False: the tables are elsewhere. */
  async #fold(writer: string, from: number, batch: readonly Entry[]): Promise<boolean> {
    const { tables } = this.options;
    const to = batch.at(-1)!.n;
    try {
      if (!(await tables.fold(writer, from, to, batch))) return false;
    } catch (thrown) {
      // Whether a commit whose answer is lost has come to pass is in the tables.
      this.#unsure.add(writer);
      if (!tables.refuses(thrown)) throw thrown;
      return this.#foldParts(writer, from, batch, thrown);
    }
    this.#through.set(writer, to);
    this.#unsure.delete(writer);
    return true;
  }

  /** One entry of these is refused: in halves until it is found. */
  async #foldParts(
    writer: string,
    from: number,
    batch: readonly Entry[],
    refusal: unknown,
  ): Promise<boolean> {
    if (batch.length > 1) {
      const middle = batch.length >> 1;
      const before = batch.slice(0, middle);
      return (
        (await this.#fold(writer, from, before)) &&
        (await this.#fold(writer, before.at(-1)!.n, batch.slice(middle)))
      );
    }
    const [{ n, value, common }] = batch as readonly [Entry];
    const { folder, tables, onRefused } = this.options;
    const parts = common === undefined ? [value] : [value, common];
    const line = [writer, n, ...parts.map((part) => JSON.stringify(part))].join('\t');
    appendFileSync(join(folder, 'refused'), `${line}\n`, { mode: 0o600 });
    if (!(await tables.fold(writer, from, n, []))) return false;
    this.#through.set(writer, n);
    this.#unsure.delete(writer);
    onRefused(messageOf(refusal));
    return true;
  }

  #lives(writer: string, segment: Segment): boolean {
    if (this.options.own?.has(writer) === true) return true;
    const { pid, started } = segment.head() ?? { pid: Number(writer.split('-')[0]), started: null };
    if (pid === process.pid && started === null) return false;
    return isRunning(pid, started);
  }

  async #remove(segment: Segment): Promise<void> {
    await this.options.at?.('gone');
    try {
      unlinkSync(segment.path);
    } catch {
      // Another keeper was faster.
    }
  }

  #forget(writer: string): void {
    this.#through.delete(writer);
    this.#ended.delete(writer);
  }
}

class Segment {
  /** Bytes whose entries are in the tables. */
  offset = 0;
  /** Its writer has ended in order. */
  closed = false;
  /** The number of the entry before it. */
  last = 0;
  #head: SegmentHead | undefined;

  constructor(readonly path: string) {}

  /** Whole lines behind `offset`, and where they end. A line that broke off is not whole. */
  read(): { readonly entries: readonly Entry[]; readonly end: number; readonly last: number } {
    const nothing = { entries: [], end: this.offset, last: this.last };
    let fd: number;
    try {
      fd = openSync(this.path, 'r');
    } catch {
      return nothing;
    }
    try {
      for (let size = READ_BYTES; ; size *= 4) {
        const bytes = size === READ_BYTES ? READ : Buffer.allocUnsafe(size);
        const count = readSync(fd, bytes, 0, size, this.offset);
        const whole = bytes.subarray(0, bytes.subarray(0, count).lastIndexOf(LF) + 1);
        // A line may be longer than what was read of it.
        if (whole.length === 0 && count === size) continue;
        const entries = this.#parse(whole);
        return {
          entries,
          end: this.offset + whole.length,
          last: entries.at(-1)?.n ?? this.last,
        };
      }
    } finally {
      closeSync(fd);
    }
  }

  #parse(bytes: Buffer): readonly Entry[] {
    const entries: Entry[] = [];
    const known = new Map<string, unknown>();
    let { last } = this;
    for (const line of bytes.toString('utf8').split('\n')) {
      const tab = line.indexOf('\t');
      const n = Number(line.slice(0, tab));
      const comma = line.indexOf(',\t', tab);
      const payload = comma < 0 ? line.slice(tab + 1) : line.slice(tab + 2, comma);
      if (payload === CLOSED) this.closed = true;
      // Numbers that come again were written again, behind a line that broke off.
      if (!(n > last)) continue;
      const value = tryParse(payload);
      if (value === undefined) continue;
      if (comma < 0) entries.push({ n, value });
      else {
        const text = line.slice(comma + 2, -1);
        const common = known.get(text) ?? tryParse(text);
        if (common === undefined) continue;
        known.set(text, common);
        entries.push({ n, value, common });
      }
      last = n;
    }
    return entries;
  }

  /** Undefined: there is none yet. */
  head(): SegmentHead | undefined {
    if (this.#head !== undefined) return this.#head;
    let fd: number | undefined;
    try {
      fd = openSync(this.path, 'r');
      const bytes = Buffer.alloc(512);
      const text = bytes.toString('utf8', 0, readSync(fd, bytes, 0, 512, 0));
      this.#head = JSON.parse(text.slice(2, text.indexOf('\n'))) as SegmentHead;
    } catch {
      // Its process was killed before the first line, or is about to write it.
    } finally {
      if (fd !== undefined) closeSync(fd);
    }
    return this.#head;
  }

  /** Nothing was written for a while, by whatever clock. */
  isQuiet(): boolean {
    const written = statSync(this.path, { throwIfNoEntry: false })?.mtimeMs ?? 0;
    return Math.abs(Date.now() - written) > SETTLED_MS;
  }
}

const LF = 10;
const READ = Buffer.alloc(READ_BYTES);
