/** The event lane: frames → events → interceptors → frames, for another protocol or an armed feature. */

import type { Digest, StreamDecoder } from '../../codecs/codec.ts';
import { asGatewayError, type GatewayError } from '../../conversation/errors.ts';
import type {
  DeltaEvent,
  ErrorEvent,
  FinishReason,
  StreamEvent,
} from '../../conversation/events.ts';
import type { TextTemplate } from '../../conversation/fast-text.ts';
import type { Usage } from '../../conversation/usage.ts';
import type { Continuation, Interceptor } from '../../features/feature.ts';
import { type FrameReader, type SseFrame, SseParser } from '../../lib/bytes/sse.ts';
import { tooMuch } from '../../upstream/target-error.ts';
import { maskedError } from '../../upstream/vendor-error.ts';
import { AnswerProgress } from './answer-progress.ts';
import { OriginalFrames, write } from './fast/original-frames.ts';
import { TemplateMatcher } from './fast/template-matcher.ts';
import type { ClientSide } from './pipeline.ts';
import {
  type FinalAnswer,
  type Output,
  OutputBuilder,
  type StreamPipeline,
  type ToldFrame,
} from './pipeline.ts';
import { type Bounds, frameLimit, isWord, Quiet } from './quiet-bytes.ts';

export interface TranslateOptions {
  readonly decoder: StreamDecoder;
  readonly interceptors: readonly Interceptor[];
  readonly client: ClientSide;
  /** Both ends speak the same protocol: a frame whose events nobody touched goes out as its bytes. */
  readonly keepsBytes: boolean;
  /**
   * The client's stream is open already: nothing may reach the encoder before something was said,
   * since a try that fails until then is repeated as if it had never been.
   */
  readonly continues: boolean;
  /** Left out: no limits. */
  readonly bounds?: Bounds;
}

// A stream that has come in so many chunks is a paced one.
const PACED_STEPS = 4;

export class Translator implements StreamPipeline, FrameReader {
  /** What comes is looked for in this first; what it took stands there until it is told. */
  #plain: TemplateMatcher | undefined;
  failure: GatewayError | undefined;
  error: GatewayError | undefined;
  readonly client: ClientSide;
  readonly #decoder: StreamDecoder;
  readonly #interceptors: readonly Interceptor[];
  readonly #keepsBytes: boolean;
  readonly #parser: SseParser;
  readonly #watch = new AnswerProgress();
  #originals: OriginalFrames | undefined;
  /** What this chunk gives. */
  #out = new OutputBuilder();
  /** What the run of frames says that comes next. */
  #run: DeltaEvent | undefined;
  /** Up to here the frames of this chunk have to come one by one. */
  #refused = 0;
  /** The last one, for as long as the same is true. */
  #known: TemplateMatcher | undefined;
  #index = 0;
  /** Chunks since the answer began, counted as far as matters. */
  #steps = 0;
  #waiting: StreamEvent[] | undefined;
  #usage: Usage | undefined;
  #finish: FinishReason | undefined;
  #upstreamEnded = false;
  #next: Continuation | undefined;
  readonly #bounds: Bounds | undefined;
  /** Made when something comes that says nothing. */
  #quiet: Quiet | undefined;
  /** This chunk says something. */
  #said = false;
  /** Characters of all pieces so far: encoders and listeners may keep them. */
  #chars = 0;
  readonly #told: ToldFrame[] = [];

  constructor(options: TranslateOptions) {
    this.client = options.client;
    this.#decoder = options.decoder;
    this.#interceptors = options.interceptors;
    this.#keepsBytes = options.keepsBytes;
    const { bounds } = options;
    this.#bounds = bounds;
    const limit = bounds && frameLimit(bounds);
    this.#parser = new SseParser(options.keepsBytes ? { limit } : { raw: false, limit });
    if (options.keepsBytes) this.#originals = new OriginalFrames(this.#keeping(options.client));
    if (options.continues) this.#waiting = [];
  }

  #keeping({ fold, tells }: ClientSide): ((frame: SseFrame) => void) | undefined {
    if (fold === undefined || tells === undefined) return undefined;
    return (frame) => {
      if (tells(frame)) this.#told.push({ event: frame.event, data: frame.data });
    };
  }

  push(chunk: Uint8Array): Output {
    const plain = this.#plain?.push(chunk);
    if (plain !== undefined) return plain;
    if (this.failure === undefined) this.#settle();
    if (this.failure !== undefined) return '';
    this.#out = new OutputBuilder();
    this.#refused = 0;
    this.#said = false;
    try {
      this.#parser.read(chunk, this);
      if (this.#said) this.#quiet?.over();
      else this.#hush();
      this.#plain = this.#steady();
    } catch (thrown) {
      this.failure = asGatewayError(thrown);
    }
    return this.#out.all();
  }

  /** Nothing was said by this chunk. @throws GatewayError when that is so for too long */
  #hush(): void {
    const error = this.#noiseless()?.lasts();
    if (error !== undefined) throw error;
  }

  /** A frame that tells nothing. @throws GatewayError when it is one too many */
  #idle({ data, from, to }: SseFrame): void {
    const error = this.#noiseless()?.holds(Math.max(to - from, data?.length ?? 0));
    if (error !== undefined) throw error;
  }

  #noiseless(): Quiet | undefined {
    if (this.#bounds !== undefined) this.#quiet ??= new Quiet(this.#bounds);
    return this.#quiet;
  }

  /** How plain text can be known by its bytes from here on; undefined: it cannot. */
  #steady(): TemplateMatcher | undefined {
    if (this.#parser.pending !== undefined || !this.#watch.answered || this.#watch.empty) {
      return undefined;
    }
    // A burst is over before it would be worth it.
    if (this.#steps < PACED_STEPS && ++this.#steps < PACED_STEPS) return undefined;
    const { encoder } = this.client;
    const from = this.#decoder.fast?.textTemplate?.();
    if (from === undefined || encoder.fast === undefined) return undefined;
    let to: TextTemplate | undefined;
    if (this.#originals === undefined) {
      to = encoder.fast.textTemplate?.();
      if (to === undefined) return undefined;
    } else if (!this.#originals.idle) return undefined;
    let minded = '';
    for (const interceptor of this.#interceptors) {
      const minds = interceptor.fast?.watchedCharacters?.();
      if (minds === undefined) return undefined;
      minded += minds;
    }
    const known = this.#known;
    this.#index = from.index;
    if (known?.from === from && known.to === to && known.minded === minded) return known;
    this.#known = new TemplateMatcher(from, to, minded);
    return this.#known;
  }

  /** Tells what plain text has gone out. */
  #settle(): void {
    const text = this.#plain?.taken() ?? '';
    this.#plain = undefined;
    if (text === '') return;
    const event: DeltaEvent = { type: 'delta', index: this.#index, text };
    this.#quiet?.over();
    try {
      this.#through([event]);
      this.#pass(event);
    } catch (thrown) {
      this.failure ??= asGatewayError(thrown);
    }
  }

  frame(frame: SseFrame): void {
    const run = this.#run;
    this.#run = undefined;
    this.#tell(frame, run === undefined ? this.#decoder.push(frame) : [run], this.#out);
  }

  /** Frames of nothing but text that nobody will touch: seen as one piece of it, and out as their bytes. */
  run(text: string, at: number): number {
    if (this.#originals?.idle !== true || at < this.#refused) return at;
    if (!this.#watch.answered || this.#watch.empty) return at;
    const run = this.#decoder.fast?.textRun?.(text, at);
    if (run === undefined) return at;
    const { event, to } = run;
    for (const interceptor of this.#interceptors) {
      if (interceptor.fast?.passesText?.(event) === true) continue;
      this.#refused = to;
      return at;
    }
    this.#run = event;
    return to;
  }

  /** Events that come from elsewhere than frames: a whole reply, taken apart. */
  feed(events: readonly StreamEvent[]): Output {
    this.#settle();
    const out = new OutputBuilder();
    this.#write(this.#through(events), out);
    return out.all();
  }

  /** Events for the client from between two hops. */
  inject(events: readonly StreamEvent[]): Output {
    this.#settle();
    let text = '';
    for (const event of events) text += this.#encode(event);
    return text;
  }

  end(): Output {
    this.#settle();
    if (this.failure !== undefined) return '';
    const unframed = this.#parser.pending;
    const frames = this.#parser.end();
    const out = new OutputBuilder();
    for (const frame of frames) this.#tell(frame, this.#decoder.push(frame), out);
    if (this.#keepsBytes && frames.length === 0 && unframed !== undefined) out.bytes(unframed);
    const last = this.#decoder.end();
    this.#originals?.push(undefined, last, out);
    this.#write(this.#through(last), out);
    for (let at = 0; at < this.#interceptors.length; at++) {
      const held = this.#interceptors[at]!.end();
      this.#write(this.#through(held, at + 1), out);
    }
    if (this.#upstreamEnded) {
      for (const interceptor of this.#interceptors) this.#next ??= interceptor.continuation?.();
      if (!this.#watch.empty) out.text(this.#release());
    }
    return out.all();
  }

  get next(): Continuation | undefined {
    return this.#next;
  }

  /** What a frame said, through the interceptors and out. */
  #tell(frame: SseFrame, events: readonly StreamEvent[], out: OutputBuilder): void {
    if (events.length === 0) this.#idle(frame);
    else if (!this.#said) this.#said = events.some(isWord);
    const told = this.#through(events);
    const idle = this.#originals?.idle === true && !this.#watch.empty;
    if (idle && told === events && events.length === 1 && events[0]!.type === 'delta') {
      // Most of every stream: one piece of text that nobody touched.
      this.#pass(events[0]);
      write(frame, out);
      return;
    }
    this.#originals?.push(frame, events, out);
    this.#write(told, out);
  }

  /** Does for an event that leaves as bytes what {@link #encode} does for one that leaves as text. */
  #pass(event: DeltaEvent): void {
    const { encoder, fold } = this.client;
    this.#count(event);
    this.#watch.observe(event);
    fold?.push(event);
    if (encoder.fast === undefined) encoder.event(event);
    else encoder.fast.skipText(event);
  }

  /** @throws GatewayError when all pieces together are too much */
  #count({ text }: DeltaEvent): void {
    this.#chars += text.length;
    const bounds = this.#bounds;
    if (bounds === undefined || this.#chars <= bounds.limits.bytes) return;
    throw tooMuch(bounds.provider, 'an answer', bounds.limits.bytes, 'answer_bytes');
  }

  /** Events through interceptor `from` and those behind it; the same list when nobody touched any. */
  #through(events: readonly StreamEvent[], from = 0): readonly StreamEvent[] {
    if (from === 0 && events.at(-1)?.type === 'end') this.#upstreamEnded = true;
    let current = events;
    for (let at = from; at < this.#interceptors.length && current.length > 0; at++) {
      const interceptor = this.#interceptors[at]!;
      let next: StreamEvent[] | undefined;
      for (let i = 0; i < current.length; i++) {
        const event = current[i]!;
        const out = interceptor.event(event);
        if (out === event && next === undefined) continue;
        next ??= current.slice(0, i);
        if (Array.isArray(out)) next.push(...(out as readonly StreamEvent[]));
        else next.push(out as StreamEvent);
      }
      current = next ?? current;
    }
    return current;
  }

  #write(events: readonly StreamEvent[], out: OutputBuilder): void {
    for (const event of events) {
      const text = this.#encode(event);
      if (this.#watch.empty) continue;
      if (this.#originals === undefined) out.text(text);
      else if (!this.#originals.take(event, text, out)) this.#originals = undefined;
    }
  }

  #encode(said: StreamEvent): string {
    const event = said.type === 'error' ? this.#safe(said) : said;
    this.#watch.observe(event);
    if (event.type === 'delta') this.#count(event);
    if (event.type === 'start') this.#usage = event.usage ?? this.#usage;
    else if (event.type === 'usage') this.#usage = event.usage;
    else if (event.type === 'finish') this.#finish = event.reason;
    else if (event.type === 'error') this.error = event.error;
    // An ending before any answer would pass for success: it is not told.
    if (this.#watch.empty) return '';
    if (this.#waiting === undefined) return this.#say(event);
    this.#waiting.push(event);
    return this.#watch.semantic ? this.#release() : '';
  }

  #safe(event: ErrorEvent): StreamEvent {
    const error = maskedError(event.error, this.#bounds?.secrets ?? []);
    return error === event.error ? event : { ...event, error };
  }

  #release(): string {
    const waiting = this.#waiting ?? [];
    this.#waiting = undefined;
    let text = '';
    for (const event of waiting) text += this.#say(event);
    return text;
  }

  #say(event: StreamEvent): string {
    this.client.fold?.push(event);
    return this.client.encoder.event(event);
  }

  get semantic(): boolean {
    return this.#watch.semantic;
  }

  get ended(): boolean {
    return this.#upstreamEnded;
  }

  // Frames leave whole on this lane.
  readonly between = true;

  get digest(): Digest {
    return {
      complete: this.#upstreamEnded,
      semantic: this.semantic,
      answered: this.#watch.answered,
      usage: this.#usage,
      finish: this.#finish,
      error: this.error,
    };
  }

  get said(): FinalAnswer | undefined {
    this.#settle();
    const { fold, context } = this.client;
    if (fold === undefined) return undefined;
    return { kind: 'reply', reply: fold.reply, client: context, frames: this.#told };
  }

  ping(): string {
    return this.client.encoder.ping();
  }

  fail(error: GatewayError): string {
    this.#settle();
    return this.client.encoder.fail(error);
  }
}
