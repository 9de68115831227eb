/** Responses that one request names, gathered from the cache, the queue and the tables: the newest version of each. */

import type { CachedRows } from './response-cache.ts';
import type { ResponseQueue } from './response-queue.ts';
import type { Named, ResponseTables } from './response-tables.ts';
import { type FoundResponse, QueuedResponse, type ResponseRow } from './stored-response.ts';

interface Lookup {
  readonly named: Named;
  readonly owner: string;
  readonly cached: CachedRows;
  readonly queue: ResponseQueue;
  readonly isErased: (row: FoundResponse) => boolean;
}

/** Did a gateway make this id: of the time and a random part? A vendor's has another form. */
export const isOwnId = (id: string): boolean => /^resp_\d{13}_[0-9a-z]{6}$/.test(id);

/** Only the items are read of a response that is a link of a chain and not named itself. */
const isWhole = (row: FoundResponse): boolean =>
  row instanceof QueuedResponse || row.response.length > 0;

export class FoundResponses {
  readonly rows = new Map<string, FoundResponse>();
  /** By the ids of the items that they contain. */
  readonly items = new Map<string, FoundResponse>();
  /** A chain goes on beyond what was read. */
  isCut = false;
  /** A response that was not found may be in an engine that is away. */
  isAway = false;
  readonly #lookup: Lookup;

  /** Takes what the cache and the queue have. */
  constructor(lookup: Lookup) {
    this.#lookup = lookup;
    const { named, owner, cached, queue } = lookup;
    for (const id of cached.rows.keys()) this.#take(id);
    for (const item of named.items) {
      const row = this.items.has(item) ? undefined : queue.withItem(owner, item);
      if (row !== undefined) this.#take(row.id);
    }
    this.#takeKnown();
  }

  /** Reads what is still missing. @param here the row with its time by the clock of this process */
  async readFrom(tables: ResponseTables, here: (row: ResponseRow) => ResponseRow): Promise<void> {
    const { owner, cached, isErased } = this.#lookup;
    const missing = this.#takeKnown();
    if (missing.responses.length === 0 && missing.items.length === 0) return;
    const read = await tables.read(missing, owner);
    this.isCut ||= read.isCut;
    for (const row of read.rows.map(here)) {
      if (!cached.isGone(row.id) && !isErased(row)) this.#add(row);
    }
  }

  /** Another process may be about to write what is missing: its id is a gateway's, or a known response names it. */
  get mayCome(): boolean {
    const { named, owner } = this.#lookup;
    const { responses, items } = this.#takeKnown();
    return (
      !this.isAway &&
      ((owner !== '' && items.length > 0) ||
        responses.some((id) => owner !== '' || isOwnId(id) || !named.responses.includes(id)))
    );
  }

  /** The newest version is added first, and stays. */
  #add(row: FoundResponse): void {
    const known = this.rows.get(row.id);
    if (known !== undefined && isWhole(known)) return;
    this.rows.set(row.id, row);
    if (isWhole(row)) for (const item of row.itemIds) this.items.set(item, row);
  }

  #take(id: string): FoundResponse | 'gone' | undefined {
    const { owner, cached, queue, isErased } = this.#lookup;
    if (cached.isGone(id)) return 'gone';
    const row = this.rows.get(id) ?? cached.rows.get(id) ?? queue.get({ owner, id });
    if (row === undefined) return undefined;
    if (isErased(row)) return 'gone';
    this.#add(row);
    return row;
  }

  /**
   * Takes responses that are named, or that found ones continue, from the cache and the queue.
   * @returns those that are in neither, and named items that were not found
   */
  #takeKnown(): Named {
    const { named } = this.#lookup;
    const missing = new Set<string>();
    for (const id of named.responses) {
      const seen = new Set<string>();
      for (let at: string | null = id; at !== null && !seen.has(at); ) {
        seen.add(at);
        const row = this.#take(at);
        if (row === undefined) missing.add(at);
        at = named.chains && row !== undefined && row !== 'gone' ? row.previous : null;
      }
    }
    const items = named.items.filter((item) => !this.items.has(item));
    return { responses: [...missing], chains: named.chains, items };
  }
}
