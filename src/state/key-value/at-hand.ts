/** Entries in the memory of this process: bounded, the least recently used ones go first. */

import { parseJson } from '../../lib/json/json.ts';
import type { EntryLimits } from './room.ts';

export class Lru<Value> {
  /** In the order of use. */
  readonly #items = new Map<string, { readonly value: Value; bytes: number }>();
  #bytes = 0;

  constructor(private readonly limits: EntryLimits) {}

  get size(): number {
    return this.#items.size;
  }

  has(key: string): boolean {
    return this.#items.has(key);
  }

  get(key: string): Value | undefined {
    const item = this.#items.get(key);
    if (item === undefined) return undefined;
    this.#items.delete(key);
    this.#items.set(key, item);
    return item.value;
  }

  /** What is larger than all room is not kept. */
  set(key: string, value: Value, bytes: number): void {
    this.delete(key);
    if (bytes > this.limits.bytes) return;
    this.#items.set(key, { value, bytes });
    this.#bytes += bytes;
    this.#shrink();
  }

  /** The value of this key takes more than when it was set. */
  grow(key: string, bytes: number): void {
    const item = this.#items.get(key);
    if (item === undefined) return;
    item.bytes += bytes;
    this.#bytes += bytes;
    this.#shrink();
  }

  delete(key: string): void {
    const item = this.#items.get(key);
    if (item === undefined) return;
    this.#items.delete(key);
    this.#bytes -= item.bytes;
  }

  deleteWhere(goes: (key: string, value: Value) => boolean): void {
    for (const [key, { value }] of this.#items) if (goes(key, value)) this.delete(key);
  }

  /** The least recently used first. */
  *[Symbol.iterator](): Generator<readonly [key: string, value: Value]> {
    for (const [key, { value }] of this.#items) yield [key, value];
  }

  clear(): void {
    this.#items.clear();
    this.#bytes = 0;
  }

  #shrink(): void {
    const { entries, bytes } = this.limits;
    for (const key of this.#items.keys()) {
      if (this.#items.size <= entries && this.#bytes <= bytes) return;
      this.delete(key);
    }
  }
}

/** The head of an entry as its bytes in a cache. */
export interface PackedHead {
  /** Seconds since 1970. */
  readonly writtenAt: number;
  /** '' for an entry of no group. */
  readonly epoch: string;
}

const VERSION = 1;
/** Version, seconds, length of the epoch. */
const FIXED_BYTES = 6;

/**
 * When it was written, the epoch of its group, and its JSON, compressed.
 * @param epoch at most 255 ASCII characters
 */
export function packed(value: unknown, epoch: string, nowMs: number): Uint8Array {
  const head = Buffer.alloc(FIXED_BYTES + epoch.length);
  head.writeUInt8(VERSION, 0);
  head.writeUInt32BE(Math.floor(nowMs / 1000), 1);
  head.writeUInt8(epoch.length, FIXED_BYTES - 1);
  head.write(epoch, FIXED_BYTES, 'latin1');
  return Buffer.concat([head, compressed(value)]);
}

/** Undefined for bytes of a version that is not known here. */
export function headOf(bytes: Uint8Array): PackedHead | undefined {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
  if (buffer.length <= FIXED_BYTES || buffer[0] !== VERSION) return undefined;
  const end = FIXED_BYTES + buffer[FIXED_BYTES - 1]!;
  return {
    writtenAt: buffer.readUInt32BE(1),
    epoch: buffer.toString('latin1', FIXED_BYTES, end),
  };
}

export const compressed = (value: unknown): Uint8Array =>
  Bun.zstdCompressSync(Buffer.from(JSON.stringify(value)));

/** The value, and the bytes of its JSON. @throws Error for damaged bytes */
export function decompressed(bytes: Uint8Array): { value: unknown; size: number } {
  const text = Bun.zstdDecompressSync(bytes);
  return { value: parseJson(Buffer.from(text).toString()), size: text.length };
}

/** Keys and objects take memory, too. */
const OVERHEAD = 200;

interface PackedEntry {
  readonly bytes: Uint8Array;
  readonly epoch: string;
  made?: { readonly value: unknown };
}

/** The entries of a cache that this process has at hand, unpacked when they are asked for. */
export class PackedEntries {
  readonly #items: Lru<PackedEntry>;

  constructor(limits: EntryLimits) {
    this.#items = new Lru(limits);
  }

  has(key: string): boolean {
    return this.#items.has(key);
  }

  /** @param epoch an entry of another one is void */
  get(key: string, epoch: string): unknown {
    const item = this.#items.get(key);
    if (item === undefined || item.epoch !== epoch) return undefined;
    if (item.made !== undefined) return item.made.value;
    const made = unpacked(item.bytes);
    if (made === undefined) {
      this.#items.delete(key);
      return undefined;
    }
    item.made = made;
    this.#items.grow(key, made.size);
    return made.value;
  }

  /** @param bytes a packed entry */
  set(key: string, bytes: Uint8Array): void {
    const item = { bytes, epoch: headOf(bytes)?.epoch ?? '' };
    this.#items.set(key, item, OVERHEAD + bytes.length);
  }

  delete(key: string): void {
    this.#items.delete(key);
  }

  deleteEpoch(epoch: string): void {
    this.#items.deleteWhere((_, item) => item.epoch === epoch);
  }
}

/** Undefined if it is damaged. */
function unpacked(bytes: Uint8Array): { value: unknown; size: number } | undefined {
  try {
    return decompressed(bytes.subarray(FIXED_BYTES + bytes[FIXED_BYTES - 1]!));
  } catch {
    return undefined;
  }
}
