/** Sends traces and metrics by OTLP with the official packages; loaded only where a collector is configured. */

import { OTLPMetricExporter } from '@opentelemetry/exporter-metrics-otlp-proto';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-proto';
import { resourceFromAttributes } from '@opentelemetry/resources';
import { MeterProvider, PeriodicExportingMetricReader } from '@opentelemetry/sdk-metrics';
import { BatchSpanProcessor } from '@opentelemetry/sdk-trace-base';
import type { GenAiNames } from '../gen-ai-names.ts';
import type { MetricFamily } from '../metrics.ts';
import { ExchangeSpans, type TracedExchange } from './exchange-spans.ts';
import { RegistryProducer } from './registry-producer.ts';
import { reporter, WatchedExporter } from './watched-exporter.ts';

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
      let timer: ReturnType<typeof setTimeout> | undefined;
      const late = new Promise<void>((resolve) => {
        timer = setTimeout(resolve, CLOSE_MS);
      });
      const closed = Promise.allSettled([processor?.shutdown(), meters?.shutdown()]);
      await Promise.race([closed, late]);
      clearTimeout(timer);
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
