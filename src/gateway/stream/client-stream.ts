/** Writes a stream to the client: chunks, keep-alive comments, and an end that shows whether it was complete. */

import type { TryEnd } from '../../conversation/account/payer.ts';
import { asGatewayError, cutBy, GatewayError } from '../../conversation/errors.ts';
import type { Conversation } from '../../conversation/types.ts';
import type { Continuation } from '../../features/feature.ts';
import type { AbortGuard } from '../../lib/loop/abort.ts';
import { type ActivitySource, type IdleTimer, startIdleTimer } from '../../lib/loop/idle-timer.ts';
import type { ChunkSink } from '../../upstream/transport.ts';
import { endOf, endTry, streamEnd } from '../tries/try-account.ts';
import type { ExchangeFeatures, StreamOutcome } from '../types.ts';
import type { ByteSink } from './client-lane.ts';
import { incompleteAnswerError } from './open.ts';
import { concat, type StreamPipeline } from './pipeline.ts';
import { END_SILENCE_MS, MAX_LEFTOVER_BYTES } from './upstream-body.ts';

/** Milliseconds in which a busy client reads the error event: the reset discards what is still unread. */
export const RESET_AFTER_MS = 100;

export interface StreamEnd {
  /** The last hop's pipeline; undefined: no answer came. */
  readonly pipeline: StreamPipeline | undefined;
  readonly error: GatewayError | undefined;
  readonly clientGone: boolean;
}

export interface ClientStreamOptions {
  /** The answer, or the failure to get one; may be long in coming. */
  readonly opened: StreamOutcome | Promise<StreamOutcome | GatewayError>;
  /** The protocol's keep-alive, until there is a pipeline. */
  ping(): string;
  /** A keep-alive in the form that the client skips. Left out: as it is. */
  skipped?(ping: string): string;
  /** The protocol's error event, until there is a pipeline. */
  fail(error: GatewayError): string;
  /** Sends the conversation of a further hop. */
  followUp(
    conversation: Conversation,
    before: StreamOutcome,
  ): Promise<StreamOutcome | GatewayError>;
  readonly beforeEnd?: ExchangeFeatures['beforeEnd'];
  readonly keepAliveMs: number;
  readonly signal: AbortSignal;
  /** No end of a body tells the client that an answer is over: only the protocol's last event does, no error event. */
  readonly endsByEvent?: boolean;
  onFirstByte(): void;
  /** Sees everything that is written. */
  readonly tap?: (chunk: Uint8Array | string) => void;
  /** Called before the last frame of an answer goes out, which waits for what it gives; it may be called again. */
  readonly onWhole?: ((pipeline: StreamPipeline) => void | Promise<void>) | undefined;
  /** Called once, when nothing more will be written. */
  onEnd(end: StreamEnd): void;
}

/**
 * The stream for a client, which is Bun's source of a direct `ReadableStream`. An upstream that fails after the
 * answer has begun becomes an error event and then a reset connection: several clients take a clean end for
 * success whatever stands before it.
 */
export class ClientStream implements ChunkSink, ActivitySource, AbortGuard {
  readonly type = 'direct';
  // The fields that every chunk needs come first, so that they share a cache line.
  #sink!: ByteSink;
  /** The pipeline of the answer. */
  #pipeline: StreamPipeline | undefined;
  /** What failed on this side: the decoding of the answer, or the client's connection. */
  #broken: { readonly thrown: unknown } | undefined;
  #active = false;
  /** Bytes of the current hop's answer, from its content on. */
  #bytes = 0;
  /** The client is slow: writers wait, and no keep-alive is written. */
  #blocked = false;
  /** Lets the writer go on that waits for a client which has left. */
  #unblock: (() => void) | undefined;
  /** The client has left, and what still comes is read for its usage, up to this many bytes of the answer. */
  #readUpTo: number | undefined;
  #keepAlive: IdleTimer | undefined;
  #answer: StreamOutcome | undefined;
  #over = false;
  /** The end of the answer has not been written yet: it waits for what must be known before. */
  #endWaits = false;
  /** Bytes of the answer when the vendor's silence was last looked at. */
  #bytesSeen = -1;
  /** The answer is whole, and its vendor says nothing more and does not close the connection. */
  #restIsSilence = false;
  /** How the try ends once the client has left: `done` if the whole answer had come by then. */
  #left: 'client_gone' | 'done' = 'client_gone';

  constructor(private readonly options: ClientStreamOptions) {}

  /** @param controller Bun's: what was written goes out at the end of the turn, or at `flush` */
  async pull(controller: ByteSink): Promise<void> {
    const { opened: coming, keepAliveMs, signal, tap } = this.options;
    const sink = tap === undefined ? controller : tapped(controller, tap);
    this.#sink = sink;
    const keep = startIdleTimer(keepAliveMs, () => this.#ping(), this);
    this.#keepAlive = keep;
    const silence = startIdleTimer(END_SILENCE_MS, () => this.#endInSilence());
    try {
      // The client has waited for as long as it may go without a sign of life.
      if (coming instanceof Promise) this.#ping();
      const opened = coming instanceof Promise ? await coming : coming;
      if (opened instanceof GatewayError) {
        await this.#fail(this.options.fail(opened), opened);
        return;
      }
      for (let hop = opened; ; ) {
        this.#answer = hop;
        this.#pipeline = hop.pipeline;
        this.#bytes = hop.bytes ?? 0;
        if (this.#over || signal.aborted) {
          const cut = cutBy(signal);
          this.#drop(hop, cut);
          if (!this.#over && cut !== undefined) await this.#fail(hop.pipeline.fail(cut), cut);
          else this.gone();
          return;
        }
        if (hop.source !== undefined && hop.account?.outlives !== undefined)
          hop.source.guard = this;
        const first = concat(hop.first);
        if (first.length > 0) {
          const slow = this.#putOrEnd(first, hop.pipeline);
          // The headers wait for the first byte: it goes at once.
          sink.flush();
          if (slow !== undefined) await slow;
        }
        this.options.onFirstByte();
        const cut = await this.#pump(hop);
        this.#endTry(hop, this.#over ? this.#left : streamEnd(hop.pipeline.error, cut));
        if (this.#over) return;
        const { continuation } = hop.pipeline;
        // Without a continuation, too: what the try cost is in the journal before the client has its end.
        const outcome: StreamOutcome | GatewayError | undefined = await (cut ??
          (continuation && this.#onward(hop, continuation)));
        if (this.#over) return;
        if (outcome === undefined) break;
        if (outcome instanceof GatewayError) {
          await this.#fail(
            hop.pipeline.error === outcome ? '' : hop.pipeline.fail(outcome),
            outcome,
          );
          return;
        }
        hop = outcome;
      }
      this.#end({ pipeline: this.#pipeline, error: undefined, clientGone: false });
      sink.close();
    } finally {
      keep.stop();
      silence.stop();
    }
  }

  /** Some vendors and proxies leave the connection open behind the last event, for which many clients wait. */
  #endInSilence(): void {
    const { source, pipeline } = this.#answer ?? {};
    const isSilent = this.#bytes === this.#bytesSeen && !this.#blocked && !this.#endWaits;
    this.#bytesSeen = this.#bytes;
    if (!isSilent || source === undefined || pipeline?.isFinished !== true) return;
    this.#restIsSilence = true;
    source.cancel();
  }

  #ping(): void {
    if (this.#blocked || this.#over || !(this.#pipeline?.allowsKeepAlive ?? true)) return;
    const ping = this.#pipeline?.ping() ?? this.options.ping();
    void this.#put(this.options.skipped?.(ping) ?? ping);
    this.#sink.flush();
  }

  /** Nothing that follows changes what an answer cost that is whole or has failed. */
  ending(): void {
    const hop = this.#answer;
    if (hop === undefined) return;
    const { digest, error = digest.error } = hop.pipeline;
    if (digest.complete || error !== undefined) this.#endTry(hop, streamEnd(error, undefined));
  }

  /** Bun calls it when the client has gone. */
  cancel(): void {
    this.gone();
  }

  /** The client has gone, or did not read to the end that it was given. */
  gone(): void {
    const error = cutBy(this.options.signal);
    if (this.keeps(error)) return;
    if (this.#answer !== undefined) this.#drop(this.#answer, error);
    const clientGone = error === undefined && this.#left === 'client_gone';
    this.#end({ pipeline: this.#pipeline, error, clientGone });
  }

  /** The client has gone: is the rest of the answer read all the same, for what it reports? */
  keeps(reason: unknown): boolean {
    if (this.#readUpTo !== undefined) return true;
    if (reason instanceof GatewayError || this.#over) return false;
    const { source, account, pipeline } = this.#answer ?? {};
    const isWhole = !this.#blocked && !this.#endWaits && pipeline?.isWhole === true;
    if (isWhole) this.#left = 'done';
    // The vendor continues a background job, which is settled at its end.
    const ends = pipeline?.digest.pending || (isWhole && pipeline.digest.usage !== undefined);
    if (source === undefined || ends || account?.outlives?.() !== true) return false;
    this.#readUpTo = this.#bytes + MAX_LEFTOVER_BYTES;
    source.outlive();
    this.#end({ pipeline, error: undefined, clientGone: !isWhole });
    this.#unblock?.();
    return true;
  }

  /** Nothing more of this answer is read. */
  #drop(hop: StreamOutcome, error: GatewayError | undefined): void {
    hop.source?.cancel();
    this.#endTry(hop, error === undefined ? this.#left : endOf(error));
  }

  #endTry({ account, pipeline }: StreamOutcome, ended: TryEnd): void {
    if (account !== undefined)
      endTry(account, ended, pipeline.digest, this.#bytes - pipeline.terminalBytes);
  }

  #end(result: StreamEnd): void {
    if (this.#over) return;
    this.#over = true;
    // Here and not behind `pull`: a write to a client that has gone may stay pending for ever.
    this.#keepAlive?.stop();
    this.options.onEnd(result);
  }

  /** Writes to the client; a promise when it is slow. */
  #put(out: Uint8Array | string): Promise<void> | undefined {
    if (this.#over) return undefined;
    const written = this.#sink.write(out);
    return written instanceof Promise ? this.#blockedBy(written) : undefined;
  }

  #blockedBy(written: Promise<unknown>): Promise<void> {
    this.#blocked = true;
    const slow = new Promise<void>((done, failed) => {
      this.#unblock = done;
      written.then(() => {
        this.#blocked = false;
        done();
      }, failed);
    });
    // A keep-alive is not waited for: its rejection, when the client goes, must not be unhandled.
    slow.catch(() => {});
    return slow;
  }

  /** The same for what may be the end of the answer. */
  #putOrEnd(out: Uint8Array | string, pipeline: StreamPipeline): Promise<void> | undefined {
    if (this.#over) return undefined;
    const { beforeEnd, onWhole } = this.options;
    const stored = beforeEnd !== undefined && pipeline.ended ? beforeEnd() : undefined;
    const told = onWhole !== undefined && pipeline.endGiven ? onWhole(pipeline) : undefined;
    return stored === undefined && told === undefined
      ? this.#put(out)
      : this.#putAfter(Promise.all([stored, told]), out);
  }

  async #putAfter(all: Promise<unknown>, out: Uint8Array | string): Promise<void> {
    this.#endWaits = true;
    await all;
    this.#endWaits = false;
    await this.#put(out);
  }

  /** Everything the upstream still says. The error that ended it, or undefined after a true ending. */
  async #pump({
    pipeline,
    source,
    same,
    target,
  }: StreamOutcome): Promise<GatewayError | undefined> {
    if (source === undefined) return undefined;
    this.#broken = undefined;
    if (pipeline.failure !== undefined) this.#stop(pipeline.failure);
    try {
      if (this.#broken === undefined) await source.pipe(this);
    } catch (thrown) {
      if (!this.#restIsSilence) this.#broken ??= { thrown };
    }
    this.#restIsSilence = false;
    if (pipeline.error !== undefined && !same) return pipeline.error;
    try {
      if (this.#broken !== undefined) throw (this.#broken as { thrown: unknown }).thrown;
      const rest = pipeline.end();
      if (pipeline.continuation !== undefined) {
        if (rest.length > 0) await this.#put(rest);
        return undefined;
      }
      if (pipeline.error !== undefined) {
        if (isVendors(same, pipeline)) return this.#endVendors(pipeline);
        if (rest.length > 0) await this.#put(rest);
        return pipeline.error;
      }
      const cut = incompleteAnswerError(pipeline.digest, target.provider);
      if (cut === undefined && rest.length > 0) await this.#putOrEnd(rest, pipeline);
      return cut;
    } catch (thrown) {
      source.cancel();
      // What breaks behind the vendor's own ending has cost nothing.
      if (pipeline.ended) return undefined;
      const cut = cutBy(this.options.signal);
      if (cut !== undefined && !pipeline.digest.complete) return cut;
      const rest = pipeline.end();
      const { error } = pipeline;
      const told = error !== undefined && !isVendors(same, pipeline);
      if (!pipeline.digest.complete && !told) return asGatewayError(thrown);
      if (rest.length > 0) await this.#put(rest);
      return told ? error : undefined;
    }
  }

  /** Behind the vendor's own error event: the end that such an event is not for every client. */
  async #endVendors(pipeline: StreamPipeline): Promise<GatewayError | undefined> {
    const { error, digest } = pipeline;
    if (!this.options.endsByEvent || error === undefined || digest.complete) return undefined;
    await this.#put(pipeline.fail(error));
    return error;
  }

  /** A chunk of the upstream's. */
  write(chunk: Uint8Array): Promise<void> | undefined {
    const pipeline = this.#pipeline;
    if (this.#broken !== undefined || pipeline === undefined) return undefined;
    this.#bytes += chunk.length;
    if (this.#readUpTo !== undefined && this.#bytes > this.#readUpTo)
      this.#answer?.source?.cancel();
    try {
      const out = pipeline.push(chunk);
      const slow = out.length > 0 ? this.#putOrEnd(out, pipeline) : undefined;
      if (out !== '') this.#active = true;
      if (pipeline.failure !== undefined) this.#stop(pipeline.failure);
      else if (pipeline.error !== undefined && this.#answer?.same === false) {
        this.#answer.source?.cancel();
      }
      return slow?.catch((thrown) => {
        if (!this.keeps(thrown)) this.#stop(thrown);
      });
    } catch (thrown) {
      this.#stop(thrown);
      return undefined;
    }
  }

  /** Something went to the client. */
  takeActivity(): boolean {
    const active = this.#active;
    this.#active = false;
    return active;
  }

  #stop(thrown: unknown): void {
    this.#broken ??= { thrown };
    this.#answer?.source?.cancel();
  }

  /** The next hop, an error in place of it, or undefined when there is none to come. */
  async #onward(
    before: StreamOutcome,
    continuation: Continuation,
  ): Promise<StreamOutcome | GatewayError | undefined> {
    try {
      let slow: Promise<void> | undefined;
      const conversation = await continuation.run(this.options.signal, (events) => {
        const out = before.pipeline.inject(events);
        if (out.length > 0 && !this.#over) slow = this.#putOrEnd(out, before.pipeline) ?? slow;
      });
      if (slow !== undefined) await slow;
      // What was emitted has ended the stream.
      if (continuation.last === true) return undefined;
      return await this.options.followUp(conversation, before);
    } catch (thrown) {
      return asGatewayError(thrown);
    }
  }

  async #fail(text: string, error: GatewayError): Promise<never> {
    if (text !== '') this.#sink.write(text);
    this.#sink.flush();
    const { signal } = this.options;
    const clientGone = signal.aborted && cutBy(signal) === undefined;
    this.#end({ pipeline: this.#pipeline, error, clientGone });
    await Bun.sleep(RESET_AFTER_MS);
    // Rejecting is what resets the connection; a direct stream that closes ends it cleanly.
    throw error;
  }
}

/** A vendor's own error event has been forwarded as it came; its ending is the vendor's, too. */
const isVendors = (same: boolean, pipeline: StreamPipeline): boolean =>
  same && pipeline.unsaid !== true;

function tapped(sink: ByteSink, tap: NonNullable<ClientStreamOptions['tap']>): ByteSink {
  return {
    write(chunk) {
      tap(chunk);
      return sink.write(chunk);
    },
    flush: () => sink.flush(),
    close: () => sink.close(),
  };
}
