/** Sends a request's body piece by piece as it is read: the next one when the socket has taken the last. */

import type { RequestStream } from '../transport.ts';

/** What the pump does with its connection. */
interface PumpedConnection {
  /** Writes these; `next` is called when all are written. */
  send(pieces: Uint8Array[]): void;
  /** The body cannot be had to its end. */
  fail(thrown: unknown): void;
}

const LINE_END = Buffer.from('\r\n');
/** The last chunk, without trailers (RFC 9112 §7.1). */
const LAST_CHUNK = Buffer.from('0\r\n\r\n');

export class RequestPump {
  #state: 'idle' | 'reading' | 'over' | 'stopped' = 'idle';
  #sent = 0;

  constructor(
    private readonly stream: RequestStream,
    private readonly connection: PumpedConnection,
  ) {}

  /** All of the body has been given to the connection. */
  get over(): boolean {
    return this.#state === 'over';
  }

  /** The answer has come, or the connection is gone: nothing more is sent. */
  stop(): void {
    if (this.#state !== 'over') this.#state = 'stopped';
  }

  /** Called when the piece before is written: reads the next one, and sends it when it is there. */
  next(): void {
    if (this.#state !== 'idle') return;
    this.#state = 'reading';
    this.stream.read().then(
      (piece) => this.#push(piece),
      (thrown) => this.#fail(thrown),
    );
  }

  #push(piece: Uint8Array | undefined): void {
    if (this.#state !== 'reading') return;
    const { length } = this.stream;
    this.#sent += piece?.length ?? 0;
    const wrong = piece === undefined ? this.#sent !== length : this.#sent > (length ?? this.#sent);
    if (length !== undefined && wrong) {
      this.#fail(new Error('the body of the request is not as long as it was said to be'));
      return;
    }
    this.#state = piece === undefined ? 'over' : 'idle';
    if (piece === undefined) {
      if (length === undefined) this.connection.send([LAST_CHUNK]);
      return;
    }
    if (length !== undefined) this.connection.send([piece]);
    else {
      const size = Buffer.from(`${piece.length.toString(16)}\r\n`, 'latin1');
      this.connection.send([size, piece, LINE_END]);
    }
  }

  #fail(thrown: unknown): void {
    if (this.#state !== 'reading') return;
    this.#state = 'stopped';
    this.connection.fail(thrown);
  }
}
