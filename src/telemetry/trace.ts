/** The trace of one exchange: W3C trace context in and out, and what its spans are made of when it is over. */

/** The caller's context, from `traceparent` and `tracestate` (W3C Trace Context, level 2). */
export interface CallerContext {
  /** 32 hexadecimal digits. */
  readonly traceId: string;
  /** 16 hexadecimal digits: the caller's span. */
  readonly spanId: string;
  readonly sampled: boolean;
  /** `tracestate`, '' without one. */
  readonly state: string;
}

const TRACEPARENT = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/;
const ZEROS = /^0+$/;
// What the standard asks every party to pass on.
const MAX_STATE = 512;
const STATE = /^[\x20-\x7e]*$/;

/** Undefined where there is no valid `traceparent`; then `tracestate` counts for nothing either. */
export function readCaller(
  traceparent: string | null,
  tracestate: string | null,
): CallerContext | undefined {
  if (traceparent === null || traceparent.length > MAX_STATE) return undefined;
  const [, version, traceId = '', spanId = '', flags = '', more] =
    TRACEPARENT.exec(traceparent.trim()) ?? [];
  if (version === undefined || version === 'ff' || (version === '00' && more !== undefined)) {
    return undefined;
  }
  if (ZEROS.test(traceId) || ZEROS.test(spanId)) return undefined;
  const state = tracestate ?? '';
  return {
    traceId,
    spanId,
    sampled: (Number.parseInt(flags, 16) & 1) === 1,
    state: state.length <= MAX_STATE && STATE.test(state) ? state : '',
  };
}

// Made at once for many ids: one call of the generator costs more than the digits.
const POOL_BYTES = 4096;
let pool = '';
let used = 0;

function randomHex(digits: number): string {
  if (used + digits > pool.length) {
    pool = Buffer.from(crypto.getRandomValues(new Uint8Array(POOL_BYTES))).toString('hex');
    used = 0;
  }
  const text = pool.slice(used, used + digits);
  used += digits;
  return text.startsWith('0') && ZEROS.test(text) ? randomHex(digits) : text;
}

export const newTraceId = (): string => randomHex(32);
export const newSpanId = (): string => randomHex(16);

/** How traces begin. */
export interface Sampling {
  /** The part of traces that is kept, 0 to 1; decided by the trace id, so that all parties decide alike. */
  readonly ratio: number;
  /** The caller's sampled flag decides where there is one. */
  readonly trustSampled: boolean;
}

const HIGHEST = 0x1_0000_0000;

/** As the TraceIdRatioBased sampler: the last bytes of an id are the random ones (Trace Context, level 2). */
export const inRatio = (traceId: string, ratio: number): boolean =>
  Number.parseInt(traceId.slice(24), 16) < ratio * HIGHEST;

/** Where a server is. */
export interface ServerAddress {
  readonly host: string;
  readonly port: number;
}

/** The address in a URL; undefined for the built-in model, which has none. */
export function addressOf(url: string): ServerAddress | undefined {
  if (!URL.canParse(url)) return undefined;
  const { hostname: host, port, protocol } = new URL(url);
  if (host === '') return undefined;
  return { host, port: Number(port) || (protocol === 'http:' ? 80 : 443) };
}

/** One try at an upstream. Times are of `performance.now()`. */
export interface TracedTry {
  readonly spanId: string;
  readonly hop: number;
  /** Counts the tries of its hop, from 1. */
  readonly attempt: number;
  /** `provider/model` */
  readonly target: string;
  /** Without query: it may hold a key. */
  readonly url: string;
  readonly server: ServerAddress | undefined;
  readonly started: number;
  /** The HTTP status; undefined: no answer came. */
  status?: number;
  ended?: number;
  /** The kind of error that ended it. */
  error?: string;
}

/** A try of a call that the exchange made besides its own: images described, a search, vectors. */
export interface TracedCall {
  readonly spanId: string;
  /** As the configuration names it. */
  readonly provider: string;
  /** As the vendor spells it. */
  readonly model: string;
  /** `provider/model` */
  readonly target: string;
  /** The protocol, or `embeddings`. */
  readonly kind: string;
  readonly attempt: number;
  readonly started: number;
  status?: number;
  ended?: number;
  /** How it ended, if it was not answered: `error`, `timeout`, `cut` or `client_gone`. */
  error?: string;
  /** Cached ones too. */
  inputTokens?: number;
  /** Those of reasoning too. */
  outputTokens?: number;
}

/** A tool that this gateway ran. */
export interface TracedTool {
  readonly name: string;
  readonly started: number;
  readonly ended: number;
  readonly failed: boolean;
}

// An exchange has some tries and some tens of tool runs; one that never ends must not fill the memory.
const MAX_PARTS = 200;

/** What the client was answered. */
export interface TracedAnswer {
  readonly status: number;
  readonly sse: boolean;
  /** Its first bytes. */
  readonly chunks: Uint8Array[];
}

/** Ids from the start of an exchange; tries and tools are added while it runs, where it is sampled. */
export class ExchangeTrace {
  readonly traceId: string;
  /** The span of the whole exchange. */
  readonly spanId: string;
  /** The caller's span. */
  readonly parentId: string | undefined;
  readonly sampled: boolean;
  readonly state: string;
  /** The span of the model call over all hops and tries. */
  readonly callId: string;
  readonly tries: TracedTry[] = [];
  readonly tools: TracedTool[] = [];
  readonly calls: TracedCall[] = [];
  /** Kept where the content of messages goes into spans. */
  answer: TracedAnswer | undefined;
  /** Id of the last answer, as the vendor names it. */
  responseId: string | undefined;
  responseModel: string | undefined;

  constructor(sampling: Sampling, caller: CallerContext | undefined) {
    this.traceId = caller?.traceId ?? newTraceId();
    this.parentId = caller?.spanId;
    this.state = caller?.state ?? '';
    this.sampled =
      caller !== undefined && sampling.trustSampled
        ? caller.sampled
        : inRatio(this.traceId, sampling.ratio);
    this.spanId = newSpanId();
    this.callId = newSpanId();
  }

  addTry(one: TracedTry): void {
    if (this.tries.length < MAX_PARTS) this.tries.push(one);
  }

  addTool(one: TracedTool): void {
    if (this.tools.length < MAX_PARTS) this.tools.push(one);
  }

  addCall(one: TracedCall): void {
    if (this.calls.length < MAX_PARTS) this.calls.push(one);
  }

  /** `traceparent` of a request that this exchange sends. */
  parentOf(spanId: string): string {
    return `00-${this.traceId}-${spanId}-${this.sampled ? '01' : '00'}`;
  }
}

/** The span id in a `traceparent` that {@link ExchangeTrace.parentOf} wrote. */
export const spanIdIn = (traceparent: string | null): string | undefined =>
  traceparent === null ? undefined : TRACEPARENT.exec(traceparent)?.[3];
