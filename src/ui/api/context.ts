/** The context of the routes of the page's API: samples on disk, prices, running jobs and open event streams. */

import type { Config } from '../../config/config.ts';
import { GatewayError } from '../../conversation/errors.ts';
import type { RecentSamples } from '../../samples/record/recent.ts';
import { type Prices, pricesOf } from '../../samples/replay/cost.ts';
import type { SampleMeta, SampleStore, SampleWatcher } from '../../samples/sample.ts';
import { openSampleStore } from '../../samples/store/sample-store.ts';
import type { Recorded } from './bodies/said.ts';
import type { Viewer } from './guard.ts';
import { createJobs, type Jobs } from './jobs/jobs.ts';
import { createLive, type Live } from './live.ts';
import type { UiOptions } from './options.ts';
import { exchangesInMemory, withRecent } from './recent-store.ts';
import { TextSearch } from './search/text-search.ts';

/** Milliseconds after the end of an exchange until its texts are read for the search. */
const READ_AFTER = 300;

export class ApiContext {
  readonly options: UiOptions;
  readonly live: Live;
  readonly jobs: Jobs = createJobs();
  readonly texts: TextSearch;
  readonly #unwatch: () => void;
  /** Exchanges in memory, here and on other replicas. */
  readonly #recent: RecentSamples;
  #store: SampleStore | undefined;
  #priced: { readonly config: Config; readonly prices: Prices } | undefined;

  constructor(options: UiOptions) {
    this.options = options;
    this.#recent = exchangesInMemory(options.recorder.recent, [
      options.recorder.running,
      options.replicas?.running,
    ]);
    this.live = createLive(this);
    this.texts = new TextSearch({
      store: () => this.store,
      recent: options.recorder.recent,
      parts: options,
    });
    // What was recorded before the page was opened, then what is recorded from now on.
    void this.texts.read();
    let timer: ReturnType<typeof setTimeout> | undefined;
    const later = () => {
      timer ??= setTimeout(() => {
        timer = undefined;
        void this.texts.read();
      }, READ_AFTER);
      timer.unref();
    };
    const unwatch = this.watch({ row: ({ state }) => state !== 'open' && later(), gone() {} });
    this.#unwatch = () => {
      clearTimeout(timer);
      unwatch();
    };
  }

  /** The exchanges on disk and in memory; opened at the first use. */
  get store(): SampleStore {
    if (this.#store === undefined) {
      const { root, replicas } = this.options;
      const disk = openSampleStore(root, true, replicas && ((meta) => replicas.fetch(meta)));
      this.#store = withRecent(disk, this.#recent, () => this.prices);
    }
    return this.#store;
  }

  /**
   * The sample of an id, its bodies included; of one that runs here, as far as they have come. One that this viewer may not see is reported as missing.
   * @throws GatewayError not_found, overloaded where bodies cannot be fetched now
   */
  async recorded(id: string, viewer: Viewer): Promise<Recorded> {
    const { store, options } = this;
    await options.recorder.recent?.read(id);
    await options.recorder.look(id);
    const meta = metaFor(store, id, viewer);
    await store.fetch(meta);
    return { store, meta, parts: options };
  }

  /** Calls the watcher for every exchange, here and on other replicas, until the returned function is called. */
  watch(watcher: SampleWatcher): () => void {
    const unwatch = this.options.watch(watcher);
    const unwatchOthers = this.options.replicas?.watch(watcher);
    return () => {
      unwatch();
      unwatchOthers?.();
    };
  }

  /** Prices of the configuration in force. */
  get prices(): Prices {
    const config = this.options.config();
    if (this.#priced?.config !== config) this.#priced = { config, prices: pricesOf(config) };
    return this.#priced.prices;
  }

  /** Ends event streams and jobs; resolves when they have ended. */
  async close(): Promise<void> {
    this.#unwatch();
    this.live.close();
    await this.texts.close();
    await this.jobs.close();
    this.#store?.close();
    this.#store = undefined;
  }
}

const ID = /^req_\d+_[0-9A-Za-z]+$/;

/**
 * The sample of an id. One that this viewer may not see is reported as missing.
 * @throws GatewayError not_found
 */
function metaFor(store: SampleStore, id: string, { owner }: Viewer): SampleMeta {
  const meta = ID.test(id) ? store.find(id) : undefined;
  if (meta === undefined || (owner !== undefined && meta.owner !== owner)) {
    throw new GatewayError('not_found', `There is no exchange "${id.slice(0, 100)}".`);
  }
  return meta;
}
