/** The body of one HTTP/1.1 answer as a stream: buffered chunks and a pending read. */

import {
  BodyTooLarge,
  type ChunkSink,
  collect,
  type ResponseBody,
  type UpstreamAnswer,
} from '../transport.ts';
import { type HeadLimits, ResponseParser } from './response-parser.ts';

/** What an answer needs of the connection that it comes by. */
export interface ConnectionControl {
  /** More has arrived than the reader has taken. */
  pause(): void;
  resume(): void;
  /** The rest is not needed. */
  drop(): void;
}

export interface PendingResponse {
  resolve(answer: UpstreamAnswer): void;
  reject(thrown: unknown): void;
}

type Batch = readonly Uint8Array[];

/** The call of `pipe` that waits for the end. */
interface PipeCompletion {
  resolve(): void;
  reject(thrown: unknown): void;
}

// What a client who does not read makes this process hold, beside the sockets' own buffers.
const HIGH_WATER_BYTES = 256 * 1024;
// Approximate memory of a chunk besides its bytes.
const CHUNK_COST = 64;

const joined = (chunks: Batch): Uint8Array =>
  chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks);

export class ResponseStream implements ResponseBody {
  // First what every chunk has to do with: of a paced stream it is all out of the cache.
  readonly parser: ResponseParser;
  /** Its first bytes have come. */
  hasBegun = false;
  #active = false;
  /** Until the head is there. */
  #head: PendingResponse | undefined;
  #sink: ChunkSink | undefined;
  /** The sink is not done with the last chunk. */
  #slow = false;
  /** Bytes of `#chunks`. */
  #held = 0;
  #over = false;
  #chunks: Uint8Array[] = [];
  /** The first of them that has not been given out. */
  #at = 0;
  #paused = false;
  #error: unknown;
  #flow: PipeCompletion | undefined;
  #more: { resolve(batch: Batch | undefined): void; reject(thrown: unknown): void } | undefined;

  constructor(
    private readonly line: ConnectionControl,
    head: PendingResponse,
    limits?: HeadLimits,
  ) {
    this.parser = new ResponseParser(limits);
    this.#head = head;
  }

  /** Bytes from the connection. */
  receive(bytes: Buffer): void {
    this.hasBegun = true;
    this.#active = true;
    const { parser } = this;
    const chunk = parser.push(bytes);
    if (parser.done) {
      this.#over = true;
      // The connection serves the next request, whether or not what has come is ever read.
      this.#unpause();
    }
    if (this.#head !== undefined && parser.head !== undefined) {
      const { status, headers } = parser.head;
      this.#head.resolve({ status, headers, body: this });
      this.#head = undefined;
    }
    const { malformed } = parser;
    const sink = this.#sink;
    if (sink !== undefined && !this.#slow && this.#held === 0) {
      if (chunk !== undefined) this.#give(sink, chunk);
      if (malformed !== undefined) this.fail(malformed);
      else if (this.#over) this.#settle();
      return;
    }
    if (chunk !== undefined) {
      this.#chunks.push(chunk);
      this.#held += chunk.length + CHUNK_COST;
    }
    if (malformed !== undefined) this.fail(malformed);
    else if (this.#more !== undefined) this.#wake();
    else if (this.#held > HIGH_WATER_BYTES && !this.#over && !this.#paused) {
      this.#paused = true;
      this.line.pause();
    }
  }

  /** The connection has closed: the end of this answer, where it is framed so, or its failure. */
  closed(failure: unknown): void {
    if (this.#over) return;
    if (this.parser.closed()) {
      this.#over = true;
      this.#wake();
    } else {
      this.fail(failure);
    }
  }

  /** Nothing more will come. What has come before is still given out. */
  fail(thrown: unknown): void {
    if (this.#over) return;
    this.#over = true;
    this.#error = thrown;
    this.#head?.reject(thrown);
    this.#head = undefined;
    this.#wake();
  }

  #give(sink: ChunkSink, chunk: Uint8Array): void {
    const slow = sink.write(chunk);
    if (slow === undefined) return;
    this.#slow = true;
    void slow.then(() => {
      this.#slow = false;
      this.#settle();
    });
  }

  /** Gives the sink the chunks that wait, and then the end. */
  #settle(): void {
    const sink = this.#sink;
    if (sink === undefined) return;
    if (this.#chunks.length > 0) this.#giveAll(sink);
    if (this.#slow) return;
    this.#unpause();
    if (!this.#over) return;
    const flow = this.#flow;
    this.#sink = undefined;
    this.#flow = undefined;
    if (this.#error !== undefined) flow?.reject(this.#error);
    else flow?.resolve();
  }

  #giveAll(sink: ChunkSink): void {
    // The sink may cancel the body while it takes a chunk.
    while (!this.#slow && this.#at < this.#chunks.length) {
      const chunk = this.#chunks[this.#at++]!;
      this.#held -= chunk.length + CHUNK_COST;
      this.#give(sink, chunk);
    }
    if (this.#at < this.#chunks.length) return;
    this.#chunks = [];
    this.#at = 0;
  }

  #unpause(): void {
    if (!this.#paused) return;
    this.#paused = false;
    this.line.resume();
  }

  #wake(): void {
    this.#settle();
    const more = this.#more;
    if (more === undefined || (this.#chunks.length === 0 && !this.#over)) return;
    this.#more = undefined;
    if (this.#chunks.length === 0 && this.#error !== undefined) more.reject(this.#error);
    else more.resolve(this.#chunks.length === 0 ? undefined : this.#given());
  }

  #given(): Batch {
    const chunks = this.#at === 0 ? this.#chunks : this.#chunks.slice(this.#at);
    this.#chunks = [];
    this.#at = 0;
    this.#held = 0;
    this.#unpause();
    return chunks;
  }

  read(): Batch | undefined | Promise<Batch | undefined> {
    if (this.#chunks.length > 0) return this.#given();
    if (this.#error !== undefined) throw this.#error;
    if (this.#over) return undefined;
    return new Promise((resolve, reject) => {
      this.#more = { resolve, reject };
    });
  }

  get isOver(): boolean {
    return this.#over && this.#error === undefined && this.#at === this.#chunks.length;
  }

  takeActivity(): boolean {
    const active = this.#active || this.#slow;
    this.#active = false;
    return active;
  }

  pipe(sink: ChunkSink): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#sink = sink;
      this.#flow = { resolve, reject };
      this.#settle();
    });
  }

  readAll(most = Number.POSITIVE_INFINITY): Uint8Array | Promise<Uint8Array> {
    if (!this.#over || this.#error !== undefined) return collect(this, most);
    const bytes = joined(this.#given());
    if (bytes.length > most) throw new BodyTooLarge();
    return bytes;
  }

  cancel(): void {
    if (!this.#over) this.line.drop();
  }
}
