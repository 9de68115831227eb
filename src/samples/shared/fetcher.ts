/** Fetches the bodies of samples that other replicas recorded, when they are opened. */

import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { GatewayError } from '../../conversation/errors.ts';
import { limitParallel } from '../../lib/loop/limit-parallel.ts';
import type { SampleMeta, SharedBodies } from '../sample.ts';
import { type BodyStore, fetchBodies, UnreadableBodies } from './bodies.ts';
import type { SharingStore } from './sharing-store.ts';

/** Objects that are fetched at the same time. */
const PARALLEL = 4;

export interface FetcherOptions extends BodyStore {
  readonly root: string;
  readonly store: Pick<SharingStore, 'hold'>;
}

export class BodyFetcher {
  readonly #options: FetcherOptions;
  readonly #limited = limitParallel(PARALLEL);
  readonly #fetching = new Map<string, Promise<void>>();

  constructor(options: FetcherOptions) {
    this.#options = options;
  }

  /**
   * Resolves when the bodies of a sample lie in the folder.
   * @throws GatewayError not_found when they are gone, overloaded when they cannot be fetched now
   */
  fetch(meta: SampleMeta): Promise<void> {
    const { object } = meta;
    if (object === undefined || this.#isHere(meta)) return Promise.resolve();
    let fetching = this.#fetching.get(meta.id);
    if (fetching === undefined) {
      fetching = this.#limited(() => this.#fetch(meta, object)).finally(() =>
        this.#fetching.delete(meta.id),
      );
      this.#fetching.set(meta.id, fetching);
    }
    return fetching;
  }

  #isHere({ entry, edges }: SampleMeta): boolean {
    return edges.every(({ file }) => existsSync(join(this.#options.root, entry, file)));
  }

  async #fetch(meta: SampleMeta, object: SharedBodies): Promise<void> {
    const { root, store } = this.#options;
    try {
      await fetchBodies(this.#options, root, meta, object);
      store.hold(
        meta,
        object.sizes.reduce((sum, size) => sum + size, 0),
      );
    } catch (cause) {
      const reason = cause instanceof Error ? cause.message : String(cause);
      const message = `The bodies of ${meta.id}, which another replica recorded, cannot be read: ${reason}.`;
      throw cause instanceof UnreadableBodies
        ? new GatewayError('not_found', message, { cause })
        : new GatewayError('overloaded', message, { cause, retryAfter: 10 });
    }
  }
}
