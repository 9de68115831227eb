/** The entries of shared rooms that this process has at hand: bounded, the least recently used ones go first. */

import { headOf, unpacked } from './packed-entry.ts';

export interface LocalLimits {
  readonly entries: number;
  /** Bytes, those of values that were unpacked included. */
  readonly bytes: number;
}

interface LocalEntry {
  readonly bytes: Uint8Array;
  readonly epoch: string;
  value?: { readonly value: unknown; readonly size: number };
}

export class LocalEntries {
  readonly #limits: LocalLimits;
  /** In the order of use. */
  readonly #entries = new Map<string, LocalEntry>();
  #bytes = 0;

  constructor(limits: LocalLimits) {
    this.#limits = limits;
  }

  has(key: string): boolean {
    return this.#entries.has(key);
  }

  /** @param epoch an entry of another one is void */
  get(key: string, epoch: string): unknown {
    const entry = this.#entries.get(key);
    if (entry === undefined || entry.epoch !== epoch) return undefined;
    this.#entries.delete(key);
    if (entry.value === undefined) {
      const made = unpacked(entry.bytes);
      if (made === undefined) {
        this.#bytes -= sizeOf(entry);
        return undefined;
      }
      entry.value = made;
      this.#bytes += made.size;
    }
    this.#entries.set(key, entry);
    this.#shrink(key);
    return entry.value.value;
  }

  /** @param bytes a packed entry */
  set(key: string, bytes: Uint8Array): void {
    this.delete(key);
    const entry: LocalEntry = { bytes, epoch: headOf(bytes)?.epoch ?? '' };
    this.#entries.set(key, entry);
    this.#bytes += sizeOf(entry);
    this.#shrink(key);
  }

  delete(key: string): void {
    const entry = this.#entries.get(key);
    if (entry === undefined) return;
    this.#entries.delete(key);
    this.#bytes -= sizeOf(entry);
  }

  deleteEpoch(epoch: string): void {
    for (const [key, entry] of this.#entries) if (entry.epoch === epoch) this.delete(key);
  }

  #shrink(newest: string): void {
    for (const key of this.#entries.keys()) {
      const { entries, bytes } = this.#limits;
      if (key === newest || (this.#entries.size <= entries && this.#bytes <= bytes)) return;
      this.delete(key);
    }
  }
}

/** Keys and objects cost something, too. */
const OVERHEAD = 200;

const sizeOf = ({ bytes, value }: LocalEntry): number =>
  OVERHEAD + bytes.length + (value?.size ?? 0);
