/** A lane before which the vendor's frames are told which response came before theirs. */

import { asGatewayError, type GatewayError } from '../../conversation/errors.ts';
import type { StreamEvent } from '../../conversation/events.ts';
import { type FrameLimit, type SseFrame, SseParser } from '../../lib/bytes/sse.ts';
import { concat, type Output, type StreamPipeline } from './pipeline.ts';

const encoder = new TextEncoder();

/** Frames go on as their own bytes, but for those that hold a response object. */
export class PreviousResponsePipeline implements StreamPipeline {
  #broken: GatewayError | undefined;
  readonly #parser: SseParser;
  readonly #lane: StreamPipeline;
  readonly #edit: (json: string) => string;

  /** @param edit the JSON of a frame as the client is to get it; the same text: it stays as it came */
  constructor(lane: StreamPipeline, edit: (json: string) => string, limit: FrameLimit) {
    this.#lane = lane;
    this.#edit = edit;
    this.#parser = new SseParser({ limit });
  }

  push(chunk: Uint8Array): Output {
    if (this.failure !== undefined) return '';
    const out: Output[] = [];
    try {
      this.#parser.read(chunk, { frame: (frame) => void out.push(this.#give(frame)) });
    } catch (thrown) {
      this.#broken = asGatewayError(thrown);
    }
    return concat(out);
  }

  end(): Output {
    if (this.failure !== undefined) return '';
    const { pending } = this.#parser;
    const rest = pending === undefined ? '' : this.#lane.push(pending);
    return concat([rest, this.#lane.end()]);
  }

  #give({ event, data, bytes, from, to }: SseFrame): Output {
    const edited = data === undefined ? undefined : this.#edit(data);
    if (edited === data || edited === undefined) return this.#lane.push(bytes.subarray(from, to));
    const name = event === '' ? '' : `event: ${event}\n`;
    const text = `${name}data: ${edited.replaceAll('\n', '\ndata: ')}\n\n`;
    return this.#lane.push(encoder.encode(text));
  }

  get failure() {
    return this.#broken ?? this.#lane.failure;
  }
  get semantic() {
    return this.#lane.semantic;
  }
  get error() {
    return this.#lane.error;
  }
  get ended() {
    return this.#lane.ended;
  }
  get between() {
    return this.#lane.between;
  }
  get digest() {
    return this.#lane.digest;
  }
  get next() {
    return this.#lane.next;
  }
  get client() {
    return this.#lane.client;
  }
  get said() {
    return this.#lane.said;
  }
  inject(events: readonly StreamEvent[]): Output {
    return this.#lane.inject(events);
  }
  ping(): string {
    return this.#lane.ping();
  }
  fail(error: GatewayError): string {
    return this.#lane.fail(error);
  }
}
