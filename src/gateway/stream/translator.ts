/** Translates a stream: frames → events → interceptors → frames, for another protocol or an armed feature. */

import type { Digest, StreamDecoder } from '../../codecs/codec.ts';
import { asGatewayError, type GatewayError } from '../../conversation/errors.ts';
import { type DeltaEvent, isEmptyFrame, type StreamEvent } from '../../conversation/events.ts';
import type { PlainRun } from '../../conversation/fast-text.ts';
import { laterUsage, type Usage } from '../../conversation/usage.ts';
import type { Continuation, Interceptor } from '../../features/feature.ts';
import { type FrameReader, type SseFrame, SseParser } from '../../lib/bytes/sse.ts';
import { tooMuch } from '../../upstream/target-error.ts';
import { maskedError } from '../../upstream/vendor-error.ts';
import { AnswerProgress } from './answer-progress.ts';
import { maskedFrame } from './mask-errors.ts';
import { OriginalFrames } from './original-frames.ts';
import {
  type ClientSide,
  type FinalAnswer,
  type FrameContent,
  type Output,
  OutputBuilder,
  type StreamPipeline,
} from './pipeline.ts';
import { BoundedFrame, type Bounds, QuietLimit } from './quiet-bytes.ts';

const NO_SECRETS: readonly string[] = [];
const BLANK_LINE = Buffer.from('\n\n');

export interface TranslatorOptions {
  readonly decoder: StreamDecoder;
  readonly interceptors: readonly Interceptor[];
  readonly client: ClientSide;
  /** Both ends speak the same protocol: a frame whose events no interceptor touched leaves as its bytes. */
  readonly preserveBytes: boolean;
  /**
   * The client's stream is open already: the encoder gets nothing before the answer has begun, since
   * an attempt that fails until then is repeated and must have left no trace.
   */
  readonly continues: boolean;
  /** Left out: no limits. */
  readonly bounds?: Bounds;
}

export class Translator extends AnswerProgress implements StreamPipeline, FrameReader {
  failure: GatewayError | undefined;
  endGiven = false;
  terminalBytes = 0;
  continuation: Continuation | undefined;
  readonly client: ClientSide;
  readonly #decoder: StreamDecoder;
  readonly #interceptors: readonly Interceptor[];
  readonly #parser: SseParser;
  readonly #preserveBytes: boolean;
  /** Undefined: every event is encoded. */
  #originals: OriginalFrames | undefined;
  /** Events that wait for the answer to begin; undefined: none have to wait. */
  #waiting: StreamEvent[] | undefined;
  /** What the current call gives the client. */
  #out = new OutputBuilder();
  readonly #storedFrames: FrameContent[] = [];
  readonly #bounds: Bounds | undefined;
  readonly #quiet: QuietLimit | undefined;
  /** Characters of all deltas so far. */
  #chars = 0;
  #reported: Usage | undefined;

  constructor({ decoder, interceptors, client, bounds, ...options }: TranslatorOptions) {
    super();
    this.client = client;
    this.#decoder = decoder;
    this.#interceptors = interceptors;
    this.#preserveBytes = options.preserveBytes;
    this.#bounds = bounds;
    this.#quiet = bounds && new QuietLimit(bounds);
    const limit = bounds && new BoundedFrame(bounds);
    this.#parser = new SseParser(options.preserveBytes ? { limit } : { raw: false, limit });
    if (options.preserveBytes) this.#originals = new OriginalFrames(this.#frameStore());
    if (options.continues) this.#waiting = [];
  }

  #frameStore(): ((frame: SseFrame) => void) | undefined {
    const { fold, storesFrame } = this.client;
    if (fold === undefined || storesFrame === undefined) return undefined;
    return (frame) => {
      if (storesFrame(frame)) this.#storedFrames.push({ event: frame.event, data: frame.data });
    };
  }

  /** @param reader gets the frames of the chunk in place of this object */
  push(chunk: Uint8Array, reader: FrameReader = this): Output {
    if (this.failure !== undefined) return '';
    this.#out = new OutputBuilder();
    try {
      this.#parser.read(chunk, reader);
      this.#quiet?.chunk();
    } catch (thrown) {
      this.failure = asGatewayError(thrown);
    }
    return this.#out.all();
  }

  frame(frame: SseFrame): void {
    const events = this.#decoder.push(frame);
    if (events.some(isFinish)) this.terminalBytes = frame.data?.length ?? 0;
    this.forward(frame, events);
  }

  /** Keeps the vendor's own usage: the usage that the client gets may include earlier hops. */
  #note(events: readonly StreamEvent[]): void {
    if (this.#interceptors.length === 0) return;
    for (const event of events) {
      if (event.type === 'usage') this.#reported = laterUsage(this.#reported, event.usage);
      else if (event.type === 'start') this.#reported = event.usage ?? this.#reported;
    }
  }

  /** Sends the events of a frame through the interceptors and to the client. */
  forward(given: SseFrame, events: readonly StreamEvent[]): void {
    this.#note(events);
    const frame = events.some(isError) ? maskedFrame(given, this.#secrets) : given;
    this.#quiet?.frame(frame, events);
    if (isEmptyFrame(events[0])) {
      // Left out, without an effect on the frames around it; `SoundAnswer` notes it.
      if (this.#preserveBytes) this.#intercept(events);
      return;
    }
    const passed = this.#intercept(events);
    const originals = this.#originals;
    const held = this.#decoder.holds === true;
    const unsaid = events.some(isUnsaid);
    if (passed === events && originals?.idle === true && !this.empty && !held && !unsaid) {
      for (const event of events) this.#skip(event);
      if (!this.empty) originals.write(frame, this.#out);
      this.#afterEnd(events);
      return;
    }
    // An error that the vendor's frame does not tell is encoded in its place.
    if (unsaid) originals?.push(undefined, []);
    else originals?.push(frame, events, held);
    this.#write(passed);
    if (!this.empty) this.#originals?.settle(this.#out);
    this.#afterEnd(events);
  }

  /** @throws what an interceptor or encoder throws; it is the `failure` from then on */
  end(): Output {
    if (this.failure !== undefined) return '';
    this.#out = new OutputBuilder();
    try {
      this.#endAll();
    } catch (thrown) {
      this.failure = asGatewayError(thrown);
      throw thrown;
    }
    return this.#out.all();
  }

  #endAll(): void {
    const unframed = this.#parser.pending;
    const frames = this.#parser.end();
    for (const frame of frames) this.frame(this.#preserveBytes ? withBlankLine(frame) : frame);
    if (this.#preserveBytes && frames.length === 0 && unframed !== undefined) {
      this.#out.bytes(unframed);
    }
    const last = this.#decoder.end();
    this.#note(last);
    this.#originals?.push(undefined, last);
    this.#write(this.#intercept(last));
    this.#afterEnd(last);
    this.#interceptors.forEach((interceptor, i) => {
      this.#write(this.#intercept(interceptor.end(), i + 1));
    });
    if (this.ended) {
      for (const interceptor of this.#interceptors)
        this.continuation ??= interceptor.continuation?.();
      if (!this.empty) this.#out.text(this.#release());
    }
  }

  /** Translates events that come from no frame: a whole reply, taken apart. */
  feed(events: readonly StreamEvent[]): Output {
    this.#out = new OutputBuilder();
    this.#note(events);
    this.#write(this.#intercept(events));
    this.#afterEnd(events);
    return this.#out.all();
  }

  inject(events: readonly StreamEvent[]): Output {
    let text = '';
    for (const event of events) text += this.#encode(this.#masked(event));
    return text;
  }

  /** Events behind interceptor `from` and those that follow it; the same list if none of them changed anything. */
  #intercept(events: readonly StreamEvent[], from = 0): readonly StreamEvent[] {
    let current = events;
    for (let at = from; at < this.#interceptors.length && current.length > 0; at++) {
      const interceptor = this.#interceptors[at]!;
      let changed: StreamEvent[] | undefined;
      for (let i = 0; i < current.length; i++) {
        const event = current[i]!;
        const out = interceptor.event(event);
        if (out === event && changed === undefined) continue;
        changed ??= current.slice(0, i);
        if (Array.isArray(out)) changed.push(...(out as readonly StreamEvent[]));
        else changed.push(out as StreamEvent);
      }
      current = changed ?? current;
    }
    return current;
  }

  /**
   * The vendor's end counts once everything before it has passed: an interceptor may refuse the finish, and then the
   * client has no end. An interceptor that keeps the end for itself does not hide it.
   */
  #afterEnd(events: readonly StreamEvent[]): void {
    if (events.at(-1)?.type === 'end') this.ended = true;
  }

  #write(events: readonly StreamEvent[]): void {
    for (const event of events) {
      if (this.#originals?.endsAt(event)) this.client.encoder.leave?.();
      const text = this.#encode(this.#masked(event));
      if (this.empty) continue;
      if (this.#originals === undefined) this.#out.text(text);
      else if (!this.#originals.take(event, text, this.#out)) this.#originals = undefined;
    }
  }

  #encode(event: StreamEvent): string {
    this.#record(event);
    // A natural end without an answer would look like success to the client.
    if (this.empty) return '';
    if (this.#waiting === undefined) return this.#encodeNow(event);
    this.#waiting.push(event);
    return this.semantic ? this.#release() : '';
  }

  /** As {@link #encode}, for an event that leaves as the vendor's bytes. */
  #skip(event: StreamEvent): void {
    const { encoder, fold } = this.client;
    if (event.type !== 'delta' || encoder.fast === undefined) {
      this.#encode(this.#masked(event));
      return;
    }
    this.#record(event);
    fold?.push(event);
    encoder.fast.skipText(event);
  }

  /** @throws GatewayError if all deltas together are too large: encoders and interceptors may keep them */
  #record(event: StreamEvent): void {
    this.observe(event);
    if (event.type !== 'delta') return;
    this.#chars += event.text.length;
    const bounds = this.#bounds;
    if (bounds === undefined || this.#chars <= bounds.limits.bytes) return;
    throw tooMuch(bounds.provider, 'an answer', bounds.limits.bytes, 'answer_bytes');
  }

  get #secrets(): readonly string[] {
    return this.#bounds?.secrets ?? NO_SECRETS;
  }

  #masked(event: StreamEvent): StreamEvent {
    if (event.type !== 'error') return event;
    const error = maskedError(event.error, this.#secrets);
    return error === event.error ? event : { ...event, error };
  }

  #release(): string {
    const waiting = this.#waiting ?? [];
    this.#waiting = undefined;
    let text = '';
    for (const event of waiting) text += this.#encodeNow(event);
    return text;
  }

  #encodeNow(event: StreamEvent): string {
    this.client.fold?.push(event);
    if (event.type === 'end') this.endGiven = true;
    return this.client.encoder.event(event);
  }

  get isWhole(): boolean {
    return this.endGiven && this.error === undefined;
  }

  get isFinished(): boolean {
    return this.ended || this.#decoder.isFinished === true;
  }

  // Frames leave whole.
  get allowsKeepAlive(): boolean {
    return true;
  }

  get digest(): Digest {
    const { ended, semantic, answered, usage, start, finish, explanation, error } = this;
    const reported = this.#reported;
    return {
      complete: ended,
      semantic,
      answered,
      usage,
      reported,
      model: start?.model,
      finish,
      explanation,
      error,
    };
  }

  get finalAnswer(): FinalAnswer | undefined {
    const { fold, context } = this.client;
    if (fold === undefined) return undefined;
    return { kind: 'reply', reply: fold.reply, client: context, frames: this.#storedFrames };
  }

  ping(): string {
    return this.client.encoder.ping();
  }

  fail(error: GatewayError): string {
    const last = this.#originals?.last;
    if (last !== undefined) this.client.encoder.follow?.([last]);
    return this.client.encoder.fail(error);
  }

  // For the fast path.

  /** How the next piece of text leaves if no interceptor touches it; undefined: that is not certain. */
  get nextText(): 'bytes' | 'encoded' | undefined {
    if (!this.answered || this.empty || this.#waiting !== undefined) return undefined;
    if (this.#originals === undefined) return 'encoded';
    return this.#originals.idle ? 'bytes' : undefined;
  }

  /** Encodes text that no interceptor touches, piece by piece, as it came. */
  forwardRun(frame: SseFrame, { event, pieces }: PlainRun): void {
    const events = [event];
    this.#quiet?.frame(frame, events);
    this.#intercept(events);
    this.#record(event);
    const { encoder, fold } = this.client;
    fold?.push(event);
    const template = encoder.fast?.textTemplate?.();
    if (template === undefined) {
      for (const text of pieces) this.#out.text(encoder.event({ ...event, text }));
      return;
    }
    const { head, foot } = template;
    encoder.fast?.skipText(event);
    this.#out.text(head + pieces.join(foot + head) + foot);
  }

  /** No frame is half read. */
  get atFrameEnd(): boolean {
    return this.#parser.pending === undefined;
  }

  /** Takes note of text that has gone out already. An error becomes the `failure`. */
  skipText(event: DeltaEvent): void {
    this.#quiet?.contentCame();
    try {
      this.#intercept([event]);
      this.#skip(event);
    } catch (thrown) {
      this.failure ??= asGatewayError(thrown);
    }
  }
}

/** Clients lose a last frame without one. */
function withBlankLine(frame: SseFrame): SseFrame {
  const bytes = Buffer.concat([frame.bytes.subarray(frame.from, frame.to), BLANK_LINE]);
  return { ...frame, bytes, from: 0, to: bytes.length };
}

const isFinish = ({ type }: StreamEvent): boolean => type === 'finish';
const isError = ({ type }: StreamEvent): boolean => type === 'error';
const isUnsaid = (event: StreamEvent): boolean => event.type === 'error' && event.unsaid === true;
