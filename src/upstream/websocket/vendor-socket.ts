/** One WebSocket to a vendor: the handshake, and one response at a time. */

import type { FlatHeaders } from '../../lib/http/headers.ts';
import type { Abort, AbortListener } from '../../lib/loop/abort.ts';
import type { UpstreamAnswer, UpstreamTls } from '../transport.ts';
import { type CreateRequest, LastResponse } from './create-frame.ts';
import {
  completed,
  endsConnection,
  FrameBody,
  isAnswer,
  isForgotten,
  isLast,
  refusalOf,
  sseOf,
  statusOf,
  streamAnswer,
  type VendorFrame,
  vendorFrame,
  withoutPrevious,
} from './socket-answer.ts';

export interface SocketPlace {
  /** `wss://…` */
  readonly url: string;
  readonly headers: FlatHeaders;
  readonly proxy: string | undefined;
  readonly tls: UpstreamTls | undefined;
  /** Milliseconds until the handshake must be done; 0 = no limit. */
  readonly connectMs: number;
  /** Bytes that wait for a slow reader. */
  readonly mostBytes: number;
}

/** No answer came, and none will on this socket: the request may be sent another way. */
export class NoSocketAnswer extends Error {}

/** What may come before an answer: limits and the like. */
const MAX_BEFORE = 64;

interface Waiting {
  resolve(answer: UpstreamAnswer): void;
  reject(thrown: unknown): void;
}

export class VendorSocket implements AbortListener {
  readonly opened: Promise<void>;
  /** Milliseconds, of `performance.now()`. */
  readonly since = performance.now();
  readonly #socket: WebSocket;
  #waiting: Waiting | undefined;
  /** Aborts the current request. */
  #abort: Abort | undefined;
  #before: VendorFrame[] = [];
  #body: FrameBody | undefined;
  #request: CreateRequest | undefined;
  /** The earlier response that this request continues; its items were not sent again. */
  #continued: string | undefined;
  #last: LastResponse | undefined;
  #closed = false;

  /** @param onFree called after each response; the socket is closed by then, or can be used again */
  constructor(
    private readonly place: SocketPlace,
    private readonly onFree: (socket: VendorSocket) => void,
  ) {
    const { url, headers, proxy, tls, connectMs } = place;
    const socket = new WebSocket(url, {
      headers: headers.record(),
      // A small frame could unfold to any size.
      perMessageDeflate: false,
      ...(proxy === undefined ? {} : { proxy }),
      ...(tls === undefined ? {} : { tls }),
    } as never);
    this.#socket = socket;
    this.opened = new Promise((resolve, reject) => {
      const late = () => {
        reject(new NoSocketAnswer('its handshake took too long'));
        socket.close();
      };
      const timer = connectMs > 0 ? setTimeout(late, connectMs) : undefined;
      socket.onopen = () => {
        clearTimeout(timer);
        resolve();
      };
      socket.onclose = ({ code }) => {
        clearTimeout(timer);
        reject(new NoSocketAnswer('its handshake failed'));
        this.#lost(code);
      };
    });
    // Callers that await `opened` get this error. The handler only prevents an unhandled rejection.
    this.opened.catch(() => {});
    socket.onmessage = ({ data }) => {
      if (typeof data === 'string') this.#came(data);
    };
    // `close` follows, and says it all.
    socket.onerror = () => {};
  }

  get usable(): boolean {
    return !this.#closed && this.#socket.readyState === WebSocket.OPEN;
  }

  /**
   * Sends the request. Resolves with an answer of any status as soon as it begins.
   * @throws NoSocketAnswer when the socket was lost before; the abort's reason when aborted
   */
  ask(request: CreateRequest, abort: Abort): Promise<UpstreamAnswer> {
    const rest = this.#last?.continuedBy(request);
    this.#request = request;
    this.#continued = rest === undefined ? undefined : this.#last?.id;
    this.#last = undefined;
    return new Promise((resolve, reject) => {
      this.#abort = abort;
      this.#waiting = { resolve, reject };
      this.#before = [];
      abort.listen(this);
      if (!abort.aborted) this.#socket.send(rest ?? request.whole());
    });
  }

  /** Would the vendor get only what is new? */
  isContinuedBy(request: CreateRequest): boolean {
    return this.#last?.continuedBy(request) !== undefined;
  }

  /** Closing is the only way to cancel a response at the vendor. */
  onAbort(reason: unknown): void {
    this.close();
    this.#waiting?.reject(reason);
    this.#waiting = undefined;
    this.#body?.fail(reason);
    this.#free();
  }

  close(): void {
    this.#closed = true;
    this.#socket.close();
  }

  #came(text: string): void {
    const told = vendorFrame(text);
    if (told === undefined) return;
    const frame = this.#continued === undefined ? told : withoutPrevious(told, this.#continued);
    if (endsConnection(frame)) {
      this.#lost(1000);
      this.close();
      return;
    }
    if (this.#waiting !== undefined) this.#first(frame, this.#waiting);
    else if (this.#body !== undefined) {
      this.#body.push(sseOf(frame));
      if (isLast(frame)) this.#finish(frame);
    }
  }

  #first(frame: VendorFrame, waiting: Waiting): void {
    if (!isAnswer(frame) && this.#before.length < MAX_BEFORE) {
      this.#before.push(frame);
      return;
    }
    if (this.#continued !== undefined && isForgotten(frame)) {
      this.#continued = undefined;
      this.#socket.send(this.#request!.whole());
      return;
    }
    this.#waiting = undefined;
    const status = frame.error && statusOf(frame.error);
    if (frame.error !== undefined && status !== undefined) {
      waiting.resolve(refusalOf(status, frame.error));
      this.#free();
      return;
    }
    const body = new FrameBody(this.place.mostBytes, () => {
      this.close();
      this.#free();
    });
    this.#body = body;
    for (const one of this.#before) body.push(sseOf(one));
    body.push(sseOf(frame));
    waiting.resolve(streamAnswer(body));
    if (isLast(frame)) this.#finish(frame);
  }

  /** The response is over; what came to its end can be continued. */
  #finish(frame: VendorFrame): void {
    // `response.failed` may stand behind an error event: the next request must not take it for its answer.
    if (frame.error !== undefined) this.close();
    const response = completed(frame);
    const request = this.#request;
    if (response !== undefined && request !== undefined) {
      this.#last = LastResponse.of(request, response);
    }
    this.#free();
  }

  #free(): void {
    const body = this.#body;
    this.#body = undefined;
    this.#request = undefined;
    body?.end();
    this.#abort?.unlisten(this);
    this.#abort = undefined;
    this.onFree(this);
  }

  #lost(code: number): void {
    this.#closed = true;
    const waiting = this.#waiting;
    if (waiting === undefined && this.#body === undefined) return;
    this.#waiting = undefined;
    waiting?.reject(new NoSocketAnswer(`it was closed before an answer came (${code})`));
    this.#body?.fail(new Error(`the WebSocket was closed within the answer (${code})`));
    this.#free();
  }
}
