/** The ledgers of features: where their entries are, and how one exchange uses them. */

import { join } from 'node:path';
import type { ReadAhead } from '../features/feature.ts';
import { ANSWERS, type SessionLedger } from '../features/reasoning-memory/index.ts';
import {
  HOPS,
  type HopLedger,
  type ServerToolsFeature,
  TURNS,
} from '../features/server-tools/index.ts';
import { SHORT_RESULTS, type ShortResultLedger } from '../features/tool-results/index.ts';
import { DESCRIPTIONS } from '../features/vision/index.ts';
import type { KeyValue } from '../state/engines/engine.ts';
import { type HashedName, nameHash } from '../state/erasures.ts';
import { MemoryEntries } from '../state/key-value/memory.ts';
import type { Entries, EntryStore, Room } from '../state/key-value/room.ts';
import { ValkeyEntries } from '../state/key-value/valkey.ts';
import type { TextSeal } from '../state/text-seal.ts';
import type { GatewayMetrics } from '../telemetry/gateway-metrics.ts';
import { event, type Log } from '../telemetry/log.ts';

export interface LedgersOptions {
  /** Undefined: the entries are in this process and its files. */
  readonly cache: KeyValue | undefined;
  readonly seal: TextSeal;
  /** The folder of the gateway; its files are in `state`. */
  readonly home: string;
  readonly log: Log;
  readonly metrics: Pick<GatewayMetrics, 'sharedDropped' | 'sharedLate'>;
}

/** The end of an answer waits for so long, in milliseconds, for what the client's next request needs. */
const BEFORE_END_MS = 50;

export interface ExchangeLedgers {
  readonly hops: HopLedger;
  /** @param space the memory space that the turns used */
  turns(space: string | undefined): HopLedger;
  readonly answers: SessionLedger;
  readonly short: ShortResultLedger;
  /** The feature that restores histories, for the features behind it. */
  restoredBy(tools: Pick<ServerToolsFeature, 'restored'> | undefined): void;
  /** Undefined: nothing is read ahead. */
  readonly restored: ReadAhead['restored'];
  /** Resolves when what this exchange has put is in the cache, or late; undefined: it has put nothing. */
  readonly beforeEnd: (() => Promise<void> | undefined) | undefined;
}

function openEntries({ cache, seal, home, log, metrics }: LedgersOptions): EntryStore {
  const problem = (message: string) => event(log, 'state.problem', { message }, 'warn');
  if (cache === undefined) return new MemoryEntries({ folder: join(home, 'state'), warn: problem });
  return new ValkeyEntries({
    cache,
    seal,
    onDropped: (room, count) => metrics.sharedDropped.add(count, room),
    onProblem: (message) => problem(`shared state: ${message}`),
  });
}

export class Ledgers {
  readonly descriptions: Room<string>;
  readonly #store: EntryStore;
  readonly #metrics: LedgersOptions['metrics'];
  readonly #rooms;
  /** The same for every exchange where nothing has to be awaited. */
  readonly #here: ExchangeLedgers;

  constructor(options: LedgersOptions) {
    const store = openEntries(options);
    this.#store = store;
    this.#metrics = options.metrics;
    const rooms = {
      hops: store.room(HOPS),
      turns: store.room(TURNS),
      answers: store.room(ANSWERS),
      short: store.room(SHORT_RESULTS),
    };
    this.#rooms = rooms;
    this.descriptions = store.room(DESCRIPTIONS);
    this.#here = {
      ...rooms,
      turns: (space) => ofSpace(rooms.turns, space),
      restoredBy: () => {},
      restored: undefined,
      beforeEnd: undefined,
    };
  }

  begin(): ExchangeLedgers {
    const { sent } = this.#store;
    return sent === undefined ? this.#here : this.#beginElsewhere();
  }

  eraseSpace(space: string | HashedName): void {
    this.#store.eraseGroup(nameHash(space));
  }

  open(): void {
    this.#store.open();
  }

  /** Sends what is pending. */
  close(): Promise<void> {
    return this.#store.close();
  }

  #beginElsewhere(): ExchangeLedgers {
    const { hops, turns, answers, short } = this.#rooms;
    let wrote = false;
    let tools: Pick<ServerToolsFeature, 'restored'> | undefined;
    const marked = <Entry>(entries: Entries<Entry>): Entries<Entry> => ({
      empty: entries.empty,
      prefetch: entries.prefetch,
      find: (keys) => entries.find(keys),
      put(keys, entry) {
        wrote = true;
        entries.put(keys, entry);
      },
      settled: (keys) => entries.settled(keys),
    });
    return {
      hops: marked(hops),
      turns: (space) => marked(ofSpace(turns, space)),
      answers: marked(answers),
      short,
      restoredBy(feature) {
        tools = feature;
      },
      restored: (conversation, context) => tools?.restored(conversation, context),
      beforeEnd: () => {
        if (!wrote) return undefined;
        wrote = false;
        return this.#sent();
      },
    };
  }

  async #sent(): Promise<void> {
    if (!(await this.#store.sent!(BEFORE_END_MS))) this.#metrics.sharedLate.add(1);
  }
}

const ofSpace = <Entry>(room: Room<Entry>, space: string | undefined): Room<Entry> =>
  space === undefined ? room : room.of(nameHash(space));
