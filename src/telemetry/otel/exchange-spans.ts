/** The spans of one exchange as one tree: the request, the model call, each try at a vendor, each tool run, each call to another model. */

import {
  type Attributes,
  type AttributeValue,
  createTraceState,
  type HrTime,
  type SpanContext,
  SpanKind,
  type SpanStatus,
  SpanStatusCode,
  TraceFlags,
  type TraceState,
} from '@opentelemetry/api';
import type { Resource } from '@opentelemetry/resources';
import type { ReadableSpan } from '@opentelemetry/sdk-trace-base';
import type { ExchangeRecord } from '../exchange.ts';
import {
  attributeName,
  type GenAiAttribute,
  type GenAiNames,
  operationOf,
} from '../gen-ai-names.ts';
import {
  type ExchangeTrace,
  newSpanId,
  type ServerAddress,
  type TracedCall,
  type TracedTool,
  type TracedTry,
} from '../trace.ts';

/** What the spans of an exchange are made of, once it is over. */
export interface TracedExchange {
  readonly trace: ExchangeTrace;
  readonly record: ExchangeRecord;
  /** `performance.now()` when the request came. */
  readonly started: number;
  /** The path that the client asked for. */
  readonly path?: string;
  /** Where the target is that answered or was tried last. */
  readonly server?: ServerAddress;
  /** A provider as the conventions name it, and where it is. */
  readonly vendorOf: (provider: string) => {
    readonly name: string;
    readonly server: ServerAddress | undefined;
  };
  /** Attributes of the model call beside those of `record`. */
  readonly call: Readonly<Partial<Record<GenAiAttribute, AttributeValue | undefined>>>;
}

interface SpanSource {
  readonly resource: Resource;
  readonly scope: ReadableSpan['instrumentationScope'];
  readonly names: GenAiNames;
}

const OK: SpanStatus = { code: SpanStatusCode.UNSET };
const FAILED: SpanStatus = { code: SpanStatusCode.ERROR };
const NONE: readonly never[] = [];

export class ExchangeSpans {
  constructor(private readonly source: SpanSource) {}

  /** Parents come first. */
  of(traced: TracedExchange): readonly ReadableSpan[] {
    const { trace, record, started } = traced;
    // Spans carry the wall clock. It is read once, so that a clock that jumps cannot turn the tree upside down.
    const clock = Date.now() - performance.now();
    const ended = started + record.timings.total;
    const context = contextsOf(trace);
    const span = (fields: SpanFields) => new FinishedSpan(this.source, clock, fields);
    const spans: ReadableSpan[] = [
      span({
        name: `POST ${traced.path ?? ''}`.trimEnd(),
        kind: SpanKind.SERVER,
        context: context(trace.spanId),
        parent: trace.parentId === undefined ? undefined : context(trace.parentId, true),
        started,
        ended,
        // A client's own mistake is no failure of the server.
        failed: record.status >= 500 || (record.status < 400 && record.error !== undefined),
        attributes: requestAttributes(traced),
      }),
    ];
    // A request that no target was found for made no call.
    if (record.genAi === undefined) return spans;
    const server = context(trace.spanId);
    const call = context(trace.callId);
    spans.push(
      span({
        name: `${record.genAi.operation} ${record.genAi.model}`,
        kind: SpanKind.CLIENT,
        context: call,
        parent: server,
        started: Math.min(ended, started + (record.timings.queue ?? 0)),
        ended,
        failed: record.error !== undefined && record.aborted !== true,
        attributes: this.#callAttributes(traced),
      }),
    );
    const request = (one: TracedTry | TracedCall, name: string, attributes: Attributes) =>
      span({
        name,
        kind: SpanKind.CLIENT,
        context: context(one.spanId),
        parent: call,
        started: one.started,
        ended: one.ended ?? ended,
        failed: one.error !== undefined || (one.status ?? 0) >= 400,
        attributes,
      });
    trace.tries.forEach((one, index) => {
      spans.push(request(one, 'POST', tryAttributes(one, index)));
    });
    for (const tool of trace.tools) {
      spans.push(
        span({
          name: `execute_tool ${tool.name}`,
          kind: SpanKind.INTERNAL,
          context: context(newSpanId()),
          parent: call,
          started: tool.started,
          ended: tool.ended,
          failed: tool.failed,
          attributes: this.#toolAttributes(tool),
        }),
      );
    }
    for (const one of trace.calls) {
      const name = `${operationOf(one.kind)} ${one.model}`;
      spans.push(request(one, name, this.#sideAttributes(one, traced)));
    }
    return spans;
  }

  #sideAttributes(one: TracedCall, { vendorOf }: TracedExchange): Attributes {
    const { name, server } = vendorOf(one.provider);
    const failedStatus = one.status !== undefined && one.status >= 400;
    return defined({
      ...this.#named({
        operation: operationOf(one.kind),
        provider: name,
        requestModel: one.model,
        inputTokens: one.inputTokens,
        outputTokens: one.outputTokens,
      }),
      'http.response.status_code': one.status,
      'http.request.resend_count': one.attempt > 1 ? one.attempt - 1 : undefined,
      'server.address': server?.host,
      'server.port': server?.port,
      'error.type': failedStatus ? String(one.status) : one.error,
      'hopgate.target': one.target,
    });
  }

  #callAttributes({ record, trace, server, call }: TracedExchange): Attributes {
    const { genAi, usage, stream, timings } = record;
    const firstChunk = timings.firstByte;
    const values: Partial<Record<GenAiAttribute, AttributeValue | undefined>> = {
      operation: genAi?.operation,
      provider: genAi?.provider,
      requestModel: genAi?.model,
      requestStream: stream || undefined,
      ...call,
      responseId: trace.responseId,
      responseModel: trace.responseModel,
      firstChunk: stream && firstChunk !== undefined ? firstChunk / 1000 : undefined,
      ...(usage && {
        // The conventions count the cached tokens as input and the reasoning as output.
        inputTokens: usage.input + (usage.cacheRead ?? 0) + (usage.cacheWrite ?? 0),
        outputTokens: usage.output + (usage.reasoning ?? 0),
        cacheReadTokens: usage.cacheRead,
        cacheWriteTokens: usage.cacheWrite,
        reasoningTokens: usage.reasoning,
      }),
    };
    return defined({
      ...this.#named(values),
      'server.address': server?.host,
      'server.port': server?.port,
      'error.type': record.error?.kind,
      'hopgate.target': record.target,
      'hopgate.hops': record.hops,
      'hopgate.tries': trace.tries.length,
      'hopgate.notes': record.notes === '' ? undefined : record.notes,
    });
  }

  #toolAttributes({ name, failed }: TracedTool): Attributes {
    return defined({
      ...this.#named({ operation: 'execute_tool', toolName: name, toolType: 'function' }),
      'error.type': failed ? 'tool_error' : undefined,
    });
  }

  #named(values: Partial<Record<GenAiAttribute, AttributeValue | undefined>>): Attributes {
    const out: Attributes = {};
    for (const key in values) {
      const attribute = key as GenAiAttribute;
      out[attributeName(attribute, this.source.names)] = values[attribute];
    }
    return out;
  }
}

function requestAttributes({ record, path }: TracedExchange): Attributes {
  return defined({
    'http.request.method': 'POST',
    'url.scheme': 'http',
    'url.path': path,
    'http.response.status_code': record.status,
    'client.address': record.address,
    'user_agent.original': record.userAgent?.slice(0, 256),
    'error.type': record.error?.kind,
    'hopgate.request.id': record.id,
    'hopgate.protocol': record.protocol,
    'hopgate.key': record.key === '' ? undefined : record.key,
    'hopgate.key_name': record.key === '' ? undefined : record.keyName,
  });
}

function tryAttributes(one: TracedTry, index: number): Attributes {
  const failedStatus = one.status !== undefined && one.status >= 400;
  return defined({
    'http.request.method': 'POST',
    'url.full': one.url,
    'server.address': one.server?.host,
    'server.port': one.server?.port,
    'http.response.status_code': one.status,
    'http.request.resend_count': one.attempt > 1 ? one.attempt - 1 : undefined,
    'error.type': failedStatus ? String(one.status) : one.error,
    'hopgate.target': one.target,
    'hopgate.hop': one.hop,
    'hopgate.try': index + 1,
  });
}

/** Without attributes that have no value. */
function defined(attributes: Attributes): Attributes {
  const out: Attributes = {};
  for (const name in attributes) {
    if (attributes[name] !== undefined) out[name] = attributes[name];
  }
  return out;
}

function contextsOf({ traceId, state }: ExchangeTrace) {
  const traceState: TraceState | undefined = state === '' ? undefined : createTraceState(state);
  return (spanId: string, isRemote = false): SpanContext => ({
    traceId,
    spanId,
    traceFlags: TraceFlags.SAMPLED,
    isRemote,
    traceState,
  });
}

interface SpanFields {
  readonly name: string;
  readonly kind: SpanKind;
  readonly context: SpanContext;
  readonly parent: SpanContext | undefined;
  /** Both are times of `performance.now()`. */
  readonly started: number;
  readonly ended: number;
  readonly failed: boolean;
  readonly attributes: Attributes;
}

/** A span that is over: the SDK's own would be made twice as dear by what only open spans need. */
class FinishedSpan implements ReadableSpan {
  readonly name: string;
  readonly kind: SpanKind;
  readonly parentSpanContext: SpanContext | undefined;
  readonly startTime: HrTime;
  readonly endTime: HrTime;
  readonly duration: HrTime;
  readonly status: SpanStatus;
  readonly attributes: Attributes;
  readonly links = [...NONE];
  readonly events = [...NONE];
  readonly ended = true;
  readonly resource: Resource;
  readonly instrumentationScope: ReadableSpan['instrumentationScope'];
  readonly droppedAttributesCount = 0;
  readonly droppedEventsCount = 0;
  readonly droppedLinksCount = 0;
  readonly #context: SpanContext;

  constructor({ resource, scope }: SpanSource, clock: number, fields: SpanFields) {
    const { started } = fields;
    const ended = Math.max(started, fields.ended);
    this.name = fields.name;
    this.kind = fields.kind;
    this.#context = fields.context;
    this.parentSpanContext = fields.parent;
    this.startTime = hrTime(clock + started);
    this.endTime = hrTime(clock + ended);
    this.duration = hrTime(ended - started);
    this.status = fields.failed ? FAILED : OK;
    this.attributes = fields.attributes;
    this.resource = resource;
    this.instrumentationScope = scope;
  }

  spanContext(): SpanContext {
    return this.#context;
  }
}

/** Of milliseconds, to a microsecond: more digits than a clock in milliseconds since 1970 has. */
export function hrTime(ms: number): HrTime {
  const micros = Math.round(ms * 1000);
  const seconds = Math.floor(micros / 1e6);
  return [seconds, (micros - seconds * 1e6) * 1000];
}
