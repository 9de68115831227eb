/** How bytes reach an upstream: the network, or the built-in demo model. */

export interface UpstreamRequest {
  readonly url: string;
  readonly method: 'POST' | 'GET';
  readonly headers: Headers;
  readonly body?: Uint8Array;
  readonly signal: AbortSignal;
}

/** Rejects when no answer could be had at all; an answer of any status resolves. */
export type Transport = (request: UpstreamRequest) => Promise<Response>;

export interface FetchOptions {
  readonly proxy?: string;
  readonly http2?: boolean;
  readonly tls?: {
    readonly rejectUnauthorized?: boolean;
    readonly ca?: Blob;
    readonly cert?: Blob;
    readonly key?: Blob;
  };
}

/**
 * Bun's fetch with everything off that would come between: no decompression, no timeout of its own
 * (6 minutes by default, which kills models that think), no redirects with the key in hand.
 */
export function fetchTransport(options: FetchOptions = {}): Transport {
  const extra: Record<string, unknown> = {};
  if (options.proxy !== undefined) extra.proxy = options.proxy;
  if (options.tls !== undefined) extra.tls = options.tls;
  if (options.http2) extra.protocol = 'http2';
  return ({ url, method, headers, body, signal }) =>
    fetch(url, {
      method,
      headers,
      body: body as Uint8Array<ArrayBuffer> | undefined,
      signal,
      redirect: 'manual',
      decompress: false,
      timeout: false,
      ...extra,
    } as RequestInit);
}
