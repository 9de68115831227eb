/** A collector that keeps what it gets, and OpenTelemetry's own protobuf definitions (PyPI) to read it. */

import { join } from 'node:path';

export interface OtlpRequest {
  /** `traces` or `metrics` */
  readonly signal: string;
  readonly headers: Headers;
  readonly body: Uint8Array;
}

export interface OtlpReceiver {
  readonly url: string;
  readonly requests: OtlpRequest[];
  /**
   * What it does with the next requests: takes them, refuses them with a 503, never answers, refuses some with a 200,
   * answers with a web page, or with one byte after the other.
   */
  mood: 'takes' | 'refuses' | 'hangs' | 'refuses some' | 'is no collector' | 'goes on and on';
  stop(): Promise<void>;
}

export function startOtlpReceiver(): OtlpReceiver {
  const requests: OtlpRequest[] = [];
  const hung = Promise.withResolvers<Response>();
  const server = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    idleTimeout: 0,
    async fetch(request) {
      const signal = new URL(request.url).pathname.replace('/v1/', '');
      const bytes = new Uint8Array(await request.arrayBuffer());
      const gzip = request.headers.get('content-encoding') === 'gzip';
      const sent = gzip ? Bun.gunzipSync(bytes) : bytes;
      requests.push({ signal, headers: request.headers, body: sent });
      if (receiver.mood === 'hangs') return hung.promise;
      if (receiver.mood === 'refuses') return new Response(null, { status: 503 });
      if (receiver.mood === 'is no collector') {
        return new Response('<!doctype html>', { headers: { 'content-type': 'text/html' } });
      }
      if (receiver.mood === 'goes on and on') return new Response(byteByByte());
      const body = receiver.mood === 'refuses some' ? SOME_REFUSED : null;
      return new Response(body, { headers: { 'content-type': 'application/x-protobuf' } });
    },
  });
  const receiver: OtlpReceiver = {
    url: `http://127.0.0.1:${server.port}`,
    requests,
    mood: 'takes',
    async stop() {
      hung.resolve(new Response(null, { status: 503 }));
      await server.stop(true);
    },
  };
  return receiver;
}

/** `partial_success { rejected: 5, error_message: "over quota" }`, of traces and metrics alike. */
const SOME_REFUSED = Buffer.from('\x0a\x0e\x08\x05\x12\x0aover quota', 'latin1');

function byteByByte(): ReadableStream<Uint8Array> {
  let timer: ReturnType<typeof setInterval>;
  return new ReadableStream({
    start(controller) {
      timer = setInterval(() => controller.enqueue(new Uint8Array(1)), 10);
    },
    cancel: () => clearInterval(timer),
  });
}

/** A python that has the definitions (`pip install opentelemetry-proto`); undefined where there is none. */
export const OTLP_PYTHON = [process.env.HOPGATE_OTLP_PYTHON, 'python3'].find((python) => {
  if (python === undefined || Bun.which(python) === null) return false;
  return Bun.spawnSync([python, '-c', 'import opentelemetry.proto.trace.v1.trace_pb2']).success;
});

interface AnyValue {
  readonly stringValue?: string;
  readonly intValue?: string;
  readonly doubleValue?: number;
  readonly boolValue?: boolean;
  readonly arrayValue?: { readonly values?: readonly AnyValue[] };
}

interface KeyValue {
  readonly key: string;
  readonly value: AnyValue;
}

export type Attributes = Readonly<Record<string, unknown>>;

function plain(value: AnyValue): unknown {
  if (value.intValue !== undefined) return Number(value.intValue);
  if (value.arrayValue !== undefined) return (value.arrayValue.values ?? []).map(plain);
  return value.stringValue ?? value.doubleValue ?? value.boolValue;
}

const attributesOf = (pairs: readonly KeyValue[] = []): Attributes =>
  Object.fromEntries(pairs.map(({ key, value }) => [key, plain(value)]));

export interface ReceivedSpan {
  readonly name: string;
  /** `server`, `client`, `internal` */
  readonly kind: string;
  readonly traceId: string;
  readonly spanId: string;
  /** '' for the root of a trace. */
  readonly parentSpanId: string;
  /** Nanoseconds since 1970. */
  readonly start: bigint;
  readonly end: bigint;
  readonly failed: boolean;
  readonly attributes: Attributes;
  readonly resource: Attributes;
}

export interface ReceivedMetric {
  readonly name: string;
  readonly unit: string;
  readonly kind: 'sum' | 'gauge' | 'histogram';
  readonly monotonic: boolean;
  readonly points: readonly {
    readonly attributes: Attributes;
    readonly value: number;
    readonly count: number;
    readonly bounds: readonly number[];
    readonly counts: readonly number[];
  }[];
  readonly resource: Attributes;
}

/** The bodies of one signal as JSON, in the mapping of protobuf. @throws Error with what the decoder says */
function decode(requests: readonly OtlpRequest[], signal: string): readonly Json[] {
  const lines = requests
    .filter((one) => one.signal === signal)
    .map(({ body }) => `${signal} ${Buffer.from(body).toString('base64')}\n`);
  const script = join(import.meta.dir, 'otlp-decode.py');
  const { success, stdout, stderr } = Bun.spawnSync([OTLP_PYTHON!, script], {
    stdin: Buffer.from(lines.join('')),
  });
  if (!success) throw new Error(String(stderr));
  const texts = String(stdout)
    .split('\n')
    .filter((line) => line !== '');
  return texts.map((line) => JSON.parse(line) as Json);
}

// biome-ignore lint/suspicious/noExplicitAny: the JSON of protobuf messages that are described elsewhere
type Json = Record<string, any>;

const hex = (base64 = '') => Buffer.from(base64, 'base64').toString('hex');

export function spansIn(requests: readonly OtlpRequest[]): readonly ReceivedSpan[] {
  return decode(requests, 'traces').flatMap(({ resourceSpans }) =>
    resourceSpans.flatMap(({ resource, scopeSpans }: Json) =>
      scopeSpans.flatMap(({ spans }: Json) =>
        spans.map(
          (span: Json): ReceivedSpan => ({
            name: span.name,
            kind: span.kind.replace('SPAN_KIND_', '').toLowerCase(),
            traceId: hex(span.traceId),
            spanId: hex(span.spanId),
            parentSpanId: hex(span.parentSpanId),
            start: BigInt(span.startTimeUnixNano),
            end: BigInt(span.endTimeUnixNano),
            failed: span.status?.code === 'STATUS_CODE_ERROR',
            attributes: attributesOf(span.attributes),
            resource: attributesOf(resource.attributes),
          }),
        ),
      ),
    ),
  );
}

export function metricsIn(requests: readonly OtlpRequest[]): readonly ReceivedMetric[] {
  return decode(requests, 'metrics').flatMap(({ resourceMetrics }) =>
    resourceMetrics.flatMap(({ resource, scopeMetrics }: Json) =>
      scopeMetrics.flatMap(({ metrics }: Json) =>
        metrics.map((metric: Json): ReceivedMetric => {
          const kind = (['sum', 'gauge', 'histogram'] as const).find((one) => one in metric)!;
          return {
            name: metric.name,
            unit: metric.unit ?? '',
            kind,
            monotonic: metric[kind].isMonotonic === true,
            points: (metric[kind].dataPoints ?? []).map((point: Json) => ({
              attributes: attributesOf(point.attributes),
              value: Number(point.asDouble ?? point.asInt ?? point.sum),
              count: Number(point.count ?? 0),
              bounds: point.explicitBounds ?? [],
              counts: (point.bucketCounts ?? []).map(Number),
            })),
            resource: attributesOf(resource.attributes),
          };
        }),
      ),
    ),
  );
}
