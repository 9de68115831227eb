/** The conversations of responses that this process read or wrote, so that the next one joins without a look at the database. */

import { NewestMap } from '../../lib/loop/newest-map.ts';
import { secretBase36 } from '../../lib/text/ids.ts';
import { type FoundResponse, keyOf, type StoredResponse } from './stored-response.ts';

const MAX_THREADS = 10_000;

export class ResponseThreads {
  /** By the key of a response. */
  readonly #threads = new NewestMap<string, string>(MAX_THREADS);

  learn({ owner, id, thread }: FoundResponse): void {
    this.#threads.set(keyOf({ owner, id }), thread);
  }

  /** A new conversation where it is not known which one the response continues. */
  of({ owner, id, previous }: Pick<StoredResponse, 'owner' | 'id' | 'previous'>): string {
    const known = this.#threads.get(keyOf({ owner, id }));
    if (known !== undefined || previous === undefined) return known ?? secretBase36(20);
    return this.#threads.get(keyOf({ owner, id: previous })) ?? secretBase36(20);
  }
}
