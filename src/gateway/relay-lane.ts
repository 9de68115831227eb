/** The byte lane: the upstream speaks the client's protocol and nothing has to be changed. */

import { asGatewayError, type GatewayError } from '../conversation/errors.ts';
import { holdsAny, marks, searchable } from '../lib/bytes.ts';
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

const NO_BYTES = new Uint8Array(0);
// Frames from before the answer (Messages tells the prompt's tokens there) up to this many characters.
const HEAD_CHARS = 8 * 1024;
// The ending of every protocol, usage included, stands in its last few frames.
const LAST_FRAMES = 4;
// Whoever finds one of these further back must look there, too.
const TELLING = marks('"usage":{', '"usage": {', '"error"');

/**
 * Forwards every chunk as the very object that came. Frames are decoded until an answer has begun;
 * from then on nothing looks, and the end that was kept is read when it is over. Should the vendor
 * end naturally before any answer began, its ending is held back: it would pass for success.
 */
export class RelayLane extends AnswerWatch implements Lane {
  failure: GatewayError | undefined;
  /** Until an answer has begun. */
  #parser: SseParser | undefined = new SseParser();
  readonly #tail: Tail;
  #last: Uint8Array | undefined;
  readonly #protocol: Protocol;
  readonly #client: ClientContext;
  readonly #decoder: StreamDecoder;
  readonly #head: SseFrame[] = [];
  #headChars = 0;
  #digest: Digest | undefined;

  constructor(protocol: Protocol, upstream: UpstreamContext, client: ClientContext) {
    super();
    this.#protocol = protocol;
    this.#client = client;
    this.#decoder = protocol.decodeStream(upstream);
    this.#tail = new Tail(protocol.terminalMarks);
  }

  push(chunk: Uint8Array): Output {
    if (this.failure !== undefined) return '';
    if (this.#parser !== undefined) return this.#look(this.#parser, chunk);
    this.#tail.push(chunk);
    if (this.empty) return '';
    this.#last = chunk;
    return chunk;
  }

  /** Still waiting for an answer: the chunk, without what would end the stream, or cannot be read. */
  #look(parser: SseParser, chunk: Uint8Array): Output {
    const held = this.empty;
    // Where the frame under way ends, counted in the bytes of this chunk.
    let end = -(parser.pending?.length ?? 0);
    let cut = 0;
    try {
      parser.pushUntil(chunk, (frame) => {
        const start = end;
        const before = this.empty;
        for (const event of this.#decoder.push(frame)) this.see(event);
        this.#remember(frame);
        end += frame.to - frame.from;
        if (this.empty && !before) cut = start;
        return this.answered || this.error !== undefined;
      });
    } catch (thrown) {
      this.failure = asGatewayError(thrown);
    }
    if (this.answered || this.error !== undefined) {
      const { pending } = parser;
      if (pending !== undefined) this.#tail.push(pending);
      this.#parser = undefined;
    }
    if (this.empty) {
      this.#last = undefined;
      return held || cut <= 0 ? '' : chunk.subarray(0, cut);
    }
    if (this.failure !== undefined && end <= 0) return '';
    this.#last = this.failure === undefined ? chunk : chunk.subarray(0, end);
    return this.#last;
  }

  /** Keeps what a frame says, not the chunk that it stood in; what is too much goes by like the rest. */
  #remember({ event, data, bytes, from, to }: SseFrame): void {
    if (data === undefined) return;
    if (this.#headChars >= HEAD_CHARS) this.#tail.push(bytes.subarray(from, to));
    else {
      this.#headChars += data.length;
      this.#head.push({ event, data, bytes: NO_BYTES, from: 0, to: 0 });
    }
  }

  end(): Output {
    if (this.failure !== undefined) return '';
    if (this.#parser !== undefined) {
      const rest = this.#parser.end();
      const events = rest.flatMap((frame) => this.#decoder.push(frame));
      for (const frame of rest) this.#remember(frame);
      for (const event of [...events, ...this.#decoder.end()]) this.see(event);
    }
    this.error ??= this.digest.error;
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
      const { semantic, answered } = this;
      const seen = this.#lastWords() ?? this.#protocol.digestStream(this.#frames());
      // The middle of a long stream is not among the frames: what the watch saw counts, too.
      this.#digest = { ...seen, semantic: semantic || seen.semantic, answered };
    }
    return this.#digest;
  }

  /** The digest of the first and the last few frames, where those between can add nothing to it. */
  #lastWords(): Digest | undefined {
    if (!this.answered) return undefined;
    const { bytes } = this.#tail;
    const at = lastFrames(bytes, LAST_FRAMES);
    if (at <= 0) return undefined;
    const before = searchable(bytes.subarray(0, at));
    if (holdsAny(before, TELLING)) return undefined;
    const frames = [...this.#head, ...parsed(bytes.subarray(at))];
    const digest = this.#protocol.digestStream(frames);
    const known = digest.usage !== undefined || !before.includes('"usage"');
    return digest.complete && known ? digest : undefined;
  }

  #frames(): readonly SseFrame[] {
    const rest = parsed(this.#tail.bytes);
    // What begins in the middle of a frame begins with a broken one.
    return [...this.#head, ...(this.#tail.cut ? rest.slice(1) : rest)];
  }

  // A lane without interceptors has nobody who could want another hop.
  readonly next = undefined;
  inject = () => '';

  get said(): Said {
    return { kind: 'frames', frames: this.#frames() };
  }

  ping(): string {
    return this.#protocol.encodeStream(this.#client).ping();
  }

  fail(error: GatewayError): string {
    // A frame that was cut in the middle must not swallow the error event.
    const gap = this.between ? '' : '\n\n';
    return gap + this.#protocol.encodeStream(this.#client).fail(error);
  }
}

function parsed(bytes: Uint8Array): readonly SseFrame[] {
  const parser = new SseParser({ raw: false });
  return [...parser.push(bytes), ...parser.end()];
}

/** Where the last `count` frames begin; 0 when there are fewer, or lines that do not end in LF. */
function lastFrames(bytes: Uint8Array, count: number): number {
  let left = count;
  // The blank line of the last frame itself is no beginning.
  for (let i = bytes.length - 3; i > 0; i--) {
    if (bytes[i] === LF && bytes[i - 1] === LF && --left === 0) return i + 1;
  }
  return 0;
}
