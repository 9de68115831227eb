/** The byte lane: the upstream speaks the client's protocol and nothing has to be changed. */

import type { GatewayError } from '../conversation/errors.ts';
import { type SseFrame, SseParser } from '../lib/sse.ts';
import type {
  ClientContext,
  Digest,
  Protocol,
  StreamDecoder,
  UpstreamContext,
} from '../protocols/protocol.ts';
import { AnswerWatch } from './answer-watch.ts';
import type { Lane, Output, Said } from './lane.ts';
import { Tail } from './tail.ts';

const LF = 0x0a;
const CR = 0x0d;

/**
 * Forwards every chunk as the very object that came. Frames are decoded until an answer has begun;
 * from then on nothing looks, and the ends that were kept are read when it is over. Should the
 * vendor end naturally before any answer began, its ending is held back: it would pass for success.
 */
export class RelayLane implements Lane {
  readonly #protocol: Protocol;
  readonly #client: () => ClientContext;
  readonly #tail: Tail;
  readonly #watch = new AnswerWatch();
  #parser: SseParser | undefined = new SseParser();
  #decoder: StreamDecoder;
  #digest: Digest | undefined;
  #last: Uint8Array | undefined;

  constructor(protocol: Protocol, upstream: UpstreamContext, client: () => ClientContext) {
    this.#protocol = protocol;
    this.#client = client;
    this.#decoder = protocol.decodeStream(upstream);
    this.#tail = new Tail(protocol.terminalMarks);
  }

  get semantic(): boolean {
    return this.#watch.semantic;
  }

  get error(): GatewayError | undefined {
    return this.#watch.error;
  }

  get ended(): boolean {
    return this.#watch.ended;
  }

  push(chunk: Uint8Array): Output {
    this.#tail.push(chunk);
    if (this.#parser === undefined) {
      this.#last = chunk;
      return chunk;
    }
    return this.#look(this.#parser, chunk);
  }

  /** Still waiting for an answer: the chunk, without what would end the stream. */
  #look(parser: SseParser, chunk: Uint8Array): Output {
    const before = parser.pending?.length ?? 0;
    // Where the frame under way ends, counted in the bytes of this chunk.
    let end = -before;
    for (const frame of parser.push(chunk)) {
      const start = end;
      end += frame.raw.length;
      for (const event of this.#decoder.push(frame)) this.#watch.see(event);
      if (this.#watch.empty) {
        this.#last = undefined;
        return start > 0 ? chunk.subarray(0, start) : '';
      }
      if (!this.#watch.answered && this.#watch.error === undefined) continue;
      this.#parser = undefined;
      break;
    }
    if (this.#watch.empty) return '';
    this.#last = chunk;
    return chunk;
  }

  end(): Output {
    if (this.#parser !== undefined) {
      const rest = [...this.#parser.end().flatMap((frame) => this.#decoder.push(frame))];
      for (const event of [...rest, ...this.#decoder.end()]) this.#watch.see(event);
    }
    this.#watch.error ??= this.digest.error;
    return '';
  }

  get between(): boolean {
    const last = this.#last;
    if (last === undefined) return true;
    const end = last.length - 1;
    // A blank line, LF or CRLF; a chunk too short to tell counts as the middle of a frame.
    return (
      last[end] === LF && (last[end - 1] === LF || (last[end - 1] === CR && last[end - 2] === LF))
    );
  }

  get digest(): Digest {
    if (this.#digest === undefined) {
      const { semantic, answered } = this.#watch;
      const seen = this.#protocol.digestStream(this.#frames());
      // The middle of a long stream is not among the frames: what the watch saw counts, too.
      this.#digest = { ...seen, semantic: semantic || seen.semantic, answered };
    }
    return this.#digest;
  }

  #frames(): readonly SseFrame[] {
    const frames: SseFrame[] = [];
    for (const [at, part] of this.#tail.parts.entries()) {
      const parser = new SseParser();
      const found = [...parser.push(part), ...parser.end()];
      // What begins in the middle of a frame begins with a broken one.
      frames.push(...(at === 0 ? found : found.slice(1)));
    }
    return frames;
  }

  // A lane without interceptors has nobody who could want another hop.
  readonly next = undefined;
  inject = () => '';

  get said(): Said {
    return { kind: 'frames', frames: this.#frames() };
  }

  ping(): string {
    return this.#protocol.encodeStream(this.#client()).ping();
  }

  fail(error: GatewayError): string {
    // A frame that was cut in the middle must not swallow the error event.
    const gap = this.between ? '' : '\n\n';
    return gap + this.#protocol.encodeStream(this.#client()).fail(error);
  }
}
