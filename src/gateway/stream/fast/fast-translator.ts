/** A fast path in front of a translator: plain text is recognised by its bytes and sent on without being decoded. */

import type { StreamDecoder } from '../../../codecs/codec.ts';
import type { GatewayError } from '../../../conversation/errors.ts';
import type { StreamEvent } from '../../../conversation/events.ts';
import { type PlainRun, plainRun, type TextRun } from '../../../conversation/fast-text.ts';
import type { Interceptor } from '../../../features/feature.ts';
import type { FrameReader, SseFrame } from '../../../lib/bytes/sse.ts';
import type { FinalAnswer, Output, StreamPipeline } from '../pipeline.ts';
import { PipelineDecorator } from '../pipeline-decorator.ts';
import type { Translator, TranslatorOptions } from '../translator.ts';
import { TemplateMatcher } from './template-matcher.ts';

// A burst is over before it would be worth to look for the form of its frames.
const PACED_CHUNKS = 4;

/** The translator, with the fast path where the decoder offers one. Both give the same bytes. */
export const withFastPath = (translator: Translator, options: TranslatorOptions): StreamPipeline =>
  options.decoder.fast === undefined ? translator : new FastTranslator(translator, options);

/**
 * Two shortcuts, both for text that no interceptor touches. A chunk that is one frame of a known form is
 * compared and sent on; the translator gets the text later, joined. And the frames of one chunk are read as
 * one piece of text.
 */
class FastTranslator extends PipelineDecorator<Translator> implements FrameReader {
  // The translator's, copied: a chunk that matches touches this object and the matcher only.
  failure: GatewayError | undefined;
  error: GatewayError | undefined;
  #matcher: TemplateMatcher | undefined;
  /** The block of the text that the matcher has taken. */
  #index = 0;
  /** The matcher before, which is used again where nothing has changed. */
  #lastMatcher: TemplateMatcher | undefined;
  /** Chunks since the answer began, counted up to {@link PACED_CHUNKS}. */
  #chunks = 0;
  readonly #decoder: StreamDecoder;
  readonly #interceptors: readonly Interceptor[];
  /** The text of the frames that come next. */
  #run: TextRun | PlainRun | undefined;
  /** Up to here the frames of this chunk have to come one by one. */
  #refused = 0;

  constructor(translator: Translator, { decoder, interceptors }: TranslatorOptions) {
    super(translator);
    this.#decoder = decoder;
    this.#interceptors = interceptors;
  }

  push(chunk: Uint8Array): Output {
    const matched = this.#matcher?.push(chunk);
    if (matched !== undefined) return matched;
    this.#settle();
    this.#refused = 0;
    const out = this.inner.push(chunk, this);
    this.#copyErrors();
    this.#matcher = this.failure === undefined ? this.#findMatcher() : undefined;
    return out;
  }

  /** Gives the translator the text that has gone out. */
  #settle(): void {
    const text = this.#matcher?.taken() ?? '';
    this.#matcher = undefined;
    if (text === '') return;
    this.inner.skipText({ type: 'delta', index: this.#index, text });
    this.#copyErrors();
  }

  #copyErrors(): void {
    this.failure = this.inner.failure;
    this.error = this.inner.error;
  }

  /** How the next frames of text can be known by their bytes; undefined: they cannot. */
  #findMatcher(): TemplateMatcher | undefined {
    const { nextText, atFrameEnd, client } = this.inner;
    if (!atFrameEnd || nextText === undefined) return undefined;
    if (this.#chunks < PACED_CHUNKS && ++this.#chunks < PACED_CHUNKS) return undefined;
    const from = this.#decoder.fast?.textTemplate?.();
    const { fast } = client.encoder;
    if (from === undefined || fast === undefined) return undefined;
    const to = nextText === 'encoded' ? fast.textTemplate?.() : undefined;
    if (nextText === 'encoded' && to === undefined) return undefined;
    const watched = this.#watchedCharacters();
    if (watched === undefined) return undefined;
    this.#index = from.index;
    const last = this.#lastMatcher;
    if (last?.from === from && last.to === to && last.watched === watched) return last;
    this.#lastMatcher = new TemplateMatcher(from, to, watched);
    return this.#lastMatcher;
  }

  /** Those of all interceptors; undefined: all characters matter to one of them. */
  #watchedCharacters(): string | undefined {
    let all = '';
    for (const interceptor of this.#interceptors) {
      const watched = interceptor.fast?.watchedCharacters?.();
      if (watched === undefined) return undefined;
      all += watched;
    }
    return all;
  }

  /** Called by the parser: where a run of frames ends that are nothing but text which no interceptor touches. */
  run(frames: string, at: number): number {
    const next = this.inner.nextText;
    if (at < this.#refused || next === undefined) return at;
    const { fast } = this.#decoder;
    const run = next === 'bytes' ? fast?.textRun?.(frames, at) : this.#plainRun(frames, at);
    if (run === undefined) return at;
    for (const interceptor of this.#interceptors) {
      if (interceptor.fast?.passesText?.(run.event) === true) continue;
      this.#refused = run.to;
      return at;
    }
    this.#run = run;
    return run.to;
  }

  #plainRun(frames: string, at: number): PlainRun | undefined {
    const template = this.#decoder.fast?.textTemplate?.();
    return template && plainRun(frames, at, template);
  }

  frame(frame: SseFrame): void {
    const run = this.#run;
    this.#run = undefined;
    if (run === undefined) this.inner.frame(frame);
    else if (this.inner.nextText === 'encoded' && 'pieces' in run)
      this.inner.forwardRun(frame, run);
    else this.inner.forward(frame, [run.event]);
  }

  end(): Output {
    this.#settle();
    const out = this.inner.end();
    this.#copyErrors();
    return out;
  }

  override inject(events: readonly StreamEvent[]): Output {
    this.#settle();
    const out = this.inner.inject(events);
    this.#copyErrors();
    return out;
  }

  override fail(error: GatewayError): string {
    this.#settle();
    return this.inner.fail(error);
  }

  override get finalAnswer(): FinalAnswer | undefined {
    this.#settle();
    return this.inner.finalAnswer;
  }
}
