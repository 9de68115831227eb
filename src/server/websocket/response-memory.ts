/** Conversations that connections remember, within one bound for all of them. */

import type { ConnectionMemory, RememberedChain } from '../../gateway/stream/client-lane.ts';
import { isObject, type JsonObject, parseJson } from '../../lib/json/json.ts';

/** A conversation as JSON: a list of items for each response, without its brackets. Later chains share the texts. */
class Chain implements RememberedChain {
  readonly size: number;

  constructor(readonly segments: readonly string[]) {
    this.size = segments.reduce((sum, text) => sum + text.length, 0);
  }

  items(): readonly JsonObject[] {
    const items = parseJson(`[${this.segments.join(',')}]`);
    return Array.isArray(items) ? items.filter(isObject) : [];
  }
}

interface Remembered {
  readonly id: string;
  readonly chain: Chain;
  readonly forget: () => void;
}

export interface MemoryBounds {
  /** Characters of one conversation. */
  readonly most: () => number;
  /** Characters of those of all connections. */
  readonly mostOfAll: number;
}

/** Keeps what was used last. */
export class MemoryPool {
  /** From the one that was used longest ago. */
  readonly #all = new Set<Remembered>();
  #size = 0;

  constructor(private readonly bounds: MemoryBounds) {}

  /** Characters that are remembered. */
  get size(): number {
    return this.#size;
  }

  /** False: it is too large. */
  add(one: Remembered): boolean {
    if (one.chain.size > this.bounds.most()) return false;
    this.#all.add(one);
    this.#size += one.chain.size;
    for (const oldest of this.#all) {
      if (this.#size <= this.bounds.mostOfAll || oldest === one) break;
      oldest.forget();
    }
    return true;
  }

  use(one: Remembered): void {
    if (this.#all.delete(one)) this.#all.add(one);
  }

  drop(one: Remembered): void {
    if (this.#all.delete(one)) this.#size -= one.chain.size;
  }
}

/** The last response of each lane of one connection. `undefined` is the default lane. */
export class LaneMemory {
  readonly #last = new Map<string | undefined, Remembered>();

  constructor(private readonly pool: MemoryPool) {}

  /** The memory as a request on this lane uses it. */
  of(lane: string | undefined): ConnectionMemory {
    return {
      recall: (id) => this.#recall(id),
      remember: (id, before, items) => this.#remember(lane, id, before, items),
    };
  }

  /** Is it this lane's last response? */
  isLast(lane: string | undefined, id: string): boolean {
    return this.#last.get(lane)?.id === id;
  }

  evict(lane: string | undefined): void {
    const one = this.#last.get(lane);
    if (one === undefined) return;
    this.#last.delete(lane);
    this.pool.drop(one);
  }

  clear(): void {
    for (const lane of [...this.#last.keys()]) this.evict(lane);
  }

  #recall(id: string): RememberedChain | undefined {
    for (const one of this.#last.values()) {
      if (one.id !== id) continue;
      this.pool.use(one);
      return one.chain;
    }
    return undefined;
  }

  #remember(
    lane: string | undefined,
    id: string,
    before: RememberedChain | readonly JsonObject[],
    items: readonly JsonObject[],
  ): void {
    this.evict(lane);
    const earlier = before instanceof Chain ? before.segments : segmentsOf(listOf(before));
    const chain = new Chain([...earlier, ...segmentsOf(items)]);
    const one: Remembered = {
      id,
      chain,
      forget: () => {
        if (this.#last.get(lane) === one) this.evict(lane);
      },
    };
    if (this.pool.add(one)) this.#last.set(lane, one);
  }
}

const listOf = (before: RememberedChain | readonly JsonObject[]): readonly JsonObject[] =>
  'items' in before ? before.items() : before;

const segmentsOf = (items: readonly JsonObject[]): readonly string[] =>
  items.length === 0 ? [] : [JSON.stringify(items).slice(1, -1)];
