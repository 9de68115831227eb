/** What was fetched for one request, to be read at once: responses, their chains, and items by their ids. */

import { GatewayError } from '../../../conversation/errors.ts';
import type { TextSeal } from '../../../state/text-seal.ts';
import { type Chain, chainSteps, walkChain } from '../chain.ts';
import type { KnownItem, ResponseReads } from '../response-store.ts';
import type { KnownResponse } from '../sqlite-store.ts';
import { type ChainLink, itemsById, type StoredResponse } from '../stored-response.ts';
import { openItems, openRow, type SharedRow } from './shared-row.ts';

/** Seconds after which a client may ask again. */
const RETRY_AFTER = 5;

/** The engines that may know it are away: nobody can say that it does not exist. */
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

export interface FetchedOptions {
  readonly owner: string;
  /** By their ids. */
  readonly rows: ReadonlyMap<string, SharedRow>;
  /** By the ids of items that can be had of them. */
  readonly items: ReadonlyMap<string, SharedRow>;
  readonly seal: TextSeal;
  /** What is not in `rows` may exist all the same. */
  readonly isAway: boolean;
  /** A chain may go on beyond what was read. */
  readonly isCut: boolean;
  readonly onContinued: (row: SharedRow) => void;
  /** A text cannot be opened. */
  readonly onUnreadable: (row: SharedRow) => void;
}

/** Methods throw GatewayError 503 where the engines that would know are away. */
export class FetchedResponses implements ResponseReads {
  readonly #options: FetchedOptions;

  constructor(options: FetchedOptions) {
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

  chain(id: string, owner: string): Chain {
    return this.#continued(
      id,
      walkChain(id, (at) => this.#link(at, owner)),
    );
  }

  async chainInSteps(id: string, owner: string): Promise<Chain> {
    const steps = chainSteps(id, (at) => this.#link(at, owner));
    let began = performance.now();
    for (;;) {
      const step = steps.next();
      if (step.done === true) return this.#continued(id, step.value);
      if (performance.now() - began < STEP_MS) continue;
      await new Promise((resolve) => setImmediate(resolve));
      began = performance.now();
    }
  }

  items(ids: Iterable<string>, owner: string): ReadonlyMap<string, KnownItem> {
    const found = new Map<string, KnownItem>();
    const { isAway } = this.#options;
    const isOwn = owner === this.#options.owner;
    const opened = new Map<SharedRow, ReturnType<typeof itemsById>>();
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

  #row(id: string, owner: string): SharedRow | undefined {
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

  #continued(id: string, chain: Chain): Chain {
    const row = 'missing' in chain ? undefined : this.#options.rows.get(id);
    if (row !== undefined) this.#options.onContinued(row);
    return chain;
  }
}
