/** The network by Bun's fetch, for what only it can do: proxies and HTTP/2. */

import { HeaderList } from '../lib/header-list.ts';
import type { ChunkSource, Taker, Transport, UpstreamAnswer, UpstreamTls } from './transport.ts';

export interface FetchOptions {
  readonly proxy?: string;
  readonly http2?: boolean;
  readonly tls?: () => Promise<UpstreamTls>;
}

/**
 * Bun's fetch with everything off that would come between: no decompression, no timeout of its own
 * (6 minutes by default, which kills models that think), no redirects with the key in hand.
 */
export function fetchTransport({ proxy, http2, tls }: FetchOptions = {}): Transport {
  const extra: Record<string, unknown> = {};
  if (proxy !== undefined) extra.proxy = proxy;
  if (http2) extra.protocol = 'http2';
  return async ({ url, method, headers, body, abort }) =>
    answerOf(
      await fetch(url, {
        method,
        headers: HeaderList.from(headers).record(),
        body: body as Uint8Array<ArrayBuffer> | undefined,
        signal: abort.signal,
        redirect: 'manual',
        decompress: false,
        timeout: false,
        ...(tls === undefined ? {} : { tls: await tls() }),
        ...extra,
      } as RequestInit),
    );
}

/** A web response as an upstream's answer. */
export const answerOf = (response: Response): UpstreamAnswer => ({
  status: response.status,
  headers: response.headers,
  body: streamSource(
    () => response.body,
    () => response.bytes(),
  ),
});

type Batch = { readonly done: boolean; readonly value?: readonly Uint8Array[] };
type Reader = ReadableStreamDefaultReader<Uint8Array> & { readMany(): Batch | Promise<Batch> };

const taken = ({ done, value }: Batch) => {
  if (value !== undefined && value.length > 0) return value;
  return done ? undefined : [];
};

/** A web stream as a source; `bytes`: a cheaper way to all of it. */
export function streamSource(
  stream: () => ReadableStream<Uint8Array> | null,
  bytes: () => Promise<Uint8Array> = async () => new Response(stream()).bytes(),
): ChunkSource {
  let reader: Reader | undefined;
  let cancelled = false;
  let stirred = false;
  let slow: Promise<void> | undefined;
  const came = (batch: Batch) => {
    stirred = true;
    return taken(batch);
  };
  const next = () => {
    if (cancelled) return undefined;
    reader ??= stream()?.getReader() as Reader | undefined;
    const many = reader?.readMany();
    if (many === undefined) return undefined;
    return many instanceof Promise ? many.then(came) : came(many);
  };
  return {
    next,
    async each(taker: Taker) {
      for (let batch = await next(); batch !== undefined; batch = await next()) {
        for (const chunk of batch) {
          slow = taker.take(chunk);
          if (slow !== undefined) await slow;
          slow = undefined;
        }
      }
    },
    stirred() {
      const told = stirred || slow !== undefined;
      stirred = false;
      return told;
    },
    all: bytes,
    cancel() {
      if (cancelled) return;
      cancelled = true;
      const gone = reader === undefined ? stream()?.cancel() : reader.cancel();
      // A stream that has failed already says so again.
      gone?.catch(() => {});
    },
  };
}
