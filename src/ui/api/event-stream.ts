/** Server-sent events for the page: typed, with heartbeats, and closed when the page stops reading. */

import { STREAM_HEADERS } from './answers.ts';

export interface EventStream<E extends { readonly type: string }> {
  readonly response: Response;
  send(event: E): void;
  /** Closes the stream. */
  end(): void;
}

const HEARTBEAT_MS = 15_000;
/** Most bytes that wait for a page that does not read; beyond it the stream ends and the page reconnects. */
const MAX_WAITING = 8 * 2 ** 20;

/** @param signal fires when the page disconnects @param onClose called once when the stream ends, on either side */
export function eventStream<E extends { readonly type: string }>(
  signal: AbortSignal,
  onClose: () => void,
): EventStream<E> {
  const encoder = new TextEncoder();
  let controller: ReadableStreamDefaultController<Uint8Array> | undefined;
  let beat: ReturnType<typeof setInterval> | undefined;
  const close = () => {
    if (controller === undefined) return;
    const open = controller;
    controller = undefined;
    clearInterval(beat);
    signal.removeEventListener('abort', close);
    try {
      open.close();
    } catch {
      // The page has cancelled the stream.
    }
    onClose();
  };
  const write = (text: string) => {
    if (controller === undefined) return;
    if ((controller.desiredSize ?? 0) <= 0) close();
    else controller.enqueue(encoder.encode(text));
  };
  const body = new ReadableStream<Uint8Array>(
    {
      start(opened) {
        controller = opened;
      },
      cancel: close,
    },
    new ByteLengthQueuingStrategy({ highWaterMark: MAX_WAITING }),
  );
  beat = setInterval(() => write(': \n\n'), HEARTBEAT_MS);
  beat.unref();
  signal.addEventListener('abort', close);
  return {
    response: new Response(body, { headers: STREAM_HEADERS }),
    // JSON holds no raw line breaks, so one data line is enough.
    send: (event) => write(`event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`),
    end: close,
  };
}
