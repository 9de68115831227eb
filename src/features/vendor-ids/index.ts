/** Ids of things that vendors keep for a key: learnt from answers, and refused to other keys. */

import { hasRepeatedNames } from '../../conversation/body-names.ts';
import type { Conversation } from '../../conversation/types.ts';
import {
  checkVendorIds,
  type ForeignIds,
  mayIssueVendorIds,
  vendorIdsIssued,
  vendorIdsNamed,
} from '../../conversation/vendor-ids.ts';
import { Pieces } from '../../lib/bytes/bytes.ts';
import { SseParser } from '../../lib/bytes/sse.ts';
import { type Json, tryParse } from '../../lib/json/json.ts';
import type { AnswerWatch, Feature, FeatureContext } from '../feature.ts';

/** Notes ids of this exchange's owner. Returns at once and never throws. */
type LearnIds = (ids: readonly string[], provider: string) => void;

/** Learns ids from an answer that may give them out; for one exchange. */
export class IssuedIds implements Feature {
  readonly name = 'issued-ids';

  /** @param asks may an answer to this request give out ids? Known better once its body is decoded */
  constructor(
    private readonly learn: LearnIds,
    private readonly asks: () => boolean,
  ) {}

  watch(sent: Conversation, { target }: FeatureContext): AnswerWatch | undefined {
    if (!this.asks()) return undefined;
    return new AnswerIds(sent.origin?.value, (ids) => this.learn(ids, target.provider));
  }
}

const BRACE = 0x7b;
const SPACES: ReadonlySet<number> = new Set([0x09, 0x0a, 0x0d, 0x20]);

/** One answer, streamed or whole. */
class AnswerIds implements AnswerWatch {
  readonly #known = new Set<string>();
  /** Undefined until the first byte that is no space. */
  #form: SseParser | Pieces | undefined;
  #named: ReadonlyMap<string, unknown> | undefined;

  /** @param asked what the vendor is asked: an id that it names is not given out by the answer */
  constructor(
    private readonly asked: Json | undefined,
    private readonly learn: (ids: readonly string[]) => void,
  ) {}

  chunk(bytes: Uint8Array): void {
    if (this.#form === undefined) {
      const first = bytes.find((byte) => !SPACES.has(byte));
      if (first === undefined) return;
      this.#form = first === BRACE ? new Pieces() : new SseParser({ raw: false });
    }
    if (this.#form instanceof Pieces) this.#form.push(bytes);
    else for (const { data } of this.#form.push(bytes)) this.#look(data);
  }

  end(): void {
    const form = this.#form;
    this.#form = undefined;
    if (form instanceof Pieces) this.#look(Buffer.from(form.joined()).toString());
    else if (form !== undefined) for (const { data } of form.end()) this.#look(data);
  }

  #look(json: string | undefined): void {
    if (json === undefined || !mayIssueVendorIds(json)) return;
    const issued = [...vendorIdsIssued(tryParse(json)).keys()].filter((id) => !this.#known.has(id));
    if (issued.length === 0) return;
    this.#named ??= vendorIdsNamed(this.asked);
    const learnt = issued.filter((id) => !this.#named?.has(id));
    for (const id of issued) this.#known.add(id);
    if (learnt.length > 0) this.learn(learnt);
  }
}

/** Refuses a request that names what a vendor keeps for another key; for one exchange whose body may name such ids. */
export class NamedIds implements Feature {
  readonly name = 'vendor-ids';
  #refusal: unknown;
  #isAmbiguous = false;

  constructor(
    private readonly owner: string,
    private readonly body: Buffer,
    private readonly foreign: ForeignIds,
  ) {}

  // The hops behind the first have the client's own request, and what tools have said.
  async prepare({ origin }: Conversation, { hop }: FeatureContext): Promise<void> {
    if (hop > 1) return;
    try {
      const ids = vendorIdsNamed(origin?.value);
      await checkVendorIds(ids, this.owner, this.foreign);
      this.#isAmbiguous =
        ids.size > 0 && this.owner !== '' && isAmbiguous(this.body, origin?.value);
    } catch (thrown) {
      this.#refusal = thrown;
    }
  }

  request(conversation: Conversation, { hop }: FeatureContext): Conversation {
    if (this.#refusal !== undefined) throw this.#refusal;
    // A vendor may read the other of two members with one name. The body is written again, with the one that was checked.
    return hop === 1 && this.#isAmbiguous ? { ...conversation } : conversation;
  }
}

const isAmbiguous = (body: Buffer, value: Json | undefined): boolean =>
  value !== undefined && hasRepeatedNames(body, value);
