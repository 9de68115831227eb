/** An upstream's body as plain bytes, whatever encoding it came in although none was asked for. */

import { memberOf } from '../lib/json-members.ts';

const FORMATS: Readonly<Record<string, string>> = {
  gzip: 'gzip',
  'x-gzip': 'gzip',
  deflate: 'deflate',
  br: 'brotli',
  zstd: 'zstd',
};

const EMPTY = () => new Response('').body ?? new ReadableStream<Uint8Array>();

/** An upstream's body, untouched until one of the two is called. */
export interface Body {
  /** The headers that describe it: once decoded, `content-encoding` no longer does. */
  readonly headers: Headers;
  stream(): ReadableStream<Uint8Array>;
  /** All of it at once; cheaper than the stream. */
  bytes(): Promise<Uint8Array>;
}

export function decoded(response: Response): Body {
  const encoding = response.headers.get('content-encoding')?.trim().toLowerCase();
  const format = encoding === undefined ? undefined : memberOf(FORMATS, encoding);
  if (format === undefined) {
    return {
      headers: response.headers,
      stream: () => response.body ?? EMPTY(),
      bytes: () => response.bytes(),
    };
  }
  const headers = new Headers(response.headers);
  headers.delete('content-encoding');
  headers.delete('content-length');
  const stream = () =>
    (response.body ?? EMPTY()).pipeThrough(
      new DecompressionStream(format as 'gzip') as unknown as ReadableWritablePair<
        Uint8Array,
        Uint8Array
      >,
    );
  return { headers, stream, bytes: () => new Response(stream()).bytes() };
}
