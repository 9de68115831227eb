/** Sends requests over the WebSocket of a vendor, if it has one, and over HTTP if that fails. */

import { TURN_STATE } from '../../conversation/session/turn-state.ts';
import { FlatHeaders } from '../../lib/http/headers.ts';
import type { AbortListener } from '../../lib/loop/abort.ts';
import {
  type Transport,
  type UpstreamAnswer,
  type UpstreamRequest,
  type UpstreamTls,
  wholeBody,
} from '../transport.ts';
import { type CreateRequest, createRequest } from './create-frame.ts';
import { NoSocketAnswer, type SocketPlace, VendorSocket } from './vendor-socket.ts';

export interface SocketTransportOptions {
  /** For everything else, and for what could not be sent on a socket. */
  readonly http: Transport;
  readonly proxy: string | undefined;
  readonly tls: (() => Promise<UpstreamTls>) | undefined;
  readonly connectMs: number;
  readonly mostBytes: number;
}

/** After a handshake failed, no other is tried for so long. */
const WITHOUT_MS = 60_000;
/** Vendors close a connection after an hour: an older one is not used again. */
const MAX_AGE_MS = 55 * 60_000;
/** A socket that nothing asks on is closed. */
const IDLE_MS = 5 * 60_000;
/** Of one place (a client with its session, as a rule), and of all. */
const MAX_IDLE = 16;
const MAX_PLACES = 256;

const BETA = 'openai-beta';
const SOCKET_BETA = 'responses_websockets=2026-02-06';
/** Of a request with a body, or of its hop. */
const NOT_OF_A_HANDSHAKE = new Set([
  'accept',
  'accept-encoding',
  'content-type',
  'content-length',
  // Of one turn; a socket serves many.
  TURN_STATE,
]);

/**
 * Sends streamed requests to `…/responses` as frames. A socket answers one request at a time. It is used again by
 * requests of the same client's key with the very same headers, since those were sent with its handshake. A request that continues the last
 * response of its socket goes out as what is new.
 */
export function socketTransport(options: SocketTransportOptions): Transport {
  return new SocketTransport(options).send;
}

class SocketTransport {
  /** By the client's key, URL and headers. */
  readonly #idle = new Map<string, VendorSocket[]>();
  #without = Number.NEGATIVE_INFINITY;

  constructor(private readonly options: SocketTransportOptions) {}

  readonly send: Transport = async (request) => {
    const { http } = this.options;
    const { url, method } = request;
    const body = method === 'POST' && /\/responses(?:\?|$)/.test(url) && wholeBody(request);
    if (!body) return http(request);
    const reading = createRequest(body);
    const read = reading instanceof Promise ? await reading : reading;
    if (read === undefined) return http(request);
    const asked = read.inTurn(FlatHeaders.from(request.headers).get(TURN_STATE));
    try {
      return await this.#onSocket(request, asked);
    } catch (thrown) {
      if (!(thrown instanceof NoSocketAnswer) || request.abort.aborted) throw thrown;
      const answer = await http(request);
      return { ...answer, detour: `over HTTP: the WebSocket cannot be used, ${thrown.message}` };
    }
  };

  async #onSocket(request: UpstreamRequest, asked: CreateRequest): Promise<UpstreamAnswer> {
    const { abort } = request;
    const { key, place } = this.#placeOf(request);
    const socket = this.#take(key, asked) ?? (await this.#connect(key, await place(), request));
    if (abort.aborted) throw abort.reason;
    return socket.ask(asked, abort);
  }

  #placeOf({ url, headers: given, owner }: UpstreamRequest) {
    const headers = FlatHeaders.from(given).where((name) => !NOT_OF_A_HANDSHAKE.has(name));
    const betas = headers.get(BETA);
    headers.set(BETA, betas === null ? SOCKET_BETA : `${betas}, ${SOCKET_BETA}`);
    const socketUrl = url.replace(/^http/i, 'ws');
    const { proxy, tls, connectMs, mostBytes } = this.options;
    return {
      key: `${owner ?? ''}\n${socketUrl}\n${headers.lines(new Set())}`,
      place: async (): Promise<SocketPlace> => ({
        url: socketUrl,
        headers,
        proxy,
        tls: await tls?.(),
        connectMs,
        mostBytes,
      }),
    };
  }

  /** One that the request continues on, else the one that was used last. */
  #take(key: string, asked: CreateRequest): VendorSocket | undefined {
    const sockets = this.#idle.get(key);
    const at = sockets?.findIndex((one) => one.isContinuedBy(asked)) ?? -1;
    if (sockets !== undefined && at >= 0) sockets.push(...sockets.splice(at, 1));
    for (let socket = sockets?.pop(); socket !== undefined; socket = sockets?.pop()) {
      if (sockets?.length === 0) this.#idle.delete(key);
      if (socket.usable && performance.now() - socket.since < MAX_AGE_MS) return socket;
      socket.close();
    }
    return undefined;
  }

  async #connect(
    key: string,
    place: SocketPlace,
    { abort, onConnected }: UpstreamRequest,
  ): Promise<VendorSocket> {
    if (performance.now() < this.#without) throw new NoSocketAnswer('its last handshake failed');
    const made = new VendorSocket(place, (socket) => this.#keep(key, socket));
    const listener: AbortListener = { onAbort: () => made.close() };
    abort.listen(listener);
    try {
      await made.opened;
    } catch (thrown) {
      if (abort.aborted) throw abort.reason;
      this.#without = performance.now() + WITHOUT_MS;
      throw thrown;
    } finally {
      abort.unlisten(listener);
    }
    onConnected?.();
    return made;
  }

  #keep(key: string, socket: VendorSocket): void {
    if (!socket.usable) return;
    const sockets = this.#idle.get(key) ?? [];
    if (sockets.length >= MAX_IDLE || this.#idle.size >= MAX_PLACES) {
      socket.close();
      return;
    }
    sockets.push(socket);
    this.#idle.set(key, sockets);
    setTimeout(() => {
      const at = this.#idle.get(key)?.indexOf(socket) ?? -1;
      if (at < 0) return;
      this.#idle.get(key)?.splice(at, 1);
      if (this.#idle.get(key)?.length === 0) this.#idle.delete(key);
      socket.close();
    }, IDLE_MS).unref();
  }
}
