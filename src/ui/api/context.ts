/** What the routes of the page's API share: samples on disk, prices, running jobs and open event streams. */

import type { Config } from '../../config/config.ts';
import { type Prices, pricesOf } from '../../samples/replay/cost.ts';
import type { SampleStore } from '../../samples/sample.ts';
import { createJobs, type Jobs } from './jobs/jobs.ts';
import { createLive, type Live } from './live.ts';
import type { UiOptions } from './options.ts';

export class ApiContext {
  readonly options: UiOptions;
  readonly live: Live;
  readonly jobs: Jobs = createJobs();
  #store: SampleStore | undefined;
  #priced: { readonly config: Config; readonly prices: Prices } | undefined;

  constructor(options: UiOptions) {
    this.options = options;
    this.live = createLive(this);
  }

  /** The recorded exchanges; opened at the first use. */
  get store(): SampleStore {
    this.#store ??= this.options.samples(this.options.root, true);
    return this.#store;
  }

  /** Prices of the configuration in force. */
  get prices(): Prices {
    const config = this.options.config();
    if (this.#priced?.config !== config) this.#priced = { config, prices: pricesOf(config) };
    return this.#priced.prices;
  }

  /** Ends event streams and jobs; resolves when they have ended. */
  async close(): Promise<void> {
    this.live.close();
    await this.jobs.close();
    this.#store?.close();
    this.#store = undefined;
  }
}
