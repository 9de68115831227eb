/** The body of a response that is made later than in the turn of its request. */

// Bun 1.4.5 gathers such a response for one write only up to 16 KB, head and body together. Of a larger one each part of
// the head (name, separator, value) is a system call, 23 for four fields. A stream that closes at once is one write, and
// has its length in the head, too.
const GATHERED_BYTES = 8 * 1024;
// The stream copies its bytes: beyond this, that costs more than the calls.
export const COPIED_BYTES = 256 * 1024;

interface Sink {
  write(chunk: Uint8Array | string): unknown;
  close(): void;
}

/** The same bytes, as `new Response` is to take them. */
export function lateBody(body: Uint8Array | string): Uint8Array | string | ReadableStream {
  if (body.length <= GATHERED_BYTES || body.length > COPIED_BYTES) return body;
  const source = {
    type: 'direct',
    pull(sink: Sink) {
      sink.write(body);
      sink.close();
    },
  };
  return new ReadableStream(source as never, { highWaterMark: 2 * COPIED_BYTES });
}
