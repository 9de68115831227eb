/** Idle timeouts of client connections, and a bound on the bytes of unfinished bodies. */

import { GatewayError } from '../conversation/errors.ts';
import { KeptBytes } from '../lib/bytes/kept-bytes.ts';
import { atTickEnd, type TickTask } from '../lib/loop/tick-end.ts';

/** What is needed of the server that runs. */
export interface Patience {
  /** Requests that came and are not answered whole; a closed connection takes its own along at once. */
  readonly pendingRequests: number;
  /** Closes the connection of this request after so many seconds of silence; 0 = never. */
  timeout(request: Request, seconds: number): void;
  /** The other end of its connection; null once that is closed. */
  requestIP(request: Request): { readonly address: string } | null;
}

export interface ConnectionLimits {
  /** Milliseconds; 0 = no limit. */
  readonly idleMs: number;
  /** Milliseconds in which a body must go on; 0 = no limit. */
  readonly bodyIdleMs: number;
  /** Bytes of unfinished bodies, of all clients together; 0 = no limit. */
  readonly unfinishedBytes: number;
  /** Bytes of the large bodies of exchanges that run, of all clients together; 0 = no limit. */
  readonly runningBytes: number;
}

/** The large body of an exchange that runs. */
export interface Held {
  readonly owner: string;
  readonly bytes: number;
}

/** What must have come of a body by the time that silence is forgiven once more. */
export const PROGRESS_BYTES = 64 * 1024;

const RETRY_AFTER_S = 2;

/** Bytes. Thousands of smaller bodies at a time are no more memory than their connections. */
const LARGE_BODY = 256 * 1024;

// The runtime looks at its timers every four seconds: of one that is to run for three, none may be left.
const GRAIN_S = 4;

/** Seconds for a timer of the runtime that runs no shorter than this, and up to four seconds longer; 0 = never. */
export const timerSeconds = (ms: number): number => (ms <= 0 ? 0 : Math.ceil(ms / 1000) + GRAIN_S);

/**
 * The runtime closes a connection by a timer that is set by request and is not moved by what comes in; so it is
 * set again at each step: while the body is read, off while the answer is made (a model may think for minutes),
 * and on again when the exchange is over.
 */
export class Connections implements TickTask {
  #server: Patience | undefined;
  readonly #unfinished = new KeptBytes(() => this.limits.unfinishedBytes);
  readonly #running = new KeptBytes(() => this.limits.runningBytes);
  readonly #cutting = new AbortController();
  /** Ends each body that is still being received. */
  readonly #uploads = new Set<(error: GatewayError) => void>();
  /** The number of this turn of the event loop; 0: no request has come in it. */
  #turn = 0;
  #turns = 0;
  /** Pending requests when the last one came. */
  #pending = 0;
  /** Every connection with a request in the last turn was open at its end. */
  #allOpen = false;

  constructor(private limits: ConnectionLimits) {}

  /** Until a server is there (and for requests that come without one) nothing is limited but memory. */
  attach(server: Patience): void {
    this.#server = server;
  }

  configure(limits: ConnectionLimits): void {
    this.limits = limits;
  }

  /**
   * A request arrives. The server calls this first, for every request. Asking for the address of a connection is
   * a system call that costs as much as the rest of this class, so requests are counted instead: as long as each
   * one adds to the pending requests, no connection has been closed.
   */
  arrived(): void {
    if (this.#server === undefined) return;
    const pending = this.#server.pendingRequests;
    if (this.#turn === 0) {
      this.#turn = ++this.#turns;
      this.#allOpen = true;
      atTickEnd(this);
    } else if (pending <= this.#pending) this.#allOpen = false;
    this.#pending = pending;
  }

  onTickEnd(): void {
    this.#turn = 0;
    if (this.#server !== undefined && this.#server.pendingRequests < this.#pending) {
      this.#allOpen = false;
    }
  }

  /** Number of the turn in which a new request is served; 0 without a server. For {@link closed}. */
  get turn(): number {
    return this.#turn;
  }

  /** The address at the other end; undefined once the connection is closed, and without a server. */
  peerOf(request: Request): string | undefined {
    return this.#server?.requestIP(request)?.address;
  }

  /** Milliseconds in which a body must go on; 0 = no limit. */
  get bodyIdleMs(): number {
    return this.limits.bodyIdleMs;
  }

  /** Aborts with {@link cutAll}. */
  get cutting(): AbortSignal {
    return this.#cutting.signal;
  }

  /** Ends all exchanges, and requests whose body is still under way, each in the words of its protocol. */
  cutAll(error: GatewayError): void {
    this.#cutting.abort(error);
    for (const end of this.#uploads) end(error);
  }

  /** Waits for a body; rejects with {@link cutAll}. */
  uploaded<T>(reading: Promise<T>): Promise<T> {
    if (this.cutting.aborted) return Promise.reject(this.cutting.reason);
    return new Promise((done, failed) => {
      this.#uploads.add(failed);
      reading.then(
        (read) => {
          this.#uploads.delete(failed);
          done(read);
        },
        (thrown) => {
          this.#uploads.delete(failed);
          failed(thrown);
        },
      );
    });
  }

  /** Its body is read: so many bytes may take the time of a slow line, and no longer. */
  reading(request: Request, bytes: number): void {
    const { bodyIdleMs } = this.limits;
    const ms = bodyIdleMs <= 0 ? 0 : bodyIdleMs + (bytes / PROGRESS_BYTES) * 1000;
    this.#server?.timeout(request, timerSeconds(ms));
  }

  /** Its answer is made, however long that takes. */
  working(request: Request): void {
    this.#server?.timeout(request, 0);
  }

  /** Its answer is made; the connection waits for the next request. */
  resting(request: Request): void {
    this.#server?.timeout(request, timerSeconds(this.limits.idleMs));
  }

  /**
   * Is the connection closed already? The runtime closes one on which a second request stands behind the
   * first, which is then not to be answered. To be asked at the end of the turn in which the body came whole.
   * @param atOnce the request itself came in that turn, too
   */
  closed(request: Request, atOnce: boolean): boolean {
    if (atOnce && this.#allOpen) return false;
    if (this.#server === undefined || this.#server.requestIP(request) !== null) return false;
    // Of a copy the server knows nothing.
    return request.signal.aborted;
  }

  /** Who holds the body of a request: its key, else the other end of its connection. */
  ownerOf(request: Request, key: string): string {
    return key === '' ? `@${this.peerOf(request) ?? ''}` : key;
  }

  /**
   * So many bytes of a body have come and are held until {@link release}.
   * @throws GatewayError overloaded when they are more than the owner's share
   */
  hold(owner: string, bytes: number): void {
    if (this.#unfinished.take(owner, bytes)) return;
    throw new GatewayError(
      'overloaded',
      `Bodies of requests that are under way fill this client's share of the ${this.limits.unfinishedBytes} bytes there are for them (limits.unfinished_bytes).`,
      { retryAfter: RETRY_AFTER_S, code: 'too_many_uploads' },
    );
  }

  release(owner: string, bytes: number): void {
    this.#unfinished.give(owner, bytes);
  }

  /**
   * A body came whole. It stays in memory until its exchange is over and {@link ended} is called with what this
   * returns. Small bodies are not counted.
   * @throws GatewayError overloaded when they are more than the owner's share
   */
  begun(request: Request, key: string, bytes: number): Held | undefined {
    if (bytes < LARGE_BODY) return undefined;
    const owner = this.ownerOf(request, key);
    if (this.#running.take(owner, bytes)) return { owner, bytes };
    throw new GatewayError(
      'overloaded',
      `Large bodies of requests that run fill this client's share of the ${this.limits.runningBytes} bytes there are for them (limits.running_bytes).`,
      { retryAfter: RETRY_AFTER_S, code: 'too_many_large_requests' },
    );
  }

  ended(held: Held | undefined): void {
    if (held !== undefined) this.#running.give(held.owner, held.bytes);
  }
}
