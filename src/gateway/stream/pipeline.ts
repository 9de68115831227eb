/** How an upstream's stream becomes the client's: forwarded as it is, or translated. */

import type { ClientContext, Digest, StreamEncoder } from '../../codecs/codec.ts';
import type { GatewayError } from '../../conversation/errors.ts';
import type { Reply, StreamEvent } from '../../conversation/events.ts';
import type { ReplyBuilder } from '../../conversation/reply-builder.ts';
import type { Continuation } from '../../features/feature.ts';
import type { SseFrame } from '../../lib/bytes/sse.ts';

/** An answer in a form from which the client's own reply object can be had. */
export type FinalAnswer =
  | { readonly kind: 'frames'; readonly frames: readonly FrameContent[] }
  | {
      readonly kind: 'reply';
      readonly reply: Reply;
      readonly client: ClientContext;
      /** The frames that went out as the vendor's own bytes and hold items or the whole answer. */
      readonly frames: readonly FrameContent[];
    };

/** A frame without its bytes. */
export type FrameContent = Pick<SseFrame, 'event' | 'data'>;

/** Bytes or text for the client; '' when this chunk gives nothing yet. */
export type Output = Uint8Array | string;

/**
 * Serves one upstream stream: `push` every chunk, then `end` once. Neither does I/O.
 * @throws GatewayError upstream, from `end`, when what stands there cannot be read
 */
export interface StreamPipeline {
  push(chunk: Uint8Array): Output;
  end(): Output;
  /** Text, reasoning or a call has come. */
  readonly semantic: boolean;
  /** The upstream's own error event. */
  readonly error: GatewayError | undefined;
  /** The vendor's form of it is none in the client's protocol: it was put into the client's own. */
  readonly unsaid?: boolean;
  /** The stream cannot be read further: what came before has gone out, and nothing that follows will. */
  readonly failure: GatewayError | undefined;
  /** The upstream's own ending has been seen: bytes behind it do not matter. */
  readonly ended: boolean;
  /** The frame that ends the client's answer has been given, and `finalAnswer` is complete. */
  readonly endGiven: boolean;
  /** The vendor's own ending has been given; looked for in what was kept, so not to be asked with each chunk. */
  readonly isWhole: boolean;
  /** No more of the answer will come, whether or not the vendor's formal ending has; as {@link isWhole}. */
  readonly isFinished: boolean;
  /** No frame is half written: a keep-alive may follow. */
  readonly allowsKeepAlive: boolean;
  /** Read it after `end`. */
  readonly digest: Digest;
  /** Bytes of a terminal event that repeats the answer, 0 without one; read it after `end`. */
  readonly terminalBytes: number;
  /** What must happen before the client's stream may end; read it after `end`. */
  readonly continuation: Continuation | undefined;
  /** Events for the client from between two hops; only pipelines with a `continuation` get any. */
  inject(events: readonly StreamEvent[]): Output;
  /** The client's side, for the hop that follows; pipelines without a `continuation` have none. */
  readonly client?: ClientSide;
  /** The whole answer as the client got it, to be stored; read it after `end`, or with `endGiven`. */
  readonly finalAnswer: FinalAnswer | undefined;
  /** A keep-alive for the client. */
  ping(): string;
  /** The client's error event. */
  fail(error: GatewayError): string;
}

/** Collects what goes out; bytes that stand side by side in one chunk stay one view of it. */
export class OutputBuilder {
  readonly #parts: Output[] = [];
  #text = '';
  #bytes: Uint8Array | undefined;
  #from = 0;
  #to = 0;

  text(text: string): void {
    if (text === '') return;
    if (this.#bytes !== undefined) this.#close();
    this.#text += text;
  }

  bytes(bytes: Uint8Array, from = 0, to = bytes.length): void {
    if (bytes === this.#bytes && from === this.#to) {
      this.#to = to;
      return;
    }
    this.#close();
    this.#bytes = bytes;
    this.#from = from;
    this.#to = to;
  }

  /** Everything as one; a chunk that goes out whole is the very chunk. */
  all(): Output {
    this.#close();
    return concat(this.#parts);
  }

  #close(): void {
    if (this.#text !== '') {
      this.#parts.push(this.#text);
      this.#text = '';
    }
    const bytes = this.#bytes;
    if (bytes === undefined) return;
    const whole = this.#from === 0 && this.#to === bytes.length;
    this.#parts.push(whole ? bytes : bytes.subarray(this.#from, this.#to));
    this.#bytes = undefined;
  }
}

/** Several outputs as one; a single one stays the very object it was. */
export function concat(parts: readonly Output[]): Output {
  const filled = parts.filter((part) => part.length > 0);
  if (filled.length === 0) return '';
  if (filled.length === 1) return filled[0]!;
  return Buffer.concat(filled.map((part) => (typeof part === 'string' ? Buffer.from(part) : part)));
}

/** The client's side of a stream; the same one for every hop of an exchange. */
export interface ClientSide {
  readonly encoder: StreamEncoder;
  readonly context: ClientContext;
  /** There if the whole answer is needed afterwards. */
  readonly fold: ReplyBuilder | undefined;
  /** Which of the frames that leave as their bytes are kept for that; left out: none. */
  readonly storesFrame?: ((frame: FrameContent) => boolean) | undefined;
}
