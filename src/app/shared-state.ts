/** The state of features that all replicas share through the cache, and what is told of it. */

import type { Prefetch, ReadAhead } from '../features/feature.ts';
import {
  SHARED_ANSWERS,
  type SharedSessionLedger,
  sharedSessionLedger,
} from '../features/reasoning-memory/index.ts';
import {
  type ServerToolsFeature,
  SHARED_HOPS,
  SHARED_TURNS,
  type SharedHopLedger,
  sharedHopLedger,
} from '../features/server-tools/index.ts';
import {
  SHARED_SHORT_RESULTS,
  type SharedShortResultLedger,
  sharedShortResultLedger,
} from '../features/tool-results/index.ts';
import {
  SHARED_DESCRIPTIONS,
  type SharedDescriptionStore,
  sharedDescriptionStore,
} from '../features/vision/index.ts';
import type { KeyValue } from '../state/engines/engine.ts';
import { nameHash } from '../state/erasures.ts';
import { SharedEntries } from '../state/shared-entries.ts';
import type { TextSeal } from '../state/text-seal.ts';
import type { GatewayMetrics } from '../telemetry/gateway-metrics.ts';
import { event, type Log } from '../telemetry/log.ts';

export interface SharedStateOptions {
  readonly cache: KeyValue;
  readonly seal: TextSeal;
  readonly log: Log;
  readonly metrics: Pick<GatewayMetrics, 'sharedDropped' | 'sharedLate'>;
}

/** The end of an answer waits for so long, in milliseconds, for what the client's next request needs. */
const BEFORE_END_MS = 50;

/** The shared state as one exchange uses it. */
export interface ExchangeState {
  readonly hops: SharedHopLedger;
  /** @param space the memory space that the turns used */
  turns(space: string | undefined): SharedHopLedger;
  readonly answers: SharedSessionLedger;
  readonly short: SharedShortResultLedger;
  /** The feature that restores histories, for the features behind it. */
  restoredBy(tools: Pick<ServerToolsFeature, 'restored'> | undefined): void;
  ahead(prefetch: Prefetch): ReadAhead;
  /** Resolves when what this exchange has put is in the cache, or late; undefined: it has put nothing. */
  beforeEnd(): Promise<void> | undefined;
}

export class SharedState {
  readonly descriptions: SharedDescriptionStore;
  readonly #entries: SharedEntries;
  readonly #metrics: SharedStateOptions['metrics'];
  readonly #rooms;

  constructor({ cache, seal, log, metrics }: SharedStateOptions) {
    const entries = new SharedEntries({
      cache,
      seal,
      onDropped: (room, count) => metrics.sharedDropped.add(count, room),
      onProblem: (message) =>
        event(log, 'state.problem', { message: `shared state: ${message}` }, 'warn'),
    });
    this.#entries = entries;
    this.#metrics = metrics;
    this.#rooms = {
      hops: entries.room<Parameters<SharedHopLedger['put']>[1]>(SHARED_HOPS),
      turns: entries.room<Parameters<SharedHopLedger['put']>[1]>(SHARED_TURNS),
      answers: sharedSessionLedger(entries.room(SHARED_ANSWERS)),
      short: sharedShortResultLedger(entries.room(SHARED_SHORT_RESULTS)),
    };
    this.descriptions = sharedDescriptionStore(entries.room(SHARED_DESCRIPTIONS), (hash) =>
      entries.eraseGroup(hash),
    );
  }

  begin(): ExchangeState {
    const { hops, turns, answers, short } = this.#rooms;
    let wrote = false;
    let tools: Pick<ServerToolsFeature, 'restored'> | undefined;
    const marked = <T extends { put(...args: never): void }>(ledger: T): T => ({
      ...ledger,
      put(...args: never) {
        wrote = true;
        ledger.put(...args);
      },
    });
    return {
      hops: marked(sharedHopLedger(hops)),
      turns: (space) => marked(sharedHopLedger(turns, space && nameHash(space))),
      answers: marked(answers),
      short,
      restoredBy(feature) {
        tools = feature;
      },
      ahead: (prefetch) => ({
        prefetch,
        restored: (conversation, context) => tools?.restored(conversation, context),
      }),
      beforeEnd: () => {
        if (!wrote) return undefined;
        wrote = false;
        return this.#sent();
      },
    };
  }

  /** Sends what waits. */
  close(): Promise<void> {
    return this.#entries.close();
  }

  async #sent(): Promise<void> {
    if (!(await this.#entries.sent(BEFORE_END_MS))) this.#metrics.sharedLate.add(1);
  }
}

/** Both as one. */
export const bothAhead =
  (first: Prefetch, second: Prefetch): Prefetch =>
  (keys) => {
    const waits = [first(keys), second(keys)].filter((one) => one !== undefined);
    return waits.length === 0 ? undefined : Promise.all(waits).then(() => {});
  };
