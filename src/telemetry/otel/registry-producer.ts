/** The metrics of the registry as OpenTelemetry's data: one source for `GET /metrics` and for OTLP. */

import { type Attributes, type HrTime, ValueType } from '@opentelemetry/api';
import type { Resource } from '@opentelemetry/resources';
import {
  AggregationTemporality,
  type CollectionResult,
  type DataPoint,
  DataPointType,
  type Histogram,
  type MetricData,
  type MetricProducer,
  type ScopeMetrics,
} from '@opentelemetry/sdk-metrics';
import {
  attributeName,
  GEN_AI_LABELS,
  GEN_AI_METRICS,
  type GenAiNames,
  prometheusName,
  TOKEN_TYPE,
} from '../gen-ai-names.ts';
import type { MetricFamily, MetricSeries } from '../metrics.ts';
import { hrTime } from './exchange-spans.ts';

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
  readonly #options: ProducerOptions;
  readonly #startTime: HrTime;
  /** The families that have another name in OTLP, by their name in the registry. */
  readonly #renamed: ReadonlyMap<string, Identity>;

  constructor(options: ProducerOptions) {
    this.#options = options;
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
    const { resource, scope, families } = this.#options;
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
      const name = known === undefined ? label : attributeName(known, this.#options.names);
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
