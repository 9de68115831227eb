/** The event lane: frames → events → interceptors → frames, for another protocol or an armed feature. */

import type { GatewayError } from '../conversation/errors.ts';
import type { FinishReason, StreamEvent } from '../conversation/events.ts';
import type { Fold } from '../conversation/fold.ts';
import type { Usage } from '../conversation/usage.ts';
import type { Interceptor } from '../features/feature.ts';
import { type SseFrame, SseParser } from '../lib/sse.ts';
import type { ClientContext, Digest, StreamDecoder, StreamEncoder } from '../protocols/protocol.ts';
import { AnswerWatch } from './answer-watch.ts';
import { concat, type Lane, type Output, type Said } from './lane.ts';
import { Originals } from './originals.ts';

const NO_BYTES = new Uint8Array(0);

export interface TranslateOptions {
  readonly decoder: StreamDecoder;
  readonly encoder: StreamEncoder;
  readonly interceptors: readonly Interceptor[];
  /** Both ends speak the same protocol: a frame whose events nobody touched goes out as its bytes. */
  readonly sameProtocol: boolean;
  /** Given when somebody wants the whole answer afterwards. */
  readonly fold?: { readonly fold: Fold; readonly client: ClientContext };
}

export class TranslateLane implements Lane {
  readonly #decoder: StreamDecoder;
  readonly #encoder: StreamEncoder;
  readonly #interceptors: readonly Interceptor[];
  readonly #same: boolean;
  readonly #fold: TranslateOptions['fold'];
  readonly #parser = new SseParser();
  #originals: Originals | undefined;
  #usage: Usage | undefined;
  #finish: FinishReason | undefined;
  readonly #watch = new AnswerWatch();

  constructor(options: TranslateOptions) {
    this.#decoder = options.decoder;
    this.#encoder = options.encoder;
    this.#interceptors = options.interceptors;
    this.#same = options.sameProtocol;
    this.#fold = options.fold;
    if (options.sameProtocol) this.#originals = new Originals();
  }

  push(chunk: Uint8Array): Output {
    return this.#frames(this.#parser.push(chunk));
  }

  end(): Output {
    const unframed = this.#parser.pending;
    const frames = this.#parser.end();
    const parts: Output[] = [this.#frames(frames)];
    if (this.#same && frames.length === 0 && unframed !== undefined) parts.push(unframed);
    const last = this.#decoder.end();
    // What only the end of the stream tells has no bytes of its own; untouched, it adds none.
    this.#originals?.push(NO_BYTES, last, parts);
    this.#write(this.#through(last), parts);
    for (let at = 0; at < this.#interceptors.length; at++) {
      const held = this.#interceptors[at]!.end();
      this.#write(this.#through(held, at + 1), parts);
    }
    return concat(parts);
  }

  #frames(frames: readonly SseFrame[]): Output {
    if (!this.#same) {
      let text = '';
      for (const frame of frames) {
        for (const event of this.#through(this.#decoder.push(frame))) text += this.#encode(event);
      }
      return text;
    }
    const parts: Output[] = [];
    for (const frame of frames) {
      const events = this.#decoder.push(frame);
      this.#originals?.push(frame.raw, events, parts);
      this.#write(this.#through(events), parts);
    }
    return concat(parts);
  }

  /** Events through interceptor `from` and those behind it. */
  #through(events: readonly StreamEvent[], from = 0): readonly StreamEvent[] {
    let current = events;
    for (let at = from; at < this.#interceptors.length && current.length > 0; at++) {
      const interceptor = this.#interceptors[at]!;
      const next: StreamEvent[] = [];
      for (const event of current) {
        const out = interceptor.event(event);
        if (Array.isArray(out)) next.push(...(out as readonly StreamEvent[]));
        else next.push(out as StreamEvent);
      }
      current = next;
    }
    return current;
  }

  #write(events: readonly StreamEvent[], parts: Output[]): void {
    for (const event of events) {
      const text = this.#encode(event);
      if (this.#watch.empty) continue;
      if (this.#originals === undefined) parts.push(text);
      else if (!this.#originals.take(event, text, parts)) this.#originals = undefined;
    }
  }

  #encode(event: StreamEvent): string {
    this.#watch.see(event);
    if (event.type === 'start') this.#usage = event.usage ?? this.#usage;
    else if (event.type === 'usage') this.#usage = event.usage;
    else if (event.type === 'finish') this.#finish = event.reason;
    // An ending before any answer would pass for success: it is not told.
    if (this.#watch.empty) return '';
    this.#fold?.fold.push(event);
    return this.#encoder.event(event);
  }

  get semantic(): boolean {
    return this.#watch.semantic;
  }

  get error(): GatewayError | undefined {
    return this.#watch.error;
  }

  get ended(): boolean {
    return this.#watch.ended;
  }

  // Frames leave whole on this lane.
  readonly between = true;

  get digest(): Digest {
    return {
      complete: this.ended,
      semantic: this.semantic,
      answered: this.#watch.answered,
      usage: this.#usage,
      finish: this.#finish,
      error: this.error,
    };
  }

  get said(): Said | undefined {
    if (this.#fold === undefined) return undefined;
    return { kind: 'reply', reply: this.#fold.fold.reply, client: this.#fold.client };
  }

  ping(): string {
    return this.#encoder.ping();
  }

  fail(error: GatewayError): string {
    return this.#encoder.fail(error);
  }
}
