/** An upstream's body as plain bytes, whatever encoding it came in although none was asked for. */

const FORMATS: Readonly<Record<string, string>> = {
  gzip: 'gzip',
  'x-gzip': 'gzip',
  deflate: 'deflate',
  br: 'brotli',
  zstd: 'zstd',
};

const EMPTY = () => new Response('').body ?? new ReadableStream<Uint8Array>();

/** The body and the headers that describe it: once decoded, `content-encoding` no longer does. */
export function decoded(response: Response): {
  stream: ReadableStream<Uint8Array>;
  headers: Headers;
} {
  const stream = response.body ?? EMPTY();
  const encoding = response.headers.get('content-encoding')?.trim().toLowerCase();
  const format = encoding === undefined ? undefined : FORMATS[encoding];
  if (format === undefined) return { stream, headers: response.headers };
  const headers = new Headers(response.headers);
  headers.delete('content-encoding');
  headers.delete('content-length');
  const plain = stream.pipeThrough(
    new DecompressionStream(format as 'gzip') as unknown as ReadableWritablePair<
      Uint8Array,
      Uint8Array
    >,
  );
  return { stream: plain, headers };
}
