/** Requests for tokens: small, with a deadline, the way that the provider's own requests go. */

import { FlatHeaders, type ReadonlyHeaders } from '../../lib/http/headers.ts';
import { isLocalNetwork, plainHost } from '../../lib/http/local-address.ts';
import { Abort } from '../../lib/loop/abort.ts';
import type { Transport } from '../transport.ts';

const DEADLINE_MS = 10_000;
const MAX_BYTES = 256 * 1024;

export interface TokenRequest {
  readonly url: string;
  readonly method: 'GET' | 'POST';
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string | Uint8Array | undefined;
}

export interface TokenAnswer {
  readonly status: number;
  readonly headers: ReadonlyHeaders;
  readonly bytes: Uint8Array;
}

/** What the connection sets itself. */
const OWN_HEADERS: ReadonlySet<string> = new Set(['host', 'content-length', 'connection']);

/** @throws what the transport throws, and when no answer comes in time */
export async function tokenRequest(
  transport: Transport,
  { url, method, headers, body }: TokenRequest,
): Promise<TokenAnswer> {
  const abort = new Abort();
  const timer = setTimeout(() => abort.abort(new Error('no answer in time')), DEADLINE_MS);
  const own = FlatHeaders.of(headers).where((name) => !OWN_HEADERS.has(name));
  own.set('accept-encoding', 'identity');
  try {
    const answer = await transport({
      url,
      method,
      headers: own,
      abort,
      ...(body !== undefined && { body: Buffer.from(body as string) }),
    });
    return {
      status: answer.status,
      headers: answer.headers,
      bytes: await answer.body.readAll(MAX_BYTES),
    };
  } finally {
    clearTimeout(timer);
  }
}

/**
 * A `fetch` for libraries that want one. What is in this machine's own network, as metadata servers are, is asked
 * directly: no proxy reaches it.
 */
export function tokenFetch(transport: Transport): typeof fetch {
  const send = async (input: string | URL | Request, init: RequestInit = {}): Promise<Response> => {
    const url = new URL(input instanceof Request ? input.url : input);
    const { method = 'GET', body: sent } = init;
    if (isLocalNetwork(plainHost(url.hostname)) || (method !== 'GET' && method !== 'POST')) {
      return fetch(url, { ...init, signal: AbortSignal.timeout(DEADLINE_MS) });
    }
    const { status, headers, bytes } = await tokenRequest(transport, {
      url: url.href,
      method,
      headers: Object.fromEntries(new Headers(init.headers)),
      body: sent == null ? undefined : await new Response(sent).text(),
    });
    const body = status === 204 ? null : Buffer.from(bytes);
    return new Response(body, { status, headers: FlatHeaders.from(headers).record() });
  };
  return Object.assign(send, { preconnect: () => {} });
}
