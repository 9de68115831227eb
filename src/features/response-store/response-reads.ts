/** Responses, their chains and items, fetched for one request and read at once. */

import { GatewayError } from '../../conversation/errors.ts';
import type { JsonObject } from '../../lib/json/json.ts';
import { othersTurn } from '../../lib/loop/steps.ts';
import type { TextSeal } from '../../state/text-seal.ts';
import {
  type FoundResponse,
  itemsById,
  openItems,
  openRow,
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
  readonly #options: FetchedResponses;

  constructor(options: FetchedResponses) {
    this.#options = options;
  }

  known(id: string, owner: string): KnownResponse | undefined {
    const row = this.#row(id, owner);
    return row && { keeper: row.keeper ?? undefined };
  }

  get(id: string, owner: string): StoredResponse | undefined {
    const row = this.#row(id, owner);
    if (row === undefined) return undefined;
    const opened = openRow(row, this.#options.seal);
    if (opened === undefined) this.#options.onUnreadable(row);
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
    this.#options.onContinued(this.#options.rows.get(id)!);
    return chainOf(links.reverse());
  }

  items(ids: Iterable<string>, owner: string): ReadonlyMap<string, KnownItem> {
    const found = new Map<string, KnownItem>();
    const { isAway } = this.#options;
    const isOwn = owner === this.#options.owner;
    const opened = new Map<FoundResponse, ReturnType<typeof itemsById>>();
    for (const id of ids) {
      const row = isOwn ? this.#options.items.get(id) : undefined;
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
    const { rows, isAway, isCut } = this.#options;
    const row = owner === this.#options.owner ? rows.get(id) : undefined;
    if (row === undefined && isAway) throw responsesAway();
    if (row === undefined && isCut) throw tooLarge(id);
    return row;
  }

  #link(id: string, owner: string): ChainLink | undefined {
    const row = this.#row(id, owner);
    if (row === undefined) return undefined;
    const items = openItems(row, this.#options.seal);
    if (items === undefined) {
      this.#options.onUnreadable(row);
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
