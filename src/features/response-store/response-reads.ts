/** Responses, their chains and items, fetched for one request and read at once. */

import { GatewayError } from '../../conversation/errors.ts';
import type { JsonObject } from '../../lib/json/json.ts';
import { othersTurn } from '../../lib/loop/steps.ts';
import { isRequestId } from '../../lib/text/ids.ts';
import type { TextSeal } from '../../state/text-seal.ts';
import type { CachedRows } from './response-cache.ts';
import type { ResponseQueue } from './response-queue.ts';
import type { Named, ResponseTables } from './response-tables.ts';
import {
  type FoundResponse,
  itemsById,
  openItems,
  openRow,
  QueuedResponse,
  type ResponseRow,
  type StoredResponse,
} from './stored-response.ts';

/** Seconds after which a client may ask again. */
const RETRY_AFTER = 5;

/** An engine that may have it is away, so it cannot be called missing. */
export const responsesAway = (cause?: unknown): GatewayError =>
  new GatewayError(
    'overloaded',
    'Stored responses cannot be reached at the moment. Please try again.',
    { code: 'stored_responses_unavailable', retryAfter: RETRY_AFTER, retryable: true, cause },
  );

const tooLarge = (id: string): GatewayError =>
  new GatewayError(
    'too_large',
    `The conversation up to response '${id}' is too large to be continued.`,
    { param: 'previous_response_id', retryable: false },
  );

/** Milliseconds of work on a long chain before other work gets its turn. */
const STEP_MS = 5;

/** A known response, with the provider that also stores it. */
export type KnownResponse = Pick<StoredResponse, 'keeper'>;

/** An output item that a later request may refer to, and the provider that knows it by its id. */
export interface KnownItem extends KnownResponse {
  readonly item: JsonObject;
}

export interface FetchedResponses {
  readonly owner: string;
  /** By their ids. */
  readonly rows: ReadonlyMap<string, FoundResponse>;
  /** By the ids of the items that they contain. */
  readonly items: ReadonlyMap<string, FoundResponse>;
  readonly seal: TextSeal;
  /** Responses that are not in `rows` may exist all the same. */
  readonly isAway: boolean;
  /** A chain may be longer than the part that was read. */
  readonly isCut: boolean;
  readonly onContinued: (row: FoundResponse) => void;
  /** A text cannot be opened. */
  readonly onUnreadable: (row: FoundResponse) => void;
}

/** Methods throw GatewayError 503 where the engines that would know are away. */
export class ResponseReads {
  constructor(private readonly options: FetchedResponses) {}

  known(id: string, owner: string): KnownResponse | undefined {
    const row = this.#row(id, owner);
    return row && { keeper: row.keeper ?? undefined };
  }

  get(id: string, owner: string): StoredResponse | undefined {
    const row = this.#row(id, owner);
    if (row === undefined) return undefined;
    const opened = openRow(row, this.options.seal);
    if (opened === undefined) this.options.onUnreadable(row);
    return opened;
  }

  /**
   * The input and output items of every link up to and including `id`, oldest first. A link that comes twice (in a
   * damaged file) counts as missing, so the walk always ends. Other work runs between the links of a long chain.
   */
  async chain(id: string, owner: string): Promise<Chain> {
    const links: ChainLink[] = [];
    const seen = new Set<string>();
    let began = performance.now();
    for (let at: string | undefined = id; at !== undefined; ) {
      const link: ChainLink | undefined = seen.has(at) ? undefined : this.#link(at, owner);
      if (link === undefined) return { missing: at };
      seen.add(at);
      links.push(link);
      at = link.previous;
      if (performance.now() - began < STEP_MS) continue;
      await othersTurn();
      began = performance.now();
    }
    this.options.onContinued(this.options.rows.get(id)!);
    return chainOf(links.reverse());
  }

  items(ids: Iterable<string>, owner: string): ReadonlyMap<string, KnownItem> {
    const found = new Map<string, KnownItem>();
    const { isAway } = this.options;
    const isOwn = owner === this.options.owner;
    const opened = new Map<FoundResponse, ReturnType<typeof itemsById>>();
    for (const id of ids) {
      const row = isOwn ? this.options.items.get(id) : undefined;
      if (row === undefined) {
        if (isAway) throw responsesAway();
        continue;
      }
      let known = opened.get(row);
      if (known === undefined) {
        const whole = this.get(row.id, owner);
        known = whole === undefined ? new Map() : itemsById(whole);
        opened.set(row, known);
      }
      const item = known.get(id);
      if (item !== undefined) found.set(id, { item, keeper: row.keeper ?? undefined });
    }
    return found;
  }

  #row(id: string, owner: string): FoundResponse | undefined {
    const { rows, isAway, isCut } = this.options;
    const row = owner === this.options.owner ? rows.get(id) : undefined;
    if (row === undefined && isAway) throw responsesAway();
    if (row === undefined && isCut) throw tooLarge(id);
    return row;
  }

  #link(id: string, owner: string): ChainLink | undefined {
    const row = this.#row(id, owner);
    if (row === undefined) return undefined;
    const items = openItems(row, this.options.seal);
    if (items === undefined) {
      this.options.onUnreadable(row);
      return undefined;
    }
    return { ...items, previous: row.previous ?? undefined, keeper: row.keeper ?? undefined };
  }
}

/** The fields that a chain needs. */
type ChainLink = Pick<StoredResponse, 'previous' | 'input' | 'output' | 'keeper'>;

/** An item of a chain, and the provider that knows it by its id. */
interface ChainItem {
  readonly item: JsonObject;
  readonly keeper: string | undefined;
}

/** All items, oldest first, or the id of the missing link. */
export type Chain =
  | {
      readonly items: readonly JsonObject[];
      readonly links: number;
      /** The items for a provider: without the references that only another provider can resolve. */
      itemsFor(provider: string | undefined): readonly JsonObject[];
    }
  | { readonly missing: string };

/** @param links the oldest first */
function chainOf(links: readonly ChainLink[]): Chain {
  const all: ChainItem[] = [];
  for (const { input, output, keeper } of links) {
    for (const item of input) all.push({ item, keeper: undefined });
    for (const item of output) all.push({ item, keeper });
  }
  return {
    items: all.map(({ item }) => item),
    links: links.length,
    itemsFor: (provider) =>
      all
        .filter(({ item, keeper }) => !isVendorReference(item) || (keeper ?? '') === provider)
        .map(({ item }) => item),
  };
}

/** Does the item only refer to content that its vendor stores? */
export const isVendorReference = ({
  type,
  id,
  encrypted_content,
  content,
  result,
}: JsonObject): boolean =>
  typeof id === 'string' &&
  ((type === 'reasoning' && !filled(encrypted_content) && !filled(content)) ||
    (type === 'image_generation_call' && !filled(result)));

const filled = (value: unknown) =>
  typeof value === 'string' ? value !== '' : Array.isArray(value) && value.length > 0;

interface Lookup {
  readonly named: Named;
  readonly owner: string;
  readonly cached: CachedRows;
  readonly queue: ResponseQueue;
  readonly isErased: (row: FoundResponse) => boolean;
}

/** Did a gateway make this id, of that of its request? A vendor's has another form. */
export const isOwnId = (id: string): boolean =>
  id.startsWith('resp_') && isRequestId(id.replace('resp_', 'req_'));

/** Only the items are read of a response that is a link of a chain and not named itself. */
const isWhole = (row: FoundResponse): boolean =>
  row instanceof QueuedResponse || row.response.length > 0;

const isNothing = ({ responses, items }: Named): boolean =>
  responses.length === 0 && items.length === 0;

export class FoundResponses {
  readonly rows = new Map<string, FoundResponse>();
  /** By the ids of the items that they contain. */
  readonly items = new Map<string, FoundResponse>();
  /** A chain goes on beyond what was read. */
  isCut = false;
  /** A response that was not found may be in an engine that is away. */
  isAway = false;

  /** Takes what the cache and the queue have. */
  constructor(private readonly lookup: Lookup) {
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
    const { owner, cached, isErased } = this.lookup;
    const missing = this.#takeKnown();
    if (isNothing(missing)) return;
    const read = await tables.read(missing, owner);
    this.isCut ||= read.isCut;
    for (const row of read.rows.map(here)) {
      if (!cached.isGone(row.id) && !isErased(row)) this.#add(row);
    }
  }

  /** Something that is named was not found. */
  get isIncomplete(): boolean {
    return !isNothing(this.#takeKnown());
  }

  /** Another process may be about to write what is missing: its id is a gateway's, or a known response names it. */
  get mayCome(): boolean {
    const { named, owner } = this.lookup;
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
    const { owner, cached, queue, isErased } = this.lookup;
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
    const { named } = this.lookup;
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
