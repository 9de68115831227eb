/** A step behind a pipeline: the client does not get the usage that this gateway asked for. */

import type { AskedUsage } from '../../codecs/codec.ts';
import { asGatewayError, type GatewayError } from '../../conversation/errors.ts';
import { type FrameLimit, type SseFrame, SseParser } from '../../lib/bytes/sse.ts';
import { withoutUsage } from '../tries/asked-usage.ts';
import { concat, type Output, type StreamPipeline } from './pipeline.ts';
import { PipelineDecorator } from './pipeline-decorator.ts';

const utf8 = new TextDecoder('utf-8', { ignoreBOM: true });
const encoder = new TextEncoder();

/** Frames without usage go on as their own bytes, each when it is whole. */
export class UsageFilter {
  /** What could not be read: nothing goes on. */
  broken: GatewayError | undefined;
  #parser: SseParser;
  readonly #hides: AskedUsage;
  readonly #limit: FrameLimit | undefined;

  constructor(hides: AskedUsage, limit?: FrameLimit) {
    this.#hides = hides;
    this.#limit = limit;
    this.#parser = new SseParser({ limit });
  }

  shown(out: Output): Output {
    if (out.length === 0 || this.broken !== undefined) return '';
    const shown: Output[] = [];
    try {
      const bytes = typeof out === 'string' ? encoder.encode(out) : out;
      this.#parser.read(bytes, { frame: (frame) => void shown.push(this.#frame(frame)) });
    } catch (thrown) {
      this.broken = asGatewayError(thrown);
    }
    return concat(shown);
  }

  #frame({ data, bytes, from, to }: SseFrame): Output {
    const own = bytes.subarray(from, to);
    if (data === undefined) return own;
    const left = withoutUsage(data, this.#hides);
    if (left === data) return own;
    if (left === '') return '';
    const text = utf8.decode(own);
    const at = text.indexOf(data);
    return at < 0
      ? `data: ${left.replaceAll('\n', '\ndata: ')}\n\n`
      : text.slice(0, at) + left + text.slice(at + data.length);
  }

  /** What no blank line has ended; not the half of a usage. */
  rest(): Output {
    const { pending } = this.#parser;
    this.#parser = new SseParser({ limit: this.#limit });
    if (pending === undefined || utf8.decode(pending).includes(`"${this.#hides.member}"`))
      return '';
    return pending;
  }
}

/** The filter behind a pipeline. */
export class WithoutUsagePipeline extends PipelineDecorator<StreamPipeline> {
  readonly #filter: UsageFilter;

  constructor(inner: StreamPipeline, hides: AskedUsage, limit: FrameLimit) {
    super(inner);
    this.#filter = new UsageFilter(hides, limit);
  }

  push(chunk: Uint8Array): Output {
    return this.#filter.shown(this.inner.push(chunk));
  }

  end(): Output {
    const shown = this.#filter.shown(this.inner.end());
    return concat([shown, this.#filter.rest()]);
  }

  override inject(...events: Parameters<StreamPipeline['inject']>): Output {
    return concat([this.#filter.rest(), this.inner.inject(...events)]);
  }

  override fail(error: GatewayError): string {
    const rest = this.#filter.rest();
    return (typeof rest === 'string' ? rest : utf8.decode(rest)) + this.inner.fail(error);
  }

  // Only whole frames go out.
  override get allowsKeepAlive() {
    return true;
  }
  get failure() {
    return this.#filter.broken ?? this.inner.failure;
  }
  get error() {
    return this.inner.error;
  }
  get unsaid() {
    return this.inner.unsaid === true;
  }
}
