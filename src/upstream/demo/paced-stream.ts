/** Streams frames at reading speed, on demand; an abort ends the stream at once. */

import type { Frame } from './chat-reply.ts';

const utf8 = new TextEncoder();

/**
 * @param pace milliseconds before each frame that says something; 0: none
 * @param signal aborting it errors the stream with its reason, also in the middle of a pause
 */
export function pacedStream(
  frames: Iterator<Frame>,
  pace: number,
  signal: AbortSignal,
): ReadableStream<Uint8Array> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  let wake: (() => void) | undefined;
  let over = false;
  const pause = () =>
    new Promise<void>((resolve) => {
      wake = resolve;
      timer = setTimeout(resolve, pace);
    });
  const end = () => {
    over = true;
    clearTimeout(timer);
    wake?.();
  };
  let onAbort: (() => void) | undefined;
  const leave = () => {
    end();
    if (onAbort) signal.removeEventListener('abort', onAbort);
  };
  return new ReadableStream<Uint8Array>(
    {
      start(controller) {
        onAbort = () => {
          leave();
          controller.error(signal.reason);
        };
        if (signal.aborted) onAbort();
        else signal.addEventListener('abort', onAbort);
      },
      async pull(controller) {
        const next = frames.next();
        if (next.done) {
          leave();
          controller.close();
          return;
        }
        if (pace > 0 && next.value.paced) await pause();
        if (!over) controller.enqueue(utf8.encode(next.value.text));
      },
      cancel: leave,
    },
    // Pull alone decides: a reader that stalls stalls the model.
    { highWaterMark: 0 },
  );
}
