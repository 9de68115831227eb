/** Refuses a request that names what a vendor keeps for another key. */

import { hasRepeatedNames } from '../../conversation/body-names.ts';
import type { Conversation } from '../../conversation/types.ts';
import {
  checkVendorIds,
  type ForeignIds,
  mayNameVendorIds,
  vendorIdsNamed,
} from '../../conversation/vendor-ids.ts';
import type { Json } from '../../lib/json/json.ts';
import type { Feature, FeatureContext } from '../feature.ts';

/** For one exchange. */
export class NamedIds implements Feature {
  readonly name = 'vendor-ids';
  #body: Buffer | undefined;
  #refusal: unknown;
  #isAmbiguous = false;

  constructor(
    private readonly owner: string,
    private readonly foreign: ForeignIds,
  ) {}

  mayApply(body: Buffer): boolean {
    this.#body = body;
    return mayNameVendorIds(body);
  }

  // The hops behind the first have the client's own request, and what tools have said.
  async prepare({ origin }: Conversation, { hop }: FeatureContext): Promise<void> {
    if (hop > 1) return;
    try {
      const ids = vendorIdsNamed(origin?.value);
      await checkVendorIds(ids, this.owner, this.foreign);
      this.#isAmbiguous =
        ids.size > 0 && this.owner !== '' && isAmbiguous(this.#body, origin?.value);
    } catch (thrown) {
      this.#refusal = thrown;
    }
  }

  request(conversation: Conversation, { hop }: FeatureContext): Conversation {
    if (this.#refusal !== undefined) throw this.#refusal;
    // A vendor may read the other of two members with one name. The body is written anew, with the one that was checked.
    return hop === 1 && this.#isAmbiguous ? { ...conversation } : conversation;
  }
}

const isAmbiguous = (body: Buffer | undefined, value: Json | undefined): boolean =>
  body !== undefined && value !== undefined && hasRepeatedNames(body, value);
