/** The byte lane: the upstream speaks the client's protocol and nothing has to be changed. */

import type { GatewayError } from '../conversation/errors.ts';
import { isSemantic } from '../conversation/events.ts';
import { type SseFrame, SseParser } from '../lib/sse.ts';
import type {
  ClientContext,
  Digest,
  Protocol,
  StreamDecoder,
  UpstreamContext,
} from '../protocols/protocol.ts';
import type { Lane, Output, Said } from './lane.ts';
import { Tail } from './tail.ts';

const LF = 0x0a;
const CR = 0x0d;

/**
 * Forwards every chunk as the very object that came. The first frames are decoded until something
 * was said; from then on nothing looks, and the ends that were kept are read when it is over.
 */
export class RelayLane implements Lane {
  readonly #protocol: Protocol;
  readonly #client: () => ClientContext;
  readonly #tail: Tail;
  #parser: SseParser | undefined = new SseParser();
  #decoder: StreamDecoder | undefined;
  #digest: Digest | undefined;
  #last: Uint8Array | undefined;
  semantic = false;
  ended = false;
  error: GatewayError | undefined;

  constructor(protocol: Protocol, upstream: UpstreamContext, client: () => ClientContext) {
    this.#protocol = protocol;
    this.#client = client;
    this.#decoder = protocol.decodeStream(upstream);
    this.#tail = new Tail(protocol.terminalMarks);
  }

  push(chunk: Uint8Array): Output {
    this.#tail.push(chunk);
    this.#last = chunk;
    if (this.#parser !== undefined) this.#look(this.#parser.push(chunk));
    return chunk;
  }

  #look(frames: readonly SseFrame[]): void {
    for (const frame of frames) {
      for (const event of this.#decoder?.push(frame) ?? []) {
        if (event.type === 'error') this.error = event.error;
        else if (event.type === 'end') this.ended = true;
        else if (isSemantic(event)) this.semantic = true;
      }
      if (!this.semantic && this.error === undefined) continue;
      this.#parser = undefined;
      this.#decoder = undefined;
      return;
    }
  }

  end(): Output {
    if (this.#parser !== undefined) this.#look(this.#parser.end());
    const digest = this.digest;
    this.error ??= digest.error;
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
    this.#digest ??= this.#protocol.digestStream(this.#frames());
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
