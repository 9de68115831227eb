/** A stream without `alt=sse`: the same chunks as the elements of one JSON array. */

import { SseParser } from '../../../lib/bytes/sse.ts';

/**
 * The array as it grows. Keep-alives become white space. An error, which is the last chunk, is the last element:
 * then the array is closed, but the connection is reset all the same.
 */
export class JsonArrayWriter {
  readonly #parser = new SseParser({ raw: false });
  #count = 0;

  push(bytes: Uint8Array): string {
    let out = '';
    for (const { data } of this.#parser.push(bytes)) {
      if (data === undefined || data === '') continue;
      out += this.#count++ === 0 ? `[${data}` : `,\r\n${data}`;
    }
    return out === '' ? '\n' : out;
  }

  end(): string {
    let out = '';
    for (const { data } of this.#parser.end()) {
      if (data === undefined || data === '') continue;
      out += this.#count++ === 0 ? `[${data}` : `,\r\n${data}`;
    }
    return `${out}${this.#count === 0 ? '[' : '\r\n'}]`;
  }
}

/** The response of a stream as a JSON array, sent on as it comes; any other response as it is. */
export function asJsonArray(response: Response): Response {
  const { body, headers, status } = response;
  if (body === null || !headers.get('content-type')?.includes('event-stream')) return response;
  const reader = body.getReader();
  const writer = new JsonArrayWriter();
  const utf8 = new TextEncoder();
  const array = new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        try {
          const { done, value } = await reader.read();
          if (!done) {
            controller.enqueue(utf8.encode(writer.push(value)));
            return;
          }
          controller.enqueue(utf8.encode(writer.end()));
          controller.close();
        } catch (thrown) {
          // The connection is reset, so that no client takes a cut answer for a whole one.
          controller.error(thrown);
        }
      },
      cancel: (reason) => reader.cancel(reason),
    },
    { highWaterMark: 0 },
  );
  const own = new Headers(headers);
  own.set('content-type', 'application/json; charset=utf-8');
  return new Response(array, { status, headers: own });
}
