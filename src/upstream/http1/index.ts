/** An HTTP/1.1 client with keep-alive connections, on sockets of this event loop. */

import type { Transport, UpstreamAnswer, UpstreamRequest, UpstreamTls } from '../transport.ts';
import { Connection } from './connection.ts';
import { OtherScheme, speaksTls } from './other-scheme.ts';
import { type Origin, type Place, placeOf, RequestBytes } from './request-bytes.ts';
import { MalformedReply } from './response-parser.ts';

// Most idle connections for one server; without a limit, one peak would hold its sockets until they time out.
const MAX_IDLE = 256;
// Under load a connection is used again within milliseconds. Only one that is idle for longer is parked.
const PARK_MS = 50;
// A server that hangs up now and then is not asked each time whether it wants TLS.
const ASK_AGAIN_MS = 60_000;

/**
 * Requests over kept connections. Bun's fetch hands every chunk from a thread of its own to this one,
 * which costs more than reading it here. Redirects are answers like any other, nothing is decoded, and there
 * is no time limit but the caller's, and `connectMs` for a new connection (left out: none).
 */
export function http1Transport(tls?: () => Promise<UpstreamTls>, connectMs?: number): Transport {
  const idle = new Map<string, Connection[]>();
  // One provider has few URLs: reading the same one again and again can be spared.
  let last: { readonly url: string; readonly place: Place } | undefined;
  const placeFor = (url: string): Place => {
    if (last?.url !== url) last = { url, place: placeOf(url) };
    return last.place;
  };
  const kept = (key: string): Connection[] => {
    const known = idle.get(key);
    if (known !== undefined) return known;
    const fresh: Connection[] = [];
    idle.set(key, fresh);
    return fresh;
  };
  let parking = false;
  const park = () => {
    parking = false;
    for (const free of idle.values()) for (const connection of free) connection.park();
  };

  /** A server of TLS takes a plain request for a broken handshake: it hangs up, or answers with an alert. */
  let askedAt = Number.NEGATIVE_INFINITY;
  const explain = async (thrown: unknown, { hostname, port }: Origin): Promise<never> => {
    const { code } = thrown as { code?: unknown };
    const isDoubtful =
      code === 'ECONNRESET' || code === 'EPIPE' || thrown instanceof MalformedReply;
    const now = performance.now();
    if (!isDoubtful || now - askedAt < ASK_AGAIN_MS) throw thrown;
    askedAt = now;
    if (!(await speaksTls(hostname, port))) throw thrown;
    // The next request is told the same.
    askedAt = Number.NEGATIVE_INFINITY;
    throw new OtherScheme('https');
  };

  const fresh = async (
    request: UpstreamRequest,
    { origin }: Place,
    bytes: RequestBytes,
    free: Connection[],
  ): Promise<UpstreamAnswer> => {
    const options = (origin.tls && (await tls?.())) || {};
    const connection = await Connection.open(
      origin,
      options,
      request.abort,
      {
        idle(freed) {
          if (free.length >= MAX_IDLE) return freed.end();
          free.push(freed);
          if (parking) return;
          parking = true;
          setTimeout(park, PARK_MS);
        },
        closed(gone) {
          const at = free.indexOf(gone);
          if (at >= 0) free.splice(at, 1);
        },
      },
      connectMs,
    );
    request.onConnected?.();
    const answer = connection.send(bytes, request.abort, request.limits);
    return origin.tls ? answer : answer.catch((thrown) => explain(thrown, origin));
  };

  return (request) => {
    const { abort } = request;
    if (abort.aborted) return Promise.reject(abort.reason);
    let place: Place;
    let bytes: RequestBytes;
    try {
      place = placeFor(request.url);
      bytes = new RequestBytes(place, request);
    } catch (thrown) {
      return Promise.reject(thrown);
    }
    const free = kept(place.origin.key);
    // A body that is read while it is sent cannot be sent again: no kept connection is trusted with it.
    if (bytes.stream !== undefined) return fresh(request, place, bytes, free);
    // The one used last is the one least likely to have been closed meanwhile.
    const known = free.pop();
    const again = () => fresh(request, place, bytes, free);
    return known === undefined ? again() : known.send(bytes, abort, request.limits, again);
  };
}
