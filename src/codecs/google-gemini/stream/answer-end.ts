/** Collects what a Gemini answer says besides its content: how it ends, its sources, its usage. */

import type { FinishDetails, StreamEvent } from '../../../conversation/events.ts';
import { laterUsage, type Usage } from '../../../conversation/usage.ts';
import type { JsonObject } from '../../../lib/json/json.ts';
import {
  blockDetails,
  decodeFinish,
  finishDetails,
  finishFailure,
  finishReasonOf,
} from '../reply/finish-reason.ts';
import { decodeGrounding, searchesOf } from '../reply/grounding.ts';
import { decodeUsage } from '../reply/usage.ts';
import { field, object, text } from '../wire.ts';

export class AnswerEnd {
  /** The last count: each one is complete. */
  usage: Usage | undefined;
  /** The reason is not in Google's words. */
  isOdd = false;
  #reason: string | undefined;
  #message: string | undefined;
  #details: FinishDetails | undefined;
  #grounding: JsonObject | undefined;

  /** @param blank the chunk has no candidates: its prompt may have been blocked */
  chunk(chunk: JsonObject, blank: boolean): void {
    const usage = decodeUsage(field(chunk, 'usageMetadata'));
    if (usage !== undefined) this.usage = laterUsage(this.usage, usage);
    const blocked = blank ? blockDetails(chunk) : undefined;
    if (blocked === undefined) return;
    this.#reason ??= 'PROHIBITED_CONTENT';
    this.#details = blocked;
  }

  get isReached(): boolean {
    return this.#reason !== undefined;
  }

  /** To be read before the candidate's content: sources belong to the text of the same chunk. */
  sources(candidate: JsonObject): void {
    const metadata = object(field(candidate, 'groundingMetadata'));
    if (metadata !== undefined && Object.keys(metadata).length > 0) this.#grounding = metadata;
  }

  finish(candidate: JsonObject): void {
    const reason = finishReasonOf(candidate);
    if (reason === undefined) return;
    this.isOdd ||= reason !== field(candidate, 'finishReason');
    this.#reason = reason;
    this.#message = text(field(candidate, 'finishMessage'));
    this.#details = finishDetails(candidate);
  }

  /** The sources of the text that ends at `index`. @param pieces its text; undefined: it was not kept */
  citations(index: number, pieces: readonly string[] | undefined): readonly StreamEvent[] {
    if (this.#grounding === undefined) return [];
    const found = decodeGrounding(this.#grounding, pieces?.join(''));
    return found.map((citation) => ({ type: 'citation', index, citation }));
  }

  /** The usage with the searches that Google made; none if nothing was counted. */
  counts(): readonly StreamEvent[] {
    if (this.usage === undefined) return [];
    const searches = this.#grounding === undefined ? 0 : searchesOf(this.#grounding);
    const hosted = searches > 0 ? { hosted: { web_search_requests: searches } } : {};
    return [{ type: 'usage', usage: { ...this.usage, ...hosted } }];
  }

  /** The events that end the answer; none without a reason, since then the stream was cut. */
  events(calls: boolean): readonly StreamEvent[] {
    const reason = this.#reason;
    if (reason === undefined) return [];
    const error = finishFailure(reason, this.#message);
    if (error !== undefined) return [{ type: 'error', error }];
    const details = this.#details;
    const odd = this.isOdd ? ('finish_reason' as const) : undefined;
    return [{ type: 'finish', reason: decodeFinish(reason, calls), odd, details }, { type: 'end' }];
  }
}
