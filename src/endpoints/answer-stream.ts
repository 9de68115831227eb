/** The body of an endpoint's answer on its way to the client, which ends as the upstream's does. */

import { asGatewayError, cutBy, departure, GatewayError } from '../conversation/errors.ts';
import { RESET_AFTER_MS } from '../gateway/stream/client-stream.ts';
import { MAX_LEFTOVER_BYTES, type UpstreamBody } from '../gateway/stream/upstream-body.ts';
import type { AbortGuard } from '../lib/loop/abort.ts';
import type { ChunkSink } from '../upstream/transport.ts';
import type { ChunkFilter } from './event-filters.ts';

/** Bun's direct controller: `write` gives a promise when the client is slow, and only then. */
interface Sink {
  write(chunk: Uint8Array | string): unknown;
  flush(): unknown;
  close(): void;
}

export interface AnswerStreamOptions {
  readonly first: readonly Uint8Array[];
  readonly source: UpstreamBody;
  /** Through which it goes out, in this order. */
  readonly filters: readonly ChunkFilter[];
  /** The error event of a stream; '' for other bodies, which can only be cut. */
  readonly fail: (error: GatewayError) => string;
  /** Sees every chunk that comes. */
  readonly onRead: (chunk: Uint8Array) => void;
  /** The body has come to its end. @throws GatewayError where that was its middle */
  readonly checkEnd: () => void;
  /** Sees every chunk that is written. */
  readonly onChunk: (chunk: Uint8Array) => void;
  /** Aborts with the exchange. */
  readonly signal: AbortSignal;
  /** The client has left: is the rest read all the same? */
  readonly outlives: () => boolean;
  /** Called once, when nothing more will be written. `isRead`: {@link onRest} is still to come. */
  readonly onEnd: (error: GatewayError | undefined, isRead: boolean) => void;
  /** Called when the rest of the stream was read after the client left. */
  readonly onRest: () => void;
}

/** An upstream that breaks off resets the client's connection: a clean end would be taken for success. */
export function answerStream(options: AnswerStreamOptions): ReadableStream<Uint8Array> {
  const body = new AnswerStream(options);
  const source = {
    type: 'direct',
    pull: (controller: Sink) => body.pull(controller),
    cancel: () => body.gone(),
  };
  return new ReadableStream(source as never);
}

class AnswerStream implements ChunkSink, AbortGuard {
  #sink!: Sink;
  #broken: { readonly thrown: unknown } | undefined;
  #over = false;
  /** The client has left, and what still comes is read, up to so many bytes. */
  #mayRead: number | undefined;
  /** Lets the writer go on that waits for a client which has left. */
  #unblock: (() => void) | undefined;

  constructor(private readonly options: AnswerStreamOptions) {}

  async pull(controller: Sink): Promise<void> {
    this.#sink = controller;
    const { first, source, fail, filters, onRest } = this.options;
    source.guard = this;
    try {
      for (const chunk of first) await this.write(chunk);
      this.#sink.flush();
      if (this.#broken === undefined) await source.pipe(this);
      for (let i = 0; i < filters.length; i++) await this.#forward(filters[i]!.end(), i + 1);
      if (this.#broken !== undefined) throw (this.#broken as { thrown: unknown }).thrown;
      if (!this.#over) this.options.checkEnd();
    } catch (thrown) {
      if (this.#over) return;
      const error = cutBy(this.options.signal) ?? asGatewayError(thrown);
      const event = fail(error);
      if (event !== '') controller.write(event);
      controller.flush();
      this.#end(error);
      await Bun.sleep(RESET_AFTER_MS);
      // Rejecting is what resets the connection; a direct stream that closes ends it cleanly.
      throw error;
    } finally {
      if (this.#mayRead !== undefined) onRest();
    }
    if (this.#over) return;
    this.#end(undefined);
    controller.close();
  }

  write(chunk: Uint8Array): Promise<void> | undefined {
    this.options.onRead(chunk);
    if (this.#mayRead === undefined) return this.#forward(chunk, 0);
    this.#mayRead -= chunk.length;
    if (this.#mayRead < 0) this.options.source.cancel();
    return undefined;
  }

  /**
   * @param chunk undefined: nothing may go out yet
   * @param from the filter that it comes to next
   */
  #forward(chunk: Uint8Array | undefined, from: number): Promise<void> | undefined {
    const { filters, onChunk } = this.options;
    try {
      let out = chunk;
      for (let i = from; i < filters.length && out !== undefined; i++) out = filters[i]!.push(out);
      if (out === undefined || this.#over || this.#broken !== undefined) return undefined;
      onChunk(out);
      const written = this.#sink.write(out);
      if (!(written instanceof Promise)) return undefined;
      return new Promise((done) => {
        this.#unblock = done;
        written.then(
          () => done(),
          (thrown) => {
            if (!this.keeps(thrown)) this.#stop(thrown);
            done();
          },
        );
      });
    } catch (thrown) {
      this.#stop(thrown);
      return undefined;
    }
  }

  /** The client has gone. */
  gone(): void {
    if (this.keeps(cutBy(this.options.signal))) return;
    this.options.source.cancel();
    this.#end(departure(this.options.signal));
  }

  keeps(reason: unknown): boolean {
    if (this.#mayRead !== undefined) return true;
    const { source, outlives, signal, onEnd } = this.options;
    if (reason instanceof GatewayError || this.#over || !outlives()) return false;
    this.#mayRead = MAX_LEFTOVER_BYTES;
    this.#over = true;
    source.outlive();
    onEnd(departure(signal), true);
    this.#unblock?.();
    return true;
  }

  #stop(thrown: unknown): void {
    this.#broken ??= { thrown };
    this.options.source.cancel();
  }

  #end(error: GatewayError | undefined): void {
    if (this.#over) return;
    this.#over = true;
    this.options.onEnd(error, false);
  }
}
