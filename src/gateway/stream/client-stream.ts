/** The client's side of a stream: writes, keeps alive, ends truthfully. */

import { asGatewayError, GatewayError } from '../../conversation/errors.ts';
import { type ActivitySource, type IdleTimer, startIdleTimer } from '../../lib/loop/idle-timer.ts';
import type { ChunkSink } from '../../upstream/transport.ts';
import type { StreamOutcome } from '../outcome.ts';
import type { FollowUp } from '../types.ts';
import { incompleteAnswerError } from './open.ts';
import { concat, type StreamPipeline } from './pipeline.ts';

/**
 * Bun's direct controller. `write` gives a promise when the client is slow, and only then; what was
 * written goes out at the end of the turn, or at `flush`.
 */
interface Sink {
  write(chunk: Uint8Array | string): unknown;
  flush(): unknown;
  close(): void;
}

// Long enough for the error event to be read before the reset, which discards what is still unread.
const RESET_AFTER_MS = 25;

export interface StreamEnd {
  /** What was written by, once there was something; its digest is asked for only now. */
  readonly lane: StreamPipeline | undefined;
  readonly error: GatewayError | undefined;
  readonly clientGone: boolean;
}

export interface StreamBodyOptions {
  /** The answer, or the failure to get one; may be long in coming. */
  readonly opened: StreamOutcome | Promise<StreamOutcome | GatewayError>;
  /** Until there is a lane: the protocol's keep-alive and error event. */
  readonly early: { ping(): string; fail(error: GatewayError): string };
  /** Sends the conversation of a further hop. */
  readonly again: FollowUp;
  readonly keepAliveMs: number;
  readonly signal: AbortSignal;
  readonly onFirstByte: () => void;
  /** Sees everything that is written. */
  readonly tap?: (chunk: Uint8Array | string) => void;
  /** Called once, when nothing more will be written. */
  readonly onEnd: (end: StreamEnd) => void;
}

/**
 * The body of a streamed response. An upstream that fails after something was said becomes an error
 * event and then a reset connection: several clients take a clean end for success whatever stands
 * before it.
 */
export function streamBody(options: StreamBodyOptions): ReadableStream<Uint8Array> {
  const body = new StreamBody(options);
  const source = {
    type: 'direct',
    pull: (controller: Sink) => body.pull(controller),
    cancel: () => body.gone(),
  };
  return new ReadableStream(source as never);
}

class StreamBody implements ChunkSink, ActivitySource {
  // First what every chunk has to do with: of a paced stream it is all out of the cache.
  #sink!: Sink;
  /** Of the answer. */
  #lane: StreamPipeline | undefined;
  /** What broke on this side of the upstream: the reading of its words, or the client's connection. */
  #broken: { readonly thrown: unknown } | undefined;
  #stirred = false;
  readonly #options: StreamBodyOptions;
  /** The client is slow: nothing is put between, and whoever writes waits. */
  #blocked = false;
  #keep: IdleTimer | undefined;
  #answer: StreamOutcome | undefined;
  #over = false;

  constructor(options: StreamBodyOptions) {
    this.#options = options;
  }

  async pull(controller: Sink): Promise<void> {
    const { opened: coming, early, keepAliveMs, signal, onFirstByte } = this.#options;
    const sink = tapped(controller, this.#options.tap);
    this.#sink = sink;
    const ping = () => {
      if (this.#blocked || this.#over || !(this.#lane?.between ?? true)) return;
      void this.#put(this.#lane?.ping() ?? early.ping());
      sink.flush();
    };
    const keep = startIdleTimer(keepAliveMs, ping, this);
    this.#keep = keep;
    try {
      const opened = coming instanceof Promise ? await coming : coming;
      if (opened instanceof GatewayError) {
        await this.#fail(early.fail(opened), opened);
        return;
      }
      for (let hop = opened; ; ) {
        this.#answer = hop;
        this.#lane = hop.lane;
        if (this.#over || signal.aborted) {
          this.gone();
          return;
        }
        const first = concat(hop.first);
        if (first.length > 0) {
          const slow = this.#put(first);
          // The headers wait for the first byte: it goes at once.
          sink.flush();
          if (slow !== undefined) await slow;
        }
        onFirstByte();
        const outcome: StreamOutcome | GatewayError | undefined =
          (await this.#pump(hop)) ?? (await this.#onward(hop));
        if (this.#over) return;
        if (outcome === undefined) break;
        if (outcome instanceof GatewayError) {
          await this.#fail(hop.lane.error === outcome ? '' : hop.lane.fail(outcome), outcome);
          return;
        }
        hop = outcome;
      }
      this.#end({ lane: this.#lane, error: undefined, clientGone: false });
      sink.close();
    } finally {
      keep.stop();
    }
  }

  /** The client has gone. */
  gone(): void {
    this.#answer?.source?.cancel();
    this.#end({ lane: this.#lane, error: undefined, clientGone: true });
  }

  #end(result: StreamEnd): void {
    if (this.#over) return;
    this.#over = true;
    // Here and not behind `pull`: a write to a client that has gone may stay pending for ever.
    this.#keep?.stop();
    this.#options.onEnd(result);
  }

  /** Writes to the client; a promise when it is slow. */
  #put(out: Uint8Array | string): Promise<void> | undefined {
    const written = this.#sink.write(out);
    if (!(written instanceof Promise)) return undefined;
    this.#blocked = true;
    const slow = written.then(() => {
      this.#blocked = false;
    });
    // Whoever does not wait (a ping) must not end the process when the client goes instead.
    slow.catch(() => {});
    return slow;
  }

  /** Everything the upstream still says. The error that ended it, or undefined after a true ending. */
  async #pump({ lane, source, same, target }: StreamOutcome): Promise<GatewayError | undefined> {
    if (source === undefined) return undefined;
    this.#broken = undefined;
    if (lane.failure !== undefined) this.#stop(lane.failure);
    try {
      if (this.#broken === undefined) await source.each(this);
    } catch (thrown) {
      this.#broken ??= { thrown };
    }
    if (lane.error !== undefined && !same) return lane.error;
    try {
      if (this.#broken !== undefined) throw (this.#broken as { thrown: unknown }).thrown;
      const rest = lane.end();
      if (lane.next !== undefined) {
        if (rest.length > 0) await this.#put(rest);
        return undefined;
      }
      // A vendor's own error event has been forwarded as it came; its ending is the vendor's, too.
      if (same && lane.error !== undefined) return undefined;
      const cut = incompleteAnswerError(lane.digest, target.provider);
      if (cut === undefined && rest.length > 0) await this.#put(rest);
      return cut;
    } catch (thrown) {
      source.cancel();
      // What breaks behind the vendor's own ending has cost nothing.
      if (lane.ended) return undefined;
      const rest = lane.end();
      if (!lane.digest.complete) return asGatewayError(thrown);
      if (rest.length > 0) await this.#put(rest);
      return undefined;
    }
  }

  /** A chunk of the upstream's. */
  write(chunk: Uint8Array): Promise<void> | undefined {
    const lane = this.#lane;
    if (this.#broken !== undefined || lane === undefined) return undefined;
    try {
      const out = lane.push(chunk);
      const slow = out.length > 0 ? this.#put(out) : undefined;
      if (out !== '') this.#stirred = true;
      if (lane.failure !== undefined) this.#stop(lane.failure);
      else if (lane.error !== undefined && this.#answer?.same === false) {
        this.#answer.source?.cancel();
      }
      return slow?.catch((thrown) => this.#stop(thrown));
    } catch (thrown) {
      this.#stop(thrown);
      return undefined;
    }
  }

  /** Something went to the client. */
  takeActivity(): boolean {
    const told = this.#stirred;
    this.#stirred = false;
    return told;
  }

  #stop(thrown: unknown): void {
    this.#broken ??= { thrown };
    this.#answer?.source?.cancel();
  }

  /** The next hop, an error in place of it, or undefined when there is none to come. */
  async #onward(before: StreamOutcome): Promise<StreamOutcome | GatewayError | undefined> {
    const { next } = before.lane;
    if (next === undefined) return undefined;
    try {
      let slow: Promise<void> | undefined;
      const conversation = await next.run(this.#options.signal, (events) => {
        const out = before.lane.inject(events);
        if (out.length > 0 && !this.#over) slow = this.#put(out) ?? slow;
      });
      if (slow !== undefined) await slow;
      // What was emitted has ended the stream.
      if (next.last === true) return undefined;
      return await this.#options.again(conversation, before);
    } catch (thrown) {
      return asGatewayError(thrown);
    }
  }

  async #fail(text: string, error: GatewayError): Promise<never> {
    if (text !== '') this.#sink.write(text);
    this.#sink.flush();
    this.#end({ lane: this.#lane, error, clientGone: this.#options.signal.aborted });
    await Bun.sleep(RESET_AFTER_MS);
    // Rejecting is what resets the connection; a direct stream that closes ends it cleanly.
    throw error;
  }
}

function tapped(sink: Sink, tap: StreamBodyOptions['tap']): Sink {
  if (tap === undefined) return sink;
  return {
    write(chunk) {
      tap(chunk);
      return sink.write(chunk);
    },
    flush: () => sink.flush(),
    close: () => sink.close(),
  };
}
