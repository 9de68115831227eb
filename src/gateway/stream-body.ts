/** The client's side of a stream: writes, keeps alive, ends truthfully. */

import { asGatewayError, GatewayError } from '../conversation/errors.ts';
import { type SilenceWatch, watchSilence } from '../lib/silence.ts';
import type { Opened } from './answer.ts';
import type { Again } from './hops.ts';
import { concat, type Lane } from './lane.ts';
import { emptyOrCut } from './open-stream.ts';

/**
 * Bun's direct controller. `write` gives a promise when the client is slow, and only then; what was
 * written goes out at the end of the turn, or at `flush`.
 */
interface Sink {
  write(chunk: Uint8Array | string): unknown;
  flush(): unknown;
  close(): void;
}

/** Writes to the client; a promise when it is slow. */
type Put = (out: Uint8Array | string) => Promise<void> | undefined;

// Long enough for the error event to be read before the reset, which discards what is still unread.
const RESET_AFTER_MS = 25;

export interface StreamEnd {
  /** What was written by, once there was something; its digest is asked for only now. */
  readonly lane: Lane | undefined;
  readonly error: GatewayError | undefined;
  readonly clientGone: boolean;
}

export interface StreamBodyOptions {
  /** The answer, or the failure to get one; may be long in coming. */
  readonly opened: Opened | Promise<Opened | GatewayError>;
  /** Until there is a lane: the protocol's keep-alive and error event. */
  readonly early: { ping(): string; fail(error: GatewayError): string };
  /** Sends the conversation of a further hop. */
  readonly again: Again;
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
  let answer: Opened | undefined;
  let over = false;
  let keep: SilenceWatch | undefined;
  const end = (result: StreamEnd) => {
    if (over) return;
    over = true;
    // Here and not behind `pull`: a write to a client that has gone may stay pending for ever.
    keep?.stop();
    options.onEnd(result);
  };
  const gone = () => {
    answer?.source?.cancel();
    end({ lane: answer?.lane, error: undefined, clientGone: true });
  };
  const source = {
    type: 'direct',
    async pull(controller: Sink) {
      const sink = tapped(controller, options.tap);
      let blocked = false;
      keep = watchSilence(options.keepAliveMs, () => {
        if (blocked || over || !(answer?.lane.between ?? true)) return;
        void put(answer?.lane.ping() ?? options.early.ping());
        sink.flush();
      });
      /** Writes; waits, and keeps pings back, while the client is slow. */
      const put: Put = (out) => {
        const written = sink.write(out);
        if (!(written instanceof Promise)) return undefined;
        blocked = true;
        const slow = written.then(() => {
          blocked = false;
        });
        // Whoever does not wait (a ping) must not end the process when the client goes instead.
        slow.catch(() => {});
        return slow;
      };
      try {
        const opened = options.opened instanceof Promise ? await options.opened : options.opened;
        if (opened instanceof GatewayError) {
          await fail(sink, options.early.fail(opened), opened);
          return;
        }
        for (let hop = opened; ; ) {
          answer = hop;
          if (over || options.signal.aborted) return gone();
          const first = concat(hop.first);
          if (first.length > 0) {
            const slow = put(first);
            // The headers wait for the first byte: it goes at once.
            sink.flush();
            if (slow !== undefined) await slow;
          }
          options.onFirstByte();
          const outcome: Opened | GatewayError | undefined =
            (await pump(hop, put, keep)) ?? (await onward(hop, put));
          if (over) return;
          if (outcome === undefined) break;
          if (outcome instanceof GatewayError) {
            await fail(sink, hop.lane.error === outcome ? '' : hop.lane.fail(outcome), outcome);
            return;
          }
          hop = outcome;
        }
        end({ lane: answer?.lane, error: undefined, clientGone: false });
        sink.close();
      } finally {
        keep.stop();
      }
    },
    cancel: gone,
  };
  /** The next hop, an error in place of it, or undefined when there is none to come. */
  async function onward(before: Opened, put: Put): Promise<Opened | GatewayError | undefined> {
    const { next } = before.lane;
    if (next === undefined) return undefined;
    try {
      let slow: Promise<void> | undefined;
      const conversation = await next.run(options.signal, (events) => {
        const out = before.lane.inject(events);
        if (out.length > 0 && !over) slow = put(out) ?? slow;
      });
      if (slow !== undefined) await slow;
      // What was emitted has ended the stream.
      if (next.last === true) return undefined;
      return await options.again(conversation, before);
    } catch (thrown) {
      return asGatewayError(thrown);
    }
  }
  async function fail(sink: Sink, text: string, error: GatewayError): Promise<never> {
    if (text !== '') sink.write(text);
    sink.flush();
    end({ lane: answer?.lane, error, clientGone: options.signal.aborted });
    await Bun.sleep(RESET_AFTER_MS);
    // Rejecting is what resets the connection; a direct stream that closes ends it cleanly.
    throw error;
  }
  return new ReadableStream(source as never);
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

/** Everything the upstream still says. The error that ended it, or undefined after a true ending. */
async function pump(
  opened: Opened,
  put: Put,
  keep: SilenceWatch,
): Promise<GatewayError | undefined> {
  const { lane, source, same, target } = opened;
  if (source === undefined) return undefined;
  /** What broke on this side of the upstream: the reading of its words, or the client's connection. */
  let broken: { readonly thrown: unknown } | undefined;
  const stop = (thrown: unknown) => {
    broken ??= { thrown };
    source.cancel();
  };
  const take = (chunk: Uint8Array): Promise<void> | undefined => {
    if (broken !== undefined) return undefined;
    try {
      const out = lane.push(chunk);
      const slow = out.length > 0 ? put(out) : undefined;
      if (out !== '') keep.touch();
      if (lane.error !== undefined && !same) source.cancel();
      return slow?.catch(stop);
    } catch (thrown) {
      stop(thrown);
      return undefined;
    }
  };
  try {
    await source.each(take);
  } catch (thrown) {
    broken ??= { thrown };
  }
  if (lane.error !== undefined && !same) return lane.error;
  try {
    if (broken !== undefined) throw broken.thrown;
    const rest = lane.end();
    if (lane.next !== undefined) {
      if (rest.length > 0) await put(rest);
      return undefined;
    }
    // A vendor's own error event has been forwarded as it came; its ending is the vendor's, too.
    if (same && lane.error !== undefined) return undefined;
    const cut = emptyOrCut(lane.digest, target.provider);
    if (cut === undefined && rest.length > 0) await put(rest);
    return cut;
  } catch (thrown) {
    source.cancel();
    // What breaks behind the vendor's own ending has cost nothing.
    if (lane.ended) return undefined;
    const rest = lane.end();
    if (!lane.digest.complete) return asGatewayError(thrown);
    if (rest.length > 0) await put(rest);
    return undefined;
  }
}
