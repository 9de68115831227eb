/** Sends traces and metrics by OTLP with the official packages; loaded only where a collector is configured. */

import {
  type Attributes,
  type DiagLogFunction,
  DiagLogLevel,
  diag,
  type HrTime,
  ValueType,
} from '@opentelemetry/api';
import { OTLPMetricExporter } from '@opentelemetry/exporter-metrics-otlp-proto';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-proto';
import { type Resource, resourceFromAttributes } from '@opentelemetry/resources';
import {
  AggregationTemporality,
  type CollectionResult,
  type DataPoint,
  DataPointType,
  type Histogram,
  MeterProvider,
  type MetricData,
  type MetricProducer,
  PeriodicExportingMetricReader,
  type ScopeMetrics,
} from '@opentelemetry/sdk-metrics';
import { BatchSpanProcessor } from '@opentelemetry/sdk-trace-base';
import { isObject, tryParse } from '../../lib/json/json.ts';
import { within } from '../../lib/loop/abort.ts';
import {
  attributeName,
  GEN_AI_LABELS,
  GEN_AI_METRICS,
  type GenAiNames,
  prometheusName,
  TOKEN_TYPE,
} from '../gen-ai-names.ts';
import type { MetricFamily, MetricSeries } from '../metrics.ts';
import { ExchangeSpans, hrTime, type TracedExchange } from './exchange-spans.ts';

interface OtlpTarget {
  readonly url: string;
  readonly headers: Readonly<Record<string, { reveal(): string }>>;
  readonly timeoutMs: number;
  readonly gzip: boolean;
}

export interface OpenTelemetryOptions {
  readonly traces?: OtlpTarget;
  readonly metrics?: OtlpTarget & { readonly intervalMs: number };
  readonly names: GenAiNames;
  readonly serviceName: string;
  readonly attributes: Readonly<Record<string, string>>;
  readonly version: string;
  readonly families: () => readonly MetricFamily[];
  /** The collector takes nothing (with what it said), or takes something again. */
  readonly onState: (signal: 'traces' | 'metrics', failure: string | undefined) => void;
}

export interface OpenTelemetry {
  /** Queues the spans of an exchange that has ended; never waits, and drops them when the queue is full. */
  exchange(traced: TracedExchange): void;
  /** Sends what is queued, for {@link CLOSE_MS} at most. */
  close(): Promise<void>;
}

// A collector that is away must not hold up a stop.
const CLOSE_MS = 3000;

export function startOpenTelemetry(options: OpenTelemetryOptions): OpenTelemetry {
  const { traces, metrics, names, version, families, onState } = options;
  const scope = { name: 'hopgate', version };
  const resource = resourceFromAttributes({
    'service.instance.id': crypto.randomUUID(),
    ...options.attributes,
    'service.name': options.serviceName,
    'service.version': version,
    'telemetry.sdk.language': 'nodejs',
    'telemetry.sdk.name': 'opentelemetry',
  });
  const processor =
    traces &&
    new BatchSpanProcessor(
      new WatchedExporter(
        new OTLPTraceExporter(settings(traces)),
        traces.timeoutMs,
        reporter((failure) => onState('traces', failure)),
      ),
    );
  const spans = new ExchangeSpans({ resource, scope, names });
  const meters =
    metrics &&
    new MeterProvider({
      resource,
      readers: [
        new PeriodicExportingMetricReader({
          exporter: new WatchedExporter(
            new OTLPMetricExporter(settings(metrics)),
            metrics.timeoutMs,
            reporter((failure) => onState('metrics', failure)),
          ),
          exportIntervalMillis: metrics.intervalMs,
          exportTimeoutMillis: Math.min(metrics.timeoutMs, metrics.intervalMs),
          metricProducers: [new RegistryProducer({ resource, scope, names, families })],
        }),
      ],
    });
  return {
    exchange(traced) {
      if (processor === undefined) return;
      for (const span of spans.of(traced)) processor.onEnd(span);
    },
    async close() {
      const closed = Promise.allSettled([processor?.shutdown(), meters?.shutdown()]);
      await within(CLOSE_MS, closed, () => {});
    },
  };
}

const settings = ({ url, headers, timeoutMs, gzip }: OtlpTarget) => ({
  url,
  headers: Object.fromEntries(
    Object.entries(headers).map(([name, value]) => [name, value.reveal()]),
  ),
  timeoutMillis: timeoutMs,
  // The packages give the two words as an enum of a package that is not used otherwise.
  compression: (gzip ? 'gzip' : 'none') as never,
});

interface Result {
  /** 0: all was taken. */
  readonly code: number;
  readonly error?: Error;
}

interface Exporter<T> {
  export(items: T, done: (result: Result) => void): void;
  forceFlush?(): Promise<void>;
  shutdown(): Promise<void>;
}

/** After the packages' own deadline, which each byte of an answer moves. */
const LATE_MS = 500;

export class WatchedExporter<T> implements Exporter<T> {
  constructor(
    private readonly exporter: Exporter<T>,
    private readonly timeoutMs: number,
    private readonly report: (failure: string | undefined) => void,
  ) {
    diag.setLogger(REMARKS, { logLevel: DiagLogLevel.WARN, suppressOverrideMessage: true });
  }

  export(items: T, done: (result: Result) => void): void {
    let over = false;
    const end = (result: Result, failure: string | undefined) => {
      if (over) return;
      over = true;
      clearTimeout(timer);
      this.report(failure);
      done(result);
    };
    const timer = setTimeout(() => {
      const error = new Error(`no whole answer within ${this.timeoutMs} ms`);
      end({ code: 1, error }, error.message);
    }, this.timeoutMs + LATE_MS).unref();
    this.exporter.export(items, (result) => {
      const remark = takeRemark();
      const failure = result.code === 0 ? remark : result.error?.message || 'no answer';
      end(result, failure);
    });
  }

  forceFlush(): Promise<void> {
    return this.exporter.forceFlush?.() ?? Promise.resolve();
  }

  shutdown(): Promise<void> {
    return this.exporter.shutdown();
  }
}

/** What the packages say of an answer with a status of success, in the turn in which they give the result. */
let remark: string | undefined;

function takeRemark(): string | undefined {
  const found = remark;
  remark = undefined;
  return found;
}

const ignore: DiagLogFunction = () => {};
const REMARKS = {
  error: ignore,
  warn: (_namespace: string, ...args: unknown[]) => {
    remark = refusalIn(args) ?? remark;
  },
  info: ignore,
  debug: ignore,
  verbose: ignore,
};

/** A partial success, as JSON, or an answer that is none of OTLP. */
function refusalIn(args: readonly unknown[]): string | undefined {
  for (const arg of args) {
    if (arg instanceof Uint8Array && Buffer.from(arg).toString('latin1').trimStart()[0] === '<') {
      return 'it answered with a web page';
    }
    const told = typeof arg === 'string' ? tryParse(arg) : undefined;
    if (!isObject(told)) continue;
    const count = Number(told.rejectedSpans ?? told.rejectedDataPoints ?? 0);
    if (count > 0) return `${count} were refused: ${told.errorMessage || 'it does not say why'}`;
  }
  return undefined;
}

// A collector that fails now and then must not fill the log.
const REPORT_MS = 60_000;
const MAX_MESSAGE = 200;

/** Reports the first failure, and the first success after a reported failure; at most one failure a minute. */
export function reporter(
  onState: (failure: string | undefined) => void,
): (failure: string | undefined) => void {
  let failing = false;
  let reported = Number.NEGATIVE_INFINITY;
  return (failure) => {
    const now = performance.now();
    if (failure === undefined) {
      if (failing) onState(undefined);
      failing = false;
    } else if (!failing && now - reported >= REPORT_MS) {
      failing = true;
      reported = now;
      onState(failure.slice(0, MAX_MESSAGE));
    }
  };
}

interface ProducerOptions {
  readonly resource: Resource;
  readonly scope: ScopeMetrics['scope'];
  readonly names: GenAiNames;
  readonly families: () => readonly MetricFamily[];
}

/** How a family is called in OTLP. */
interface Identity {
  readonly name: string;
  readonly unit: string;
  /** Attributes that all its series have. */
  readonly attributes: Attributes;
}

export class RegistryProducer implements MetricProducer {
  readonly #startTime: HrTime;
  /** The families that have another name in OTLP, by their name in the registry. */
  readonly #renamed: ReadonlyMap<string, Identity>;

  constructor(private readonly options: ProducerOptions) {
    this.#startTime = hrTime(Date.now() - process.uptime() * 1000);
    this.#renamed = new Map(
      Object.values(GEN_AI_METRICS).map((metric) => [
        prometheusName(metric),
        {
          name: metric[options.names],
          unit: metric.unit,
          attributes:
            options.names === 'older' && 'tokenType' in metric
              ? { [TOKEN_TYPE]: metric.tokenType }
              : {},
        },
      ]),
    );
  }

  collect(): Promise<CollectionResult> {
    const { resource, scope, families } = this.options;
    const endTime = hrTime(Date.now());
    const metrics = new Map<string, MetricData>();
    for (const family of families()) {
      const identity = this.#renamed.get(family.name) ?? ownIdentity(family);
      const points = family.series.map((one) => this.#point(family, identity, one, endTime));
      const before = metrics.get(identity.name);
      // Under the older names two families are one metric.
      if (before !== undefined) before.dataPoints.push(...(points as never[]));
      else metrics.set(identity.name, metricOf(family, identity, points));
    }
    const scopeMetrics = [{ scope, metrics: [...metrics.values()] }];
    return Promise.resolve({ resourceMetrics: { resource, scopeMetrics }, errors: [] });
  }

  #point(
    family: MetricFamily,
    identity: Identity,
    { labels, value, counts }: MetricSeries,
    endTime: HrTime,
  ): DataPoint<number> | DataPoint<Histogram> {
    const attributes: Attributes = { ...identity.attributes };
    family.labels.forEach((label, i) => {
      const known = GEN_AI_LABELS[label];
      const name = known === undefined ? label : attributeName(known, this.options.names);
      attributes[name] = labels[i];
    });
    const times = { startTime: this.#startTime, endTime, attributes };
    if (counts === undefined) return { ...times, value };
    const count = counts.reduce((sum, one) => sum + one, 0);
    return {
      ...times,
      value: {
        buckets: { boundaries: [...family.buckets], counts: [...counts] },
        sum: value,
        count,
      },
    };
  }
}

/** The names of the registry stay; the unit is in them, as Prometheus has it. */
function ownIdentity({ name }: MetricFamily): Identity {
  const unit = /_(seconds|bytes)(?:_total)?$/.exec(name)?.[1];
  return { name, unit: unit === 'seconds' ? 's' : unit === 'bytes' ? 'By' : '', attributes: {} };
}

function metricOf(
  { help, type }: MetricFamily,
  { name, unit }: Identity,
  points: readonly (DataPoint<number> | DataPoint<Histogram>)[],
): MetricData {
  const common = {
    descriptor: { name, description: help, unit, valueType: ValueType.DOUBLE },
    aggregationTemporality: AggregationTemporality.CUMULATIVE,
  };
  if (type === 'histogram') {
    const dataPoints = [...points] as DataPoint<Histogram>[];
    return { ...common, dataPointType: DataPointType.HISTOGRAM, dataPoints };
  }
  const dataPoints = [...points] as DataPoint<number>[];
  return type === 'counter'
    ? { ...common, dataPointType: DataPointType.SUM, isMonotonic: true, dataPoints }
    : { ...common, dataPointType: DataPointType.GAUGE, dataPoints };
}
