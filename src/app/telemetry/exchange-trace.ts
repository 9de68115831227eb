/** Watches a sampled exchange for its trace: each try, each tool run, and the names that the vendor gave its answer. */

import { targetName } from '../../conversation/target.ts';
import type { Exchange } from '../../gateway/types.ts';
import { asBuffer } from '../../lib/bytes/bytes.ts';
import type { ReadonlyHeaders } from '../../lib/http/headers.ts';
import { topLevel } from '../../lib/json/json.ts';
import type { HopRecording, Recording } from '../../samples/recording.ts';
import {
  addressOf,
  type ExchangeTrace,
  newSpanId,
  spanIdIn,
  type TracedTry,
} from '../../telemetry/trace.ts';

/**
 * Undefined where the exchange is not sampled: then nothing watches it.
 * @param keepsAnswer what the client is answered is kept, for the content of its span
 */
export function traceRecording({ trace }: Exchange, keepsAnswer = false): Recording | undefined {
  return trace?.sampled === true ? new TraceRecording(trace, keepsAnswer) : undefined;
}

/** Bytes of an answer. */
const MAX_ANSWER = 1024 * 1024;

class TraceRecording implements Recording {
  readonly ignoresClient: boolean;
  #kept = 0;

  constructor(
    private readonly trace: ExchangeTrace,
    keepsAnswer: boolean,
  ) {
    this.ignoresClient = !keepsAnswer;
  }

  tool({ name, started, ms = 0, error }: Parameters<NonNullable<Recording['tool']>>[0]): void {
    const begun = started ?? performance.now() - ms;
    const failed = error !== undefined;
    this.trace.addTool({ name, started: begun, ended: begun + ms, failed });
  }

  hop(
    hop: number,
    attempt: number,
    { target, url, headers }: Parameters<Recording['hop']>[2],
  ): HopRecording {
    const query = url.indexOf('?');
    const one: TracedTry = {
      // Where the context went out, the vendor's spans name this one as their parent.
      spanId: spanIdIn(headers.get('traceparent')) ?? newSpanId(),
      hop,
      attempt,
      target: targetName(target),
      url: query < 0 ? url : url.slice(0, query),
      server: addressOf(url),
      started: performance.now(),
    };
    this.trace.addTry(one);
    return new TryRecording(this.trace, one);
  }

  clientStart(status: number, headers: ReadonlyHeaders): void {
    if (this.ignoresClient) return;
    const sse = headers.get('content-type')?.includes('text/event-stream') === true;
    this.trace.answer = { status, sse, chunks: [] };
  }

  clientChunk(chunk: Uint8Array | string): void {
    const { answer } = this.trace;
    if (answer === undefined || this.#kept > MAX_ANSWER) return;
    const bytes = typeof chunk === 'string' ? Buffer.from(chunk) : chunk;
    this.#kept += bytes.length;
    answer.chunks.push(bytes);
  }

  end(): void {}
}

class TryRecording implements HopRecording {
  readonly headOnly = true;
  readonly #try: TracedTry;
  #named = false;

  constructor(
    private readonly trace: ExchangeTrace,
    one: TracedTry,
  ) {
    this.#try = one;
  }

  connected(): void {}

  start(status: number): void {
    this.#try.status = status;
  }

  chunk(chunk: Uint8Array): void {
    if (this.#named) return;
    this.#named = true;
    // A refusal names no answer.
    if ((this.#try.status ?? 0) > 299) return;
    const { id, model } = namesIn(chunk);
    this.trace.responseId = id;
    this.trace.responseModel = model;
  }

  end(error: { readonly kind: string } | undefined): void {
    this.#try.ended ??= performance.now();
    if (error !== undefined) this.#try.error ??= error.kind;
  }
}

const NAMES: ReadonlySet<string> = new Set(['id', 'model']);
// The first event of a stream names the answer, in its first bytes.
const MAX_LOOKED_AT = 16 * 1024;
const ID = /"id":\s{0,8}"([^"\\]{1,128})"/;
const MODEL = /"model":\s{0,8}"([^"\\]{1,128})"/;
// Longer whole answers are not looked through for two names.
const MAX_WHOLE = 256 * 1024;

/** The id and the model of an answer, from its first chunk: a whole JSON body, or the first events of a stream. */
export function namesIn(chunk: Uint8Array): { readonly id?: string; readonly model?: string } {
  const bytes = asBuffer(chunk);
  if (bytes[0] === 0x7b) {
    const members = bytes.length <= MAX_WHOLE ? topLevel(bytes, NAMES) : undefined;
    const text = (name: string) => {
      const member = members?.get(name);
      if (member === undefined) return undefined;
      const value = bytes.toString('utf8', member.valueStart, member.valueEnd);
      return /^"[^"\\]{1,128}"$/.test(value) ? value.slice(1, -1) : undefined;
    };
    return { id: text('id'), model: text('model') };
  }
  const start = bytes.toString('utf8', 0, Math.min(bytes.length, MAX_LOOKED_AT));
  return { id: ID.exec(start)?.[1], model: MODEL.exec(start)?.[1] };
}
