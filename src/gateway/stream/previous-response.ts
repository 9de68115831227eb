/** A step in front of a pipeline: the vendor's frames get the id of the response before theirs. */

import { asGatewayError, type GatewayError } from '../../conversation/errors.ts';
import { type FrameLimit, type SseFrame, SseParser } from '../../lib/bytes/sse.ts';
import { concat, type Output, type StreamPipeline } from './pipeline.ts';
import { PipelineDecorator } from './pipeline-decorator.ts';

const encoder = new TextEncoder();

/** Frames go on as their own bytes, but for those that hold a response object. */
export class PreviousResponsePipeline extends PipelineDecorator<StreamPipeline> {
  #broken: GatewayError | undefined;
  readonly #parser: SseParser;
  readonly #edit: (json: string) => string;

  /** @param edit the JSON of a frame as the client is to get it; the same text: it stays as it came */
  constructor(inner: StreamPipeline, edit: (json: string) => string, limit: FrameLimit) {
    super(inner);
    this.#edit = edit;
    this.#parser = new SseParser({ limit });
  }

  push(chunk: Uint8Array): Output {
    if (this.failure !== undefined) return '';
    const out: Output[] = [];
    try {
      this.#parser.read(chunk, { frame: (frame) => void out.push(this.#forward(frame)) });
    } catch (thrown) {
      this.#broken = asGatewayError(thrown);
    }
    return concat(out);
  }

  end(): Output {
    if (this.failure !== undefined) return '';
    const { pending } = this.#parser;
    const rest = pending === undefined ? '' : this.inner.push(pending);
    return concat([rest, this.inner.end()]);
  }

  #forward({ event, data, bytes, from, to }: SseFrame): Output {
    const edited = data === undefined ? undefined : this.#edit(data);
    if (edited === data || edited === undefined) return this.inner.push(bytes.subarray(from, to));
    const name = event === '' ? '' : `event: ${event}\n`;
    const text = `${name}data: ${edited.replaceAll('\n', '\ndata: ')}\n\n`;
    return this.inner.push(encoder.encode(text));
  }

  get failure() {
    return this.#broken ?? this.inner.failure;
  }
  get error() {
    return this.inner.error;
  }
}
