/** The body of an endpoint's answer on its way to the client, which ends as the upstream's does. */

import { asGatewayError, cutBy, departure, type GatewayError } from '../conversation/errors.ts';
import type { ErrorMask } from '../gateway/stream/mask-errors.ts';
import type { UpstreamBody } from '../gateway/stream/upstream-body.ts';
import type { ChunkSink } from '../upstream/transport.ts';

/** Bun's direct controller: `write` gives a promise when the client is slow, and only then. */
interface Sink {
  write(chunk: Uint8Array | string): unknown;
  flush(): unknown;
  close(): void;
}

// Long enough for an error event to be read before the reset, which discards what is still unread.
const RESET_AFTER_MS = 25;

export interface AnswerStreamOptions {
  readonly first: readonly Uint8Array[];
  readonly source: UpstreamBody;
  /** Of an event stream: takes the gateway's credentials out of the vendor's errors. */
  readonly mask: ErrorMask | undefined;
  /** The error event of a stream; '' for other bodies, which can only be cut. */
  readonly fail: (error: GatewayError) => string;
  /** Sees every chunk that is written. */
  readonly onChunk: (chunk: Uint8Array) => void;
  /** Of the exchange. */
  readonly signal: AbortSignal;
  /** Called once, when nothing more will be written. */
  readonly onEnd: (error: GatewayError | undefined) => void;
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

class AnswerStream implements ChunkSink {
  readonly #options: AnswerStreamOptions;
  #sink!: Sink;
  #broken: { readonly thrown: unknown } | undefined;
  #over = false;

  constructor(options: AnswerStreamOptions) {
    this.#options = options;
  }

  async pull(controller: Sink): Promise<void> {
    this.#sink = controller;
    const { first, source, fail } = this.#options;
    try {
      for (const chunk of first) await this.write(chunk);
      this.#sink.flush();
      if (this.#broken === undefined) await source.pipe(this);
      await this.#forward(this.#options.mask?.end());
      if (this.#broken !== undefined) throw (this.#broken as { thrown: unknown }).thrown;
    } catch (thrown) {
      if (this.#over) return;
      const error = cutBy(this.#options.signal) ?? asGatewayError(thrown);
      const event = fail(error);
      if (event !== '') controller.write(event);
      controller.flush();
      this.#end(error);
      await Bun.sleep(RESET_AFTER_MS);
      // Rejecting is what resets the connection; a direct stream that closes ends it cleanly.
      throw error;
    }
    this.#end(undefined);
    controller.close();
  }

  write(chunk: Uint8Array): Promise<void> | undefined {
    const { mask } = this.#options;
    return this.#forward(mask === undefined ? chunk : mask.push(chunk));
  }

  /** @param chunk undefined: nothing may go out yet */
  #forward(chunk: Uint8Array | undefined): Promise<void> | undefined {
    if (chunk === undefined || this.#over || this.#broken !== undefined) return undefined;
    try {
      this.#options.onChunk(chunk);
      const written = this.#sink.write(chunk);
      if (!(written instanceof Promise)) return undefined;
      return written.then(
        () => {},
        (thrown) => this.#stop(thrown),
      );
    } catch (thrown) {
      this.#stop(thrown);
      return undefined;
    }
  }

  /** The client has gone. */
  gone(): void {
    this.#options.source.cancel();
    this.#end(departure(this.#options.signal));
  }

  #stop(thrown: unknown): void {
    this.#broken ??= { thrown };
    this.#options.source.cancel();
  }

  #end(error: GatewayError | undefined): void {
    if (this.#over) return;
    this.#over = true;
    this.#options.onEnd(error);
  }
}
