/** One connection to an upstream: requests one after the other, each with its answer (RFC 9112 §9). */

import type { Socket } from 'bun';
import type { Abort, AbortListener } from '../../lib/loop/abort.ts';
import { startIdleTimer } from '../../lib/loop/idle-timer.ts';
import { atTickEnd, type TickTask } from '../../lib/loop/tick-end.ts';
import type { RequestStream, UpstreamAnswer, UpstreamTls } from '../transport.ts';
import { OtherScheme, speaksHttp } from './other-scheme.ts';
import type { Origin, RequestBytes } from './request-bytes.ts';
import { RequestPump } from './request-pump.ts';
import type { HeadLimits } from './response-parser.ts';
import { type ConnectionControl, type PendingResponse, ResponseStream } from './response-stream.ts';

// Servers and what stands before them keep idle connections for 5 to 75 s; a request that comes too late fails at once.
const IDLE_SECONDS = 50;
// A name may lead to another address by then: what is asked after an answer, over a new connection, finds it.
const MAX_AGE_MS = 5 * 60_000;
// Routers forget silent connections after some minutes, and models think for longer.
const KEEP_ALIVE_MS = 30_000;
// System calls copy this much in some 200 µs: what others wait for, and few turns of the event loop for a large body.
const TURN_BYTES = 512 * 1024;
// A handshake takes a few round trips. A server of plain HTTP may wait for the rest of what it takes for a request.
const SILENT_HANDSHAKE_MS = 1000;
// What OpenSSL's kin say of bytes that are no record of TLS: https://commondatastorage.googleapis.com/chromium-boringssl-docs/ssl.h.html
const NO_TLS = /WRONG_VERSION_NUMBER|HTTP_REQUEST/;
// As a URL leaves it: IPv4 in four numbers, IPv6 with colons.
const ADDRESS = /^[\d.]+$|:/;
// The protocol list of ALPN: each name behind its length (RFC 7301 §3.1).
const ALPN_HTTP1 = '\x08http/1.1';

// Up to this much a request is laid out here, head and body, to be one packet and one system call; what the
// socket does not take of it is copied out at once.
const SCRATCH = Buffer.allocUnsafeSlow(64 * 1024);

/** A connection that was kept turned out to be closed before anything of the answer came. */
const STALE = Symbol('stale connection');

/** A connection did not stand in time, its TLS included. */
export class NotConnected extends Error {
  readonly code = 'ETIMEDOUT';

  constructor(readonly ms: number) {
    super(`no connection within ${ms} ms`);
  }
}

const reset = () =>
  Object.assign(new Error('The connection was closed.'), { code: 'ECONNRESET' as const });

export interface ConnectionEvents {
  /** Free for the next request. */
  idle(connection: Connection): void;
  closed(connection: Connection): void;
}

export class Connection implements TickTask, AbortListener, ConnectionControl {
  // First what every chunk has to do with: of a paced stream it is all out of the cache.
  #socket: Socket<Connection> | undefined;
  /** A part of the current request is written: what comes may be its answer. */
  #asked = false;
  /** What came in this turn, and is read at its end: the first piece, and those that seldom follow it. */
  #came: Buffer | undefined;
  #cameAfter: Buffer[] | undefined;
  #due = false;
  #reply: ResponseStream | undefined;
  #gone: { readonly error: unknown } | undefined;
  /** Nothing of it has been written. */
  #request: RequestBytes | undefined;
  /** Bytes that the socket did not take; undefined: none. */
  #unsent: Uint8Array[] | undefined;
  /** The rest is written with the next turn. */
  #goesOn = false;
  /** The body that follows, where it is read while it is sent. */
  #pump: RequestPump | undefined;
  #served = 0;
  readonly #since = performance.now();
  #parked = false;
  #closed = false;
  /** Settles `open`. */
  #opening: { resolve(): void; reject(thrown: unknown): void } | undefined;
  #abort: Abort | undefined;

  private constructor(
    private readonly events: ConnectionEvents,
    private readonly tls: boolean,
    private readonly verify: boolean,
  ) {}

  /**
   * Connects; over TLS resolves only once the peer has proved who it is.
   * @throws the system's or OpenSSL's error with its `code`; NotConnected after `connectMs` (0: no limit);
   *   the abort's reason
   */
  static open(
    { tls, hostname, port }: Origin,
    options: UpstreamTls,
    abort: Abort,
    events: ConnectionEvents,
    connectMs = 0,
  ): Promise<Connection> {
    return new Promise((resolve, reject) => {
      const connection = new Connection(events, tls, options.rejectUnauthorized ?? true);
      const watch = startIdleTimer(connectMs, () => {
        connection.#opening?.reject(new NotConnected(connectMs));
      });
      const silence = startIdleTimer(tls ? SILENT_HANDSHAKE_MS : 0, async () => {
        silence.stop();
        const isPlain = connection.#socket !== undefined && (await speaksHttp(hostname, port));
        if (isPlain) connection.#opening?.reject(new OtherScheme('http'));
      });
      const leave = {
        onAbort(reason: unknown) {
          watch.stop();
          silence.stop();
          connection.#close();
          connection.#opening = undefined;
          reject(reason);
        },
      };
      const settled = () => {
        watch.stop();
        silence.stop();
        connection.#opening = undefined;
        abort.unlisten(leave);
      };
      connection.#opening = {
        resolve() {
          settled();
          resolve(connection);
        },
        reject(thrown) {
          settled();
          connection.#close();
          reject(thrown);
        },
      };
      abort.listen(leave);
      Bun.connect<Connection>({
        hostname,
        port,
        data: connection,
        socket: HANDLERS,
        tls: tls && {
          rejectUnauthorized: true,
          ...options,
          // Only names go into the handshake (RFC 6066 §3); an address is compared all the same.
          ...(ADDRESS.test(hostname) ? {} : { serverName: hostname }),
          ALPNProtocols: ALPN_HTTP1,
        },
      }).catch((thrown: unknown) => connection.#opening?.reject(thrown));
    });
  }

  /**
   * Sends a request; one at a time. Where a kept connection turns out to be closed before anything of
   * the answer came, it is sent `again`: that repeats nothing.
   */
  send(
    request: RequestBytes,
    abort: Abort,
    limits: HeadLimits | undefined,
    again?: Again,
  ): Promise<UpstreamAnswer> {
    const waiting = new StaleRetry(again);
    const socket = this.#socket;
    if (this.#closed || socket === undefined) {
      waiting.reject(STALE);
      return waiting.answer;
    }
    this.#reply = new ResponseStream(this, waiting, limits);
    this.#abort = abort;
    abort.listen(this);
    this.#served++;
    if (this.#parked) {
      this.#parked = false;
      socket.ref();
      socket.timeout(0);
    }
    this.#request = request;
    this.#asked = false;
    this.#later();
    return waiting.answer;
  }

  onAbort(reason: unknown): void {
    this.#abandon(reason);
  }

  pause(): void {
    this.#socket?.pause();
  }

  resume(): void {
    this.#socket?.resume();
  }

  drop(): void {
    this.#abandon(new Error('no longer wanted'));
  }

  #later(): void {
    if (this.#due) return;
    this.#due = true;
    atTickEnd(this);
  }

  /** Reads what came, and writes what is to be asked. */
  onTickEnd(): void {
    this.#due = false;
    try {
      this.#readAll();
      if (this.#gone !== undefined) this.#closedBy(this.#gone.error);
      else if (this.#socket !== undefined && !this.#goesOn) this.#write(this.#socket);
    } catch (thrown) {
      this.#abandon(thrown);
    }
  }

  #readAll(): void {
    const came = this.#came;
    if (came === undefined) return;
    const after = this.#cameAfter;
    this.#came = undefined;
    this.#cameAfter = undefined;
    this.#read(came);
    for (const bytes of after ?? []) this.#read(bytes);
  }

  /** Closes a connection that is idle. */
  end(): void {
    this.#closed = true;
    this.#socket?.end();
  }

  /** Closes it in the middle, so that the peer stops at once. */
  #close(): void {
    this.#closed = true;
    this.#socket?.terminate();
  }

  /** Ends the exchange under way with this error; the socket's `close`, which follows at once, knows less. */
  #abandon(why: unknown): void {
    // This may run inside `onData`, which must not put the connection back into the pool.
    this.#closed = true;
    this.#fail(why);
    this.#socket?.terminate();
  }

  #write(socket: Socket<Connection>): void {
    const request = this.#request;
    if (request === undefined) {
      if (this.#unsent !== undefined) this.#flush(socket, this.#unsent);
      return;
    }
    this.#request = undefined;
    this.#pump = request.stream && this.#pumpOf(request.stream, socket);
    if (request.size <= SCRATCH.length && !this.#closed) {
      request.writeTo(SCRATCH);
      const written = socket.write(SCRATCH, 0, request.size);
      this.#asked = true;
      if (written === request.size) {
        this.#pump?.next();
        return;
      }
      this.#unsent = [Buffer.from(SCRATCH.subarray(Math.max(0, written), request.size))];
      return;
    }
    this.#unsent = [...request.pieces];
    this.#flush(socket, this.#unsent);
  }

  /** Writes what the socket takes, and no more in one turn than keeps others waiting unnoticeably. */
  #flush(socket: Socket<Connection>, unsent: Uint8Array[]): void {
    for (let left = TURN_BYTES; unsent.length > 0 && !this.#closed; ) {
      if (left === 0) {
        this.#goesOn = true;
        setImmediate(() => {
          this.#goesOn = false;
          this.#flush(socket, unsent);
        });
        return;
      }
      const part = firstOf(unsent, left);
      const written = socket.write(part);
      this.#asked = true;
      // Below zero: the socket has gone, and its `close` is on the way.
      if (written <= 0 && part.length > 0) return;
      left -= written;
      dropFirst(unsent, written);
      if (written < part.length) return;
    }
    this.#unsent = undefined;
    this.#pump?.next();
  }

  #pumpOf(stream: RequestStream, socket: Socket<Connection>): RequestPump {
    return new RequestPump(stream, {
      send: (pieces) => {
        this.#unsent = pieces;
        this.#flush(socket, pieces);
      },
      fail: (thrown) => this.#abandon(thrown),
    });
  }

  /** The exchange under way has failed. */
  #fail(thrown: unknown): void {
    const reply = this.#reply;
    this.#leave();
    reply?.fail(thrown);
  }

  #leave(): void {
    this.#reply = undefined;
    this.#asked = false;
    this.#pump?.stop();
    this.#abort?.unlisten(this);
    this.#abort = undefined;
  }

  onOpen(socket: Socket<Connection>): void {
    this.#socket = socket;
    if (this.#closed) {
      socket.terminate();
      return;
    }
    socket.setKeepAlive(true, KEEP_ALIVE_MS);
    // Over TLS nothing is sent before the handshake has proved who is there.
    if (!this.tls) this.#opening?.resolve();
  }

  onHandshake(socket: Socket<Connection>, error: unknown): void {
    if (error instanceof Error && NO_TLS.test(error.message)) {
      this.#opening?.reject(new OtherScheme('http'));
      return;
    }
    if (this.verify && (error !== null || !socket.authorized)) {
      this.#opening?.reject(error ?? new Error('The certificate could not be verified.'));
      return;
    }
    this.#opening?.resolve();
  }

  onData(bytes: Buffer): void {
    // An answer to nothing; a request that waits for the end of this turn goes another way.
    if (!this.#asked) {
      this.#close();
      return;
    }
    if (this.#came === undefined) this.#came = bytes;
    else {
      this.#cameAfter ??= [];
      this.#cameAfter.push(bytes);
    }
    this.#later();
  }

  #read(bytes: Buffer): void {
    const reply = this.#reply;
    if (reply === undefined) {
      if (!this.#closed) this.#close();
      return;
    }
    reply.receive(bytes);
    if (reply.parser.malformed !== undefined) {
      this.#leave();
      this.#close();
    } else if (reply.parser.done) this.#answered(reply.parser.reusable);
  }

  #answered(reusable: boolean): void {
    const whole = this.#unsent === undefined && this.#pump?.over !== false;
    this.#leave();
    const socket = this.#socket;
    if (socket === undefined || this.#closed) return;
    // A request that was answered before it was whole leaves the connection in its middle.
    if (!reusable || !whole || performance.now() - this.#since > MAX_AGE_MS) {
      this.end();
      return;
    }
    this.events.idle(this);
  }

  /** It has been idle for a while: it no longer keeps the process alive, and closes later. */
  park(): void {
    if (this.#parked || this.#closed || this.#reply !== undefined) return;
    this.#parked = true;
    this.#socket?.timeout(IDLE_SECONDS);
    this.#socket?.unref();
  }

  onDrain(socket: Socket<Connection>): void {
    if (!this.#goesOn) this.#write(socket);
  }

  onClose(error: unknown): void {
    this.#closed = true;
    this.#gone = { error };
    this.#later();
  }

  #closedBy(error: unknown): void {
    this.#opening?.reject(error ?? reset());
    const reply = this.#reply;
    this.#leave();
    if (reply !== undefined) {
      const stale = this.#served > 1 && !reply.hasBegun;
      if (error === undefined || error === null) reply.closed(stale ? STALE : reset());
      else reply.fail(stale ? STALE : error);
    }
    this.events.closed(this);
  }
}

/** The first bytes of these pieces, `most` at most: the first piece's, or those of several that are small. */
function firstOf(pieces: readonly Uint8Array[], most: number): Uint8Array {
  const first = pieces[0]!;
  if (pieces.length === 1 || first.length >= SCRATCH.length) {
    return first.length > most ? first.subarray(0, most) : first;
  }
  const room = Math.min(most, SCRATCH.length);
  let size = 0;
  for (let i = 0; i < pieces.length && size < room; i++) {
    const piece = pieces[i]!;
    const left = room - size;
    SCRATCH.set(piece.length > left ? piece.subarray(0, left) : piece, size);
    size += Math.min(piece.length, left);
  }
  return SCRATCH.subarray(0, size);
}

/** Takes so many bytes off the front. */
function dropFirst(pieces: Uint8Array[], count: number): void {
  let gone = 0;
  let rest = count;
  while (gone < pieces.length && rest >= pieces[gone]!.length) rest -= pieces[gone++]!.length;
  if (gone > 0) pieces.splice(0, gone);
  if (rest > 0) pieces[0] = pieces[0]!.subarray(rest);
}

type Again = (() => Promise<UpstreamAnswer>) | undefined;

/** A pending response. If the connection turns out to be stale, the request is sent again on another one. */
class StaleRetry implements PendingResponse {
  readonly answer: Promise<UpstreamAnswer>;
  readonly #settle: PromiseWithResolvers<UpstreamAnswer>;

  constructor(private readonly again: Again) {
    this.#settle = Promise.withResolvers();
    this.answer = this.#settle.promise;
  }

  resolve(answer: UpstreamAnswer): void {
    this.#settle.resolve(answer);
  }

  reject(thrown: unknown): void {
    if (thrown !== STALE) this.#settle.reject(thrown);
    else this.#settle.resolve(this.again?.() ?? Promise.reject(reset()));
  }
}

/** The same for all connections: what happens is passed on to the one that it happens to. */
const HANDLERS = {
  open: (socket: Socket<Connection>) => socket.data.onOpen(socket),
  handshake: (socket: Socket<Connection>, _ok: boolean, error: unknown) =>
    socket.data.onHandshake(socket, error),
  data: (socket: Socket<Connection>, bytes: Buffer) => socket.data.onData(bytes),
  drain: (socket: Socket<Connection>) => socket.data.onDrain(socket),
  close: (socket: Socket<Connection>, error?: unknown) => socket.data.onClose(error),
  timeout: (socket: Socket<Connection>) => void socket.terminate(),
  error() {},
};
