/** Estimates the tokens of answers whose vendor did not count them, from their bytes. */

import type { ProtocolName } from '../conversation/types.ts';

/** Bytes of a streamed answer for one token, framing included, before any answer of the target was seen whole. */
const STREAMED: Readonly<Partial<Record<ProtocolName, number>>> = {
  'openai-chat': 200,
  'openai-responses': 200,
  'anthropic-messages': 60,
};
const STREAMED_ELSEWHERE = 60;
/** The same for an answer that is not streamed. */
const WHOLE = 5;
/** Weight of the newest answer. */
const WEIGHT = 0.2;
/** Shorter answers are mostly framing. */
const MIN_TOKENS = 16;
const MIN_RATIO = 1;
const MAX_RATIO = 5000;
/** Of answers that are streamed, and of those that are not. */
const MAX_TARGETS = 1000;
/** Output that is reserved while nothing is known of a target, and the request sets no limit. */
const UNKNOWN_OUTPUT = 1000;
/** What an answer may have where the request sets no limit. */
const UNLIMITED_OUTPUT = 32_000;

/** Responses says a text again at the end of its part, of its item and of its output. */
const REPEATED: Readonly<Partial<Record<ProtocolName, number>>> = { 'openai-responses': 3 };
const TEXT_BYTES = 4.5;

/** What completed answers of one target have shown. */
interface Learned {
  readonly target: string;
  readonly stream: boolean;
  bytesPerToken: number;
  /** Mean of the output's tokens, and of their distance from it. */
  mean: number;
  spread: number;
}

export interface AnswerKind {
  /** `provider/model` */
  readonly target: string;
  readonly protocol: ProtocolName;
  readonly stream: boolean;
}

/** What is kept of a target over a restart. */
export type LearnedAnswers = Readonly<Learned>;

/** Learns from completed answers. Bounded: the target that was learned first is forgotten first. */
export class OutputEstimate {
  readonly #streamed = new Map<string, Learned>();
  readonly #whole = new Map<string, Learned>();
  /** Those that have learned since they were last taken. */
  readonly #changed = new Set<Learned>();

  /** A completed answer: `tokens` as the vendor counted them, reasoning included. */
  learn(kind: AnswerKind, received: number, tokens: number): void {
    const bytes = received - repeatedBytes(kind) * tokens;
    if (tokens < MIN_TOKENS || bytes < tokens * MIN_RATIO || bytes > tokens * MAX_RATIO) return;
    const ratio = bytes / tokens;
    const known = this.#known(kind);
    if (known !== undefined) {
      known.bytesPerToken += WEIGHT * (ratio - known.bytesPerToken);
      known.spread += WEIGHT * (Math.abs(tokens - known.mean) - known.spread);
      known.mean += WEIGHT * (tokens - known.mean);
      this.#changed.add(known);
      return;
    }
    const { target, stream } = kind;
    const learned = { target, stream, bytesPerToken: ratio, mean: tokens, spread: tokens / 2 };
    this.#add(learned);
    this.#changed.add(learned);
  }

  #allOf({ stream }: Pick<AnswerKind, 'stream'>): Map<string, Learned> {
    return stream ? this.#streamed : this.#whole;
  }

  #known(kind: Pick<AnswerKind, 'target' | 'stream'>): Learned | undefined {
    return this.#allOf(kind).get(kind.target);
  }

  #add(learned: Learned): void {
    const all = this.#allOf(learned);
    if (all.size >= MAX_TARGETS) {
      const [oldest, forgotten] = all.entries().next().value!;
      all.delete(oldest);
      this.#changed.delete(forgotten);
    }
    all.set(learned.target, learned);
  }

  /** Takes over what an earlier process learned. What this one has learned itself stays. */
  restore(all: readonly LearnedAnswers[]): void {
    for (const learned of all) {
      const { bytesPerToken, mean, spread } = learned;
      if (this.#known(learned) !== undefined) continue;
      if (this.#allOf(learned).size >= MAX_TARGETS) continue;
      if (bytesPerToken < MIN_RATIO || bytesPerToken > MAX_RATIO) continue;
      if (mean < MIN_TOKENS || spread < 0) continue;
      this.#add({ ...learned });
    }
  }

  /** Some of what has changed since it was last taken; empty: nothing has. */
  takeChanged(most: number): readonly LearnedAnswers[] {
    const taken: LearnedAnswers[] = [];
    for (const learned of this.#changed) {
      if (taken.length >= most) break;
      taken.push({ ...learned });
      this.#changed.delete(learned);
    }
    return taken;
  }

  /** Tokens of this many bytes of an answer. `complete`: it came to its end. */
  tokens(kind: AnswerKind, bytes: number, complete: boolean): number {
    const known = this.#known(kind)?.bytesPerToken;
    const usual = kind.stream ? (STREAMED[kind.protocol] ?? STREAMED_ELSEWHERE) : WHOLE;
    const repeated = complete ? repeatedBytes(kind) : 0;
    return Math.ceil(bytes / ((known ?? usual) + repeated));
  }

  /** The tokens that a request allows all of its answers to have together. */
  allowed(most: number | undefined, choices = 1): number {
    return (most ?? UNLIMITED_OUTPUT) * Math.max(1, choices);
  }

  /** Tokens that nearly every answer of this target stays below; what is reserved before it comes. */
  reserved(kind: AnswerKind, most: number | undefined, choices = 1): number {
    const known = this.#known(kind);
    const likely =
      known === undefined ? UNKNOWN_OUTPUT : Math.ceil(known.mean + 2.5 * known.spread);
    return (most === undefined ? likely : Math.min(most, likely)) * Math.max(1, choices);
  }
}

/** Bytes that the end of an answer has for each token of it. */
const repeatedBytes = ({ protocol, stream }: AnswerKind): number =>
  stream ? (REPEATED[protocol] ?? 0) * TEXT_BYTES : 0;
