/** A pipeline that passes everything on to another one, for those that add a step. */

import type { GatewayError } from '../../conversation/errors.ts';
import type { StreamEvent } from '../../conversation/events.ts';
import type { Output, StreamPipeline } from './pipeline.ts';

export abstract class PipelineDecorator<Inner extends StreamPipeline> implements StreamPipeline {
  constructor(protected readonly inner: Inner) {}

  abstract push(chunk: Uint8Array): Output;
  abstract end(): Output;
  abstract get failure(): GatewayError | undefined;
  abstract get error(): GatewayError | undefined;

  get semantic() {
    return this.inner.semantic;
  }
  get unsaid() {
    return this.inner.unsaid === true;
  }
  get ended() {
    return this.inner.ended;
  }
  get endGiven() {
    return this.inner.endGiven;
  }
  get isWhole() {
    return this.inner.isWhole;
  }
  get isFinished() {
    return this.inner.isFinished;
  }
  get allowsKeepAlive() {
    return this.inner.allowsKeepAlive;
  }
  get digest() {
    return this.inner.digest;
  }
  get terminalBytes() {
    return this.inner.terminalBytes;
  }
  get continuation() {
    return this.inner.continuation;
  }
  get client() {
    return this.inner.client;
  }
  get finalAnswer() {
    return this.inner.finalAnswer;
  }
  inject(events: readonly StreamEvent[]): Output {
    return this.inner.inject(events);
  }
  ping(): string {
    return this.inner.ping();
  }
  fail(error: GatewayError): string {
    return this.inner.fail(error);
  }
}
