/** Learns what a vendor keeps for a key from the answers that give out its ids. */

import type { Conversation } from '../../conversation/types.ts';
import {
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

/** For one exchange. */
export class IssuedIds implements Feature {
  readonly name = 'issued-ids';

  /** @param asks may an answer to this request give out ids? */
  constructor(
    private readonly learn: LearnIds,
    private readonly asks: () => boolean,
  ) {}

  mayApply(): boolean {
    return this.asks();
  }

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
