/** Digests a Gemini answer that is forwarded unchanged. */

import { laterUsage } from '../../../conversation/usage.ts';
import { ERROR_LINE, type SseFrame } from '../../../lib/bytes/sse.ts';
import { isObject, type Json, type JsonObject, tryParse } from '../../../lib/json/json.ts';
import type { Digest } from '../../codec.ts';
import { field, flag, list, number, object, objects, text } from '../wire.ts';
import { inBandError } from './errors.ts';
import {
  blockDetails,
  decodeFinish,
  finishDetails,
  finishFailure,
  finishReasonOf,
} from './finish-reason.ts';
import { searchesOf } from './grounding.ts';
import { decodeUsage } from './usage.ts';

/** What the chunks of an answer hold, taken together. */
class AnswerFacts {
  #semantic = false;
  #answered = false;
  #calls = false;
  #reason: string | undefined;
  #message: string | undefined;
  #explanation: string | undefined;
  #usage: Digest['usage'];
  #model: string | undefined;
  #searches = 0;
  #error: Digest['error'];
  #unsaid = false;
  /** The texts, as long as there is nothing else. */
  #texts: string[] | undefined = [];

  chunk(chunk: JsonObject, framed = true): void {
    if (this.#error === undefined) {
      this.#error = inBandError(chunk);
      this.#unsaid = this.#error !== undefined && !(framed && chunk.error);
    }
    const usage = decodeUsage(field(chunk, 'usageMetadata'));
    if (usage !== undefined) this.#usage = laterUsage(this.#usage, usage);
    this.#model = text(field(chunk, 'modelVersion')) ?? this.#model;
    const candidates = objects(chunk.candidates);
    if (candidates.length === 0 && blockDetails(chunk) !== undefined) {
      this.#reason ??= 'PROHIBITED_CONTENT';
    }
    for (const candidate of candidates) this.#candidate(candidate);
  }

  #candidate(candidate: JsonObject): void {
    if ((number(candidate.index) ?? 0) > 0) {
      this.#texts = undefined;
      return;
    }
    for (const part of objects(object(candidate.content)?.parts)) this.#part(part);
    const metadata = object(field(candidate, 'groundingMetadata'));
    if (metadata !== undefined && Object.keys(metadata).length > 0) {
      this.#texts = undefined;
      this.#searches = searchesOf(metadata);
    }
    const reason = finishReasonOf(candidate);
    if (reason === undefined) return;
    if (reason !== field(candidate, 'finishReason')) this.#texts = undefined;
    this.#reason = reason;
    this.#message = text(field(candidate, 'finishMessage'));
    this.#explanation = finishDetails(candidate)?.explanation;
  }

  #part(part: JsonObject): void {
    const value = text(part.text);
    if (value === undefined) {
      this.#texts = undefined;
      this.#semantic = true;
      this.#answered = true;
      this.#calls ||= field(part, 'functionCall') !== undefined;
      return;
    }
    const thought = flag(part.thought) === true;
    if (thought || field(part, 'thoughtSignature') !== undefined) this.#texts = undefined;
    if (value === '') return;
    this.#texts?.push(value);
    this.#semantic = true;
    this.#answered ||= !thought;
  }

  get digest(): Digest {
    const reason = this.#reason;
    const error =
      this.#error ?? (reason === undefined ? undefined : finishFailure(reason, this.#message));
    const complete = error === undefined && reason !== undefined;
    const texts = this.#texts?.join('');
    const hosted = this.#searches > 0 ? { hosted: { web_search_requests: this.#searches } } : {};
    return {
      complete,
      semantic: this.#semantic,
      answered: this.#answered,
      texts: complete && texts ? [texts] : undefined,
      usage: this.#usage && { ...this.#usage, ...hosted },
      counted: this.#usage && reason !== undefined,
      model: this.#model,
      finish: complete ? decodeFinish(reason!, this.#calls) : undefined,
      explanation: this.#explanation,
      error,
      unsaid: this.#unsaid || undefined,
    };
  }
}

/** Digests a whole reply: an answer, or the list of chunks of a stream without `alt=sse`. */
export function digestReply(body: Json): Digest {
  const facts = new AnswerFacts();
  const isList = list(body) !== undefined;
  for (const chunk of isList ? objects(body) : objects([body])) facts.chunk(chunk);
  const { digest } = facts;
  // One object was not cut, even without a reason.
  const isWhole = !isList && digest.semantic && digest.error === undefined;
  return isWhole && !digest.complete ? { ...digest, complete: true, finish: 'stop' } : digest;
}

/** Digests the first and last frames of a stream. */
export function digestStream(frames: readonly SseFrame[]): Digest {
  const facts = new AnswerFacts();
  for (const { data, event } of frames) {
    const parsed = data === undefined ? undefined : tryParse(data);
    const chunk = Array.isArray(parsed) ? parsed[0] : parsed;
    if (isObject(chunk)) facts.chunk(chunk, chunk === parsed && event !== ERROR_LINE);
  }
  const { texts: _, ...digest } = facts.digest;
  return digest;
}
