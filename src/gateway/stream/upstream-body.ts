/** An upstream's body, chunk by chunk, with a limit on silence. */

import { clientGone, GatewayError, isClientGone } from '../../conversation/errors.ts';
import type { AnswerWatch } from '../../features/feature.ts';
import type { Abort, AbortGuard } from '../../lib/loop/abort.ts';
import { type IdleTimer, startIdleTimer } from '../../lib/loop/idle-timer.ts';
import type { HopRecording } from '../../samples/recording.ts';
import { tooMuch } from '../../upstream/target-error.ts';
import { BodyTooLarge, type ChunkSink, type ResponseBody } from '../../upstream/transport.ts';

// After a client leaves, the stream is still read for its usage. Vendors continue an answer until they are cut off, and that
// costs, too.
const MAX_LEFTOVER_MS = 5000;
export const MAX_LEFTOVER_BYTES = 1024 * 1024;

/** Behind a whole answer a vendor closes its connection at once; usage may come a moment after the last words. */
export const END_SILENCE_MS = 2000;

type Batch = readonly Uint8Array[] | undefined;
type Peeked = { readonly batch: Batch } | { readonly thrown: unknown };

export interface UpstreamBodyOptions {
  readonly provider: string;
  readonly idleMs: number;
  /** Of a whole body; left out: no limit. */
  readonly mostBytes?: number;
  /** Ends the upstream's connection; left alone once the body is done with. */
  readonly abort: Abort;
  /** The try: its slot is given back once the body is done with, in whichever way. */
  readonly call: { release(): void };
  readonly recording?: HopRecording;
  readonly watch?: AnswerWatch | undefined;
}

export class UpstreamBody implements ChunkSink {
  #recording: HopRecording | undefined;
  /** The client has left: the rest is read but not forwarded. */
  #leftover: ReturnType<typeof setTimeout> | undefined;
  #sink: ChunkSink | undefined;
  /** Made when there is something to wait for. */
  #idleTimer: IdleTimer | undefined;
  /** What was looked at in advance, for the next read; or why there is nothing. */
  #peeked: Peeked | undefined;
  #silent = false;
  #over = false;

  constructor(
    private readonly body: ResponseBody,
    private readonly options: UpstreamBodyOptions,
  ) {
    this.#recording = options.recording;
  }

  /**
   * All chunks that are there, waiting for at least one; undefined at the end.
   * @throws GatewayError upstream when the connection broke, timeout after too long a silence
   */
  read(): Batch | Promise<Batch> {
    if (this.#peeked !== undefined) return this.#takePeeked(this.#peeked);
    // The time that a slow client took must not count as the upstream's silence.
    this.#idleTimer?.touch();
    try {
      const more = this.body.read();
      return more instanceof Promise ? this.#readLater(more) : this.#taken(more);
    } catch (thrown) {
      return this.#fail(thrown);
    }
  }

  #readLater(more: Promise<Batch>): Promise<Batch> {
    this.#listen();
    return more.then(
      (batch) => this.#taken(batch),
      (thrown) => this.#fail(thrown),
    );
  }

  /** The first chunks, which `read` gives once more; undefined: there are none. What it throws, `read` throws. */
  peek(): Batch | Promise<Batch> {
    try {
      const batch = this.read();
      if (batch instanceof Promise || batch?.length === 0) return this.#peekLater(batch);
      this.#peeked = { batch };
      return batch;
    } catch (thrown) {
      this.#peeked = { thrown };
      return undefined;
    }
  }

  async #peekLater(first: Batch | Promise<Batch>): Promise<Batch> {
    try {
      let batch = await first;
      while (batch?.length === 0) batch = await this.read();
      this.#peeked = { batch };
      return batch;
    } catch (thrown) {
      this.#peeked = { thrown };
      return undefined;
    }
  }

  #takePeeked(peeked: Peeked): Batch {
    if ('thrown' in peeked) throw peeked.thrown;
    // The end stays the end.
    if (peeked.batch !== undefined) this.#peeked = undefined;
    return peeked.batch;
  }

  /** The whole body has come and was read. */
  get isOver(): boolean {
    return this.#over || (this.#peeked === undefined && this.body.isOver === true);
  }

  get hasPeeked(): boolean {
    return this.#peeked !== undefined;
  }

  /** As the source's own. @throws as `read` does */
  async pipe(sink: ChunkSink): Promise<void> {
    this.#sink = sink;
    this.#listen().touch();
    try {
      // One object less for every chunk where there is nothing to record.
      const records =
        this.options.watch !== undefined ||
        (this.#recording !== undefined && this.#recording.headOnly !== true);
      await this.body.pipe(records ? this : sink);
      this.#finish();
    } catch (thrown) {
      this.#fail(thrown);
    }
  }

  /** Shows a chunk on its way to the sink. */
  write(chunk: Uint8Array): Promise<void> | undefined {
    this.#show(chunk);
    return this.#sink?.write(chunk);
  }

  /**
   * The whole body; not to be called after `read`.
   * @throws as `read` does; GatewayError upstream when it is too large
   */
  readAll(): Uint8Array | Promise<Uint8Array> {
    try {
      const bytes = this.body.readAll(this.options.mostBytes ?? Number.POSITIVE_INFINITY);
      return bytes instanceof Promise ? this.#wholeLater(bytes) : this.#whole(bytes);
    } catch (thrown) {
      return this.#fail(thrown);
    }
  }

  async #wholeLater(bytes: Promise<Uint8Array>): Promise<Uint8Array> {
    this.#listen();
    try {
      return this.#whole(await bytes);
    } catch (thrown) {
      return this.#fail(thrown);
    }
  }

  /** Stops the upstream; safe at any time. */
  cancel(): void {
    const { abort } = this.options;
    this.#finish();
    abort.abort(new Error('no longer wanted'));
  }

  #show(chunk: Uint8Array): void {
    this.#recording?.chunk(chunk);
    this.options.watch?.chunk(chunk);
  }

  /** Says whether it is still read once the client has left. */
  set guard(guard: AbortGuard) {
    this.options.abort.guard = guard;
  }

  /** The client has left: nothing more is recorded, and it is read for a moment more. */
  outlive(): void {
    this.#recording?.end(undefined);
    this.#recording = undefined;
    this.#leftover = setTimeout(() => this.cancel(), MAX_LEFTOVER_MS);
    this.#leftover.unref();
  }

  /** Nothing more of it is read: it ends with this error. Safe at any time. */
  giveUp(error: GatewayError): void {
    this.#finish(error);
    this.options.abort.abort(error);
  }

  #listen(): IdleTimer {
    const { idleMs, abort } = this.options;
    this.#idleTimer ??= startIdleTimer(
      idleMs,
      () => {
        this.#silent = true;
        this.#idleTimer?.stop();
        abort.abort(new Error('silent for too long'));
      },
      this.body,
    );
    return this.#idleTimer;
  }

  #taken(batch: Batch): Batch {
    if (batch === undefined) {
      this.#finish();
      return undefined;
    }
    for (const chunk of batch) this.#show(chunk);
    return batch;
  }

  #whole(bytes: Uint8Array): Uint8Array {
    this.#show(bytes);
    this.#finish();
    return bytes;
  }

  #finish(error?: GatewayError): void {
    if (this.#over) return;
    this.#over = true;
    const { abort, call } = this.options;
    this.#idleTimer?.stop();
    clearTimeout(this.#leftover);
    this.#recording?.end(error);
    this.options.watch?.end();
    abort.unfollow();
    call.release();
  }

  #fail(thrown: unknown): never {
    const error = this.#trouble(thrown);
    this.#finish(isClientGone(error) ? undefined : error);
    throw error;
  }

  #trouble(thrown: unknown): GatewayError {
    const { abort, provider, idleMs, mostBytes = 0 } = this.options;
    if (thrown instanceof BodyTooLarge) {
      const error = tooMuch(provider, 'an answer', mostBytes, 'answer_bytes');
      abort.abort(error);
      return error;
    }
    if (abort.reason instanceof GatewayError) return abort.reason;
    if (abort.left) return clientGone(thrown);
    if (thrown instanceof GatewayError) return thrown;
    return this.#silent
      ? new GatewayError(
          'timeout',
          `Provider ${provider} sent nothing for ${Math.round(idleMs / 1000)} s.`,
          { cause: thrown },
        )
      : new GatewayError(
          'upstream',
          `The connection to provider ${provider} broke off before the answer was complete.`,
          { cause: thrown },
        );
  }
}
