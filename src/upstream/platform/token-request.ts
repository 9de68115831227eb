/** Requests for tokens: small, with a deadline, the way that the provider's own requests go. */

import { FlatHeaders, type ReadonlyHeaders } from '../../lib/http/headers.ts';
import { isLocalNetwork, plainHost } from '../../lib/http/local-address.ts';
import { Abort } from '../../lib/loop/abort.ts';
import { redactText } from '../../lib/text/redact.ts';
import { maskLiterals, secretLiterals } from '../../lib/text/secret-literals.ts';
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

/** Members of a request for a token that prove who asks. */
const PROOFS = ['assertion', 'client_assertion', 'client_secret', 'refresh_token', 'subject_token'];

export function proofsIn(form: string | undefined): readonly string[] {
  if (form === undefined) return [];
  const asked = new URLSearchParams(form);
  return PROOFS.flatMap((name) => asked.get(name) || []);
}

/** What a token service says, without the proofs that it quotes and without anything else that looks like a credential. */
export const saidWithout = (said: string, proofs: readonly string[]): string =>
  redactText(maskLiterals(said, secretLiterals(proofs))).text.slice(0, 300);

/**
 * A `fetch` for libraries that want one. What is in this machine's own network, as metadata servers are, is asked
 * directly: no proxy reaches it.
 * @param proofs gets what was sent to prove who asks
 */
export function tokenFetch(transport: Transport, proofs: string[]): typeof fetch {
  const send = async (input: string | URL | Request, init: RequestInit = {}): Promise<Response> => {
    const url = new URL(input instanceof Request ? input.url : input);
    const { method = 'GET', body: sent } = init;
    const headers = new Headers(init.headers);
    const carried = new Response(sent);
    // A form says itself what it is, before it is read.
    const type = carried.headers.get('content-type');
    const form = sent == null ? undefined : await carried.text();
    if (type !== null && !headers.has('content-type')) headers.set('content-type', type);
    proofs.push(...proofsIn(form));
    if (isLocalNetwork(plainHost(url.hostname)) || (method !== 'GET' && method !== 'POST')) {
      const signal = AbortSignal.timeout(DEADLINE_MS);
      const body = form === undefined ? {} : { body: form };
      // A redirect would take the machine's proof to another host.
      return fetch(url, { ...init, headers, ...body, signal, redirect: 'manual' });
    }
    const answer = await tokenRequest(transport, {
      url: url.href,
      method,
      headers: Object.fromEntries(headers),
      body: form,
    });
    const { status } = answer;
    const body = status === 204 ? null : Buffer.from(answer.bytes);
    return new Response(body, { status, headers: FlatHeaders.from(answer.headers).record() });
  };
  return Object.assign(send, { preconnect: () => {} });
}
