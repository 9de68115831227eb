/** Refuses a request that names a file which another key uploaded through this gateway. */

import {
  checkFiles,
  type ForeignFiles,
  fileIdsIn,
  mayNameFiles,
} from '../../conversation/file-ids.ts';
import type { Conversation } from '../../conversation/types.ts';
import type { Feature, FeatureContext } from '../feature.ts';

/** For one exchange. */
export class FileOwners implements Feature {
  readonly name = 'file-owners';
  readonly mayApply = mayNameFiles;
  readonly #owner: string;
  readonly #foreign: ForeignFiles;
  #refusal: unknown;

  constructor(owner: string, foreign: ForeignFiles) {
    this.#owner = owner;
    this.#foreign = foreign;
  }

  // The hops behind the first have the client's own request, and what tools have said.
  async prepare({ origin }: Conversation, { hop }: FeatureContext): Promise<void> {
    if (hop > 1) return;
    try {
      await checkFiles(fileIdsIn(origin?.value), this.#owner, this.#foreign);
    } catch (thrown) {
      this.#refusal = thrown;
    }
  }

  request(conversation: Conversation): Conversation {
    if (this.#refusal !== undefined) throw this.#refusal;
    return conversation;
  }
}
