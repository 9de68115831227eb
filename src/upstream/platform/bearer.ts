/** Requests with a token that runs out: the one at hand, and once more with a new one where it was withdrawn. */

import { FlatHeaders, type ReadonlyHeaders } from '../../lib/http/headers.ts';
import { unlessAborted } from '../../lib/loop/abort.ts';
import type { UpstreamAnswer, UpstreamRequest } from '../transport.ts';
import type { Renewed } from './renewed.ts';

interface Token {
  readonly token: string;
  /** Whose it is, for `doctor`. */
  readonly account: string;
}

export async function sendWithToken<T extends Token>(
  tokens: Renewed<T>,
  request: UpstreamRequest,
  send: (headers: ReadonlyHeaders) => Promise<UpstreamAnswer>,
): Promise<UpstreamAnswer> {
  // A token from elsewhere: the configuration's.
  if (request.headers.has('authorization')) return send(request.headers);
  for (let first = true; ; first = false) {
    const held = tokens.get();
    const token = held instanceof Promise ? await unlessAborted(held, request.abort.signal) : held;
    const headers = FlatHeaders.from(request.headers).where(() => true);
    headers.set('authorization', `Bearer ${token.token}`);
    const answer = await send(headers);
    if (answer.status !== 401) return answer;
    // It was withdrawn before its time.
    tokens.discard(token);
    if (!first) return answer;
    answer.body.cancel();
  }
}
