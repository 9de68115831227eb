/** An upstream's body, chunk by chunk, with a limit on silence. */

import { GatewayError } from '../conversation/errors.ts';
import type { HopRecording } from '../features/feature.ts';
import { type SilenceWatch, watchSilence } from '../lib/silence.ts';
import type { ChunkSource, Take } from '../upstream/transport.ts';

type Batch = readonly Uint8Array[] | undefined;

export interface ByteSource {
  /**
   * All chunks that are there, waiting for at least one; undefined at the end.
   * @throws GatewayError upstream when the connection broke, timeout after too long a silence
   */
  next(): readonly Uint8Array[] | undefined | Promise<readonly Uint8Array[] | undefined>;
  /** As the source's own. @throws as `next` does */
  each(take: Take): Promise<void>;
  /** The whole body, for whoever has not called `next`. @throws as `next` does */
  all(): Promise<Uint8Array>;
  /** Stops the upstream; safe at any time. */
  cancel(): void;
}

export interface ByteSourceOptions {
  readonly provider: string;
  readonly idleMs: number;
  /** Ends the upstream's connection. */
  readonly abort: AbortController;
  /** The body is done with, in whichever way. Called once. */
  readonly release: () => void;
  readonly recording?: HopRecording;
}

export function byteSource(body: ChunkSource, options: ByteSourceOptions): ByteSource {
  let silent = false;
  let over = false;
  /** The client is slow: not the upstream's silence. */
  let waiting = false;
  const watch: SilenceWatch = watchSilence(options.idleMs, () => {
    if (waiting) return;
    silent = true;
    options.abort.abort(new Error('silent for too long'));
  });
  const { recording } = options;
  const finish = (error?: GatewayError) => {
    if (over) return;
    over = true;
    watch.stop();
    recording?.end(error);
    options.release();
  };
  const trouble = (thrown: unknown): GatewayError => {
    const { reason } = options.abort.signal;
    if (reason instanceof GatewayError) return reason;
    return silent
      ? new GatewayError(
          'timeout',
          `Provider ${options.provider} sent nothing for ${Math.round(options.idleMs / 1000)} s.`,
          { cause: thrown },
        )
      : new GatewayError(
          'upstream',
          `The connection to provider ${options.provider} broke off before the answer was complete.`,
          { cause: thrown },
        );
  };
  const fail = (thrown: unknown): never => {
    const error = trouble(thrown);
    finish(error);
    throw error;
  };
  const take = (batch: Batch): Batch => {
    if (batch === undefined) finish();
    else if (recording !== undefined) for (const chunk of batch) recording.chunk(chunk);
    return batch;
  };
  return {
    next() {
      // The time that a slow client took must not count as the upstream's silence.
      watch.touch();
      try {
        const more = body.next();
        return more instanceof Promise ? more.then(take, fail) : take(more);
      } catch (thrown) {
        return fail(thrown);
      }
    },
    async each(taker) {
      watch.touch();
      try {
        await body.each((chunk) => {
          watch.touch();
          recording?.chunk(chunk);
          const slow = taker(chunk);
          if (slow === undefined) return undefined;
          waiting = true;
          return slow.then(() => {
            waiting = false;
            watch.touch();
          });
        });
        finish();
      } catch (thrown) {
        fail(thrown);
      }
    },
    async all() {
      watch.touch();
      try {
        const bytes = await body.all();
        recording?.chunk(bytes);
        finish();
        return bytes;
      } catch (thrown) {
        return fail(thrown);
      }
    },
    cancel() {
      finish();
      options.abort.abort(new Error('no longer wanted'));
    },
  };
}
