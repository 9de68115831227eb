/** Server-sent events to the page: typed, kept alive, given up when nobody reads. */

import { STREAM_HEADERS } from './answers.ts';

export interface EventStream<E extends { readonly type: string }> {
  readonly response: Response;
  send(event: E): void;
  /** Nothing more comes. */
  end(): void;
}

export interface EventStreamOptions {
  /** Fires when the page goes away. */
  readonly signal: AbortSignal;
  /** Called once, whoever ended it. */
  readonly onClose: () => void;
  /** Milliseconds between two signs of life. */
  readonly heartbeat?: number;
}

/** Bytes that may wait for a page that does not read; beyond it the stream ends and the page asks again. */
const PATIENCE = 8 * 2 ** 20;

export function eventStream<E extends { readonly type: string }>(
  options: EventStreamOptions,
): EventStream<E> {
  const encoder = new TextEncoder();
  let controller: ReadableStreamDefaultController<Uint8Array> | undefined;
  let beat: ReturnType<typeof setInterval> | undefined;
  const close = () => {
    if (controller === undefined) return;
    const open = controller;
    controller = undefined;
    clearInterval(beat);
    options.signal.removeEventListener('abort', close);
    try {
      open.close();
    } catch {
      // It was cancelled from the other side.
    }
    options.onClose();
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
    new ByteLengthQueuingStrategy({ highWaterMark: PATIENCE }),
  );
  beat = setInterval(() => write(': \n\n'), options.heartbeat ?? 15_000);
  beat.unref();
  options.signal.addEventListener('abort', close);
  return {
    response: new Response(body, { headers: STREAM_HEADERS }),
    // JSON has no line breaks of its own, so one data line is always enough.
    send: (event) => write(`event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`),
    end: close,
  };
}
