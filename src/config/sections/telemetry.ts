/** The section `telemetry`: where traces and metrics go by OTLP, with what the standard variables fill in. */

import { withoutTrailing } from '../../lib/text/trim-end.ts';
import type { Environment } from '../environment.ts';
import type { Findings, Path } from '../file/problem.ts';
import {
  choice,
  closed,
  flag,
  headerMap,
  httpUrl,
  number,
  type ProgramForm,
} from '../file/schema.ts';
import { Secret } from '../secret.ts';

const otlp = closed('OpenTelemetry.', {
  endpoint: httpUrl(
    'The base URL of a collector that takes OTLP over HTTP (protobuf), e.g. http://127.0.0.1:4318; /v1/traces and /v1/metrics are appended.',
  ).optional('$OTEL_EXPORTER_OTLP_ENDPOINT, else nothing is sent'),
  headers: headerMap(
    'Header name → value, sent to the collector. Added to those of $OTEL_EXPORTER_OTLP_HEADERS.',
    "^[A-Za-z0-9!#$%&'*+.^_`|~-]+$",
  ).byDefault({}),
  traces: number('The share of exchanges whose trace is sent: 1 = all, 0.1 = every tenth.', {
    minimum: 0,
    maximum: 1,
  }).optional('$OTEL_TRACES_SAMPLER and $OTEL_TRACES_SAMPLER_ARG, else 1'),
  trust_sampled: flag(
    "The sampled flag of a caller's traceparent decides. Otherwise the caller's trace id is used, and `traces` decides.",
  ).optional(
    'true for the samplers of $OTEL_TRACES_SAMPLER that begin with parentbased_, else false',
  ),
  metrics: flag('Send metrics too: the same numbers as GET /metrics.').optional(
    'false for OTEL_METRICS_EXPORTER=none, else true',
  ),
  names: choice(
    ['current', 'older'],
    'Names of gen_ai attributes and metrics: the current ones, or those of semantic conventions 1.36 (gen_ai.system, gen_ai.client.token.usage).',
  ).byDefault('current'),
});

export const telemetry = closed('Traces and metrics for an OpenTelemetry collector.', {
  otlp: otlp.byDefault({}),
});

/** One of the two signals: where it goes, and what is sent with it. */
export interface OtlpTarget {
  readonly url: string;
  /** May hold a key. */
  readonly headers: Readonly<Record<string, Secret>>;
  /** Milliseconds that one request may take, retries included. */
  readonly timeoutMs: number;
  readonly gzip: boolean;
}

export interface TelemetryConfig {
  /** Left out: no traces. */
  readonly traces?: OtlpTarget & {
    readonly ratio: number;
    readonly trustSampled: boolean;
    /** Spans hold what was said. */
    readonly content: boolean;
  };
  /** Left out: metrics are only served, not sent. */
  readonly metrics?: OtlpTarget & { readonly intervalMs: number };
  readonly names: 'current' | 'older';
  readonly serviceName: string;
  /** Further attributes of this process, from `$OTEL_RESOURCE_ATTRIBUTES`. */
  readonly attributes: Readonly<Record<string, string>>;
}

const DEFAULT_TIMEOUT_MS = 10_000;
const DEFAULT_INTERVAL_MS = 60_000;

/** The variables' names are those of the OpenTelemetry specification. A key of the file wins over its variable. */
export function resolveTelemetry(
  { otlp: own }: ProgramForm<typeof telemetry>,
  environment: Environment,
  findings: Findings,
): TelemetryConfig {
  const variables = new OtelVariables(environment, findings);
  const attributes = variables.pairs('OTEL_RESOURCE_ATTRIBUTES');
  const common = {
    names: own.names,
    serviceName: variables.text('OTEL_SERVICE_NAME') ?? attributes['service.name'] ?? 'hopgate',
    attributes,
  };
  if (variables.text('OTEL_SDK_DISABLED')?.toLowerCase() === 'true') return common;
  const sampler = samplerOf(variables);
  const ratio = own.traces ?? sampler.ratio;
  const trustSampled = own.trustSampled ?? sampler.trustSampled;
  const traces = variables.sends('TRACES') || own.traces !== undefined;
  const metrics = own.metrics ?? variables.sends('METRICS');
  const tracesTo = targetOf('TRACES', own, variables);
  const metricsTo = targetOf('METRICS', own, variables);
  const unused = tracesTo === undefined && metricsTo === undefined && own.traces !== undefined;
  if (unused) {
    findings.warnings.push({
      path: ['telemetry', 'otlp'],
      message: 'has no endpoint, so nothing is sent',
    });
  }
  const intervalMs = variables.count('OTEL_METRIC_EXPORT_INTERVAL') ?? DEFAULT_INTERVAL_MS;
  return {
    ...common,
    ...(traces && tracesTo !== undefined
      ? { traces: { ...tracesTo, ratio, trustSampled, content: contentOf(variables) } }
      : {}),
    ...(metrics && metricsTo !== undefined ? { metrics: { ...metricsTo, intervalMs } } : {}),
  };
}

function targetOf(
  signal: 'TRACES' | 'METRICS',
  own: ProgramForm<typeof otlp>,
  variables: OtelVariables,
): OtlpTarget | undefined {
  const base = own.endpoint ?? variables.url('OTEL_EXPORTER_OTLP_ENDPOINT');
  const ofSignal =
    own.endpoint === undefined ? variables.url(`OTEL_EXPORTER_OTLP_${signal}_ENDPOINT`) : undefined;
  const path = `/v1/${signal.toLowerCase()}`;
  const url = ofSignal ?? (base === undefined ? undefined : `${withoutTrailing(base, '/')}${path}`);
  if (url === undefined) return undefined;
  variables.checkProtocol(signal);
  const headers: Record<string, Secret> = {};
  const given = {
    ...variables.pairs('OTEL_EXPORTER_OTLP_HEADERS'),
    ...variables.pairs(`OTEL_EXPORTER_OTLP_${signal}_HEADERS`),
  };
  for (const [name, value] of Object.entries(given))
    headers[name.toLowerCase()] = new Secret(value);
  Object.assign(headers, own.headers);
  const ofExporter = (what: string) =>
    variables.text(`OTEL_EXPORTER_OTLP_${signal}_${what}`) ??
    variables.text(`OTEL_EXPORTER_OTLP_${what}`);
  const timeoutMs =
    variables.count(`OTEL_EXPORTER_OTLP_${signal}_TIMEOUT`) ??
    variables.count('OTEL_EXPORTER_OTLP_TIMEOUT') ??
    DEFAULT_TIMEOUT_MS;
  return { url, headers, timeoutMs, gzip: ofExporter('COMPRESSION') === 'gzip' };
}

interface Sampler {
  readonly ratio: number;
  readonly trustSampled: boolean;
}

const CONTENT = 'OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT';

/** The values of OpenTelemetry's instrumentations, and the older flag. Events are not sent. */
function contentOf(variables: OtelVariables): boolean {
  const value = variables.text(CONTENT)?.toLowerCase() ?? 'no_content';
  if (['true', 'span_only', 'span_and_event'].includes(value)) return true;
  if (!['false', 'no_content', 'event_only'].includes(value)) {
    variables.warn(
      CONTENT,
      'is not SPAN_ONLY, SPAN_AND_EVENT, EVENT_ONLY, NO_CONTENT, true or false; no content is sent',
    );
  }
  return false;
}

function samplerOf(variables: OtelVariables): Sampler {
  const name = variables.text('OTEL_TRACES_SAMPLER');
  if (name === undefined) return { ratio: 1, trustSampled: false };
  const trustSampled = name.startsWith('parentbased_');
  const kind = trustSampled ? name.slice('parentbased_'.length) : name;
  if (kind === 'always_on') return { ratio: 1, trustSampled };
  if (kind === 'always_off') return { ratio: 0, trustSampled };
  if (kind === 'traceidratio')
    return { ratio: variables.ratio('OTEL_TRACES_SAMPLER_ARG'), trustSampled };
  variables.warn(
    'OTEL_TRACES_SAMPLER',
    'is a sampler that hopgate does not have; all traces are sent',
  );
  return { ratio: 1, trustSampled: false };
}

const PATH: Path = ['telemetry', 'otlp'];
const HEADER_NAME = /^[A-Za-z0-9!#$%&'*+.^_`|~-]+$/;
const HEADER_VALUE = /^[\t -~\u0080-\u00ff]*$/;

/** Reads variables of the OpenTelemetry specification; a value that cannot be used is a warning and counts as not set. */
class OtelVariables {
  readonly #warned = new Set<string>();

  constructor(
    private readonly environment: Environment,
    private readonly findings: Findings,
  ) {}

  text(name: string): string | undefined {
    return this.environment.variable(name)?.trim() || undefined;
  }

  /** Once for each variable, and without its value: it may be a secret. */
  warn(name: string, words: string): void {
    if (this.#warned.has(name)) return;
    this.#warned.add(name);
    this.findings.warnings.push({ path: PATH, message: `the variable ${name} ${words}` });
  }

  url(name: string): string | undefined {
    const text = this.text(name);
    if (text === undefined) return undefined;
    if (/^https?:\/\//.test(text) && URL.canParse(text)) return text;
    this.warn(name, 'is not an http(s) URL and is ignored');
    return undefined;
  }

  /** A whole number of at least 1. */
  count(name: string): number | undefined {
    const text = this.text(name);
    if (text === undefined) return undefined;
    if (/^[1-9]\d{0,8}$/.test(text)) return Number(text);
    this.warn(name, 'is not a whole number above 0 and is ignored');
    return undefined;
  }

  /** 0 to 1; 1 where it is not set. */
  ratio(name: string): number {
    const text = this.text(name);
    const value = Number(text ?? 1);
    if (value >= 0 && value <= 1) return value;
    this.warn(name, 'is not a number from 0 to 1; all traces are sent');
    return 1;
  }

  /** `key=value,key2=value2`, values percent-encoded (W3C Baggage). */
  pairs(name: string): Readonly<Record<string, string>> {
    const found: [string, string][] = [];
    for (const part of this.text(name)?.split(',') ?? []) {
      const at = part.indexOf('=');
      const key = part.slice(0, Math.max(0, at)).trim();
      const value = decoded(part.slice(at + 1).trim());
      if (at > 0 && HEADER_NAME.test(key) && value !== undefined) found.push([key, value]);
      else if (part.trim() !== '')
        this.warn(name, 'holds a part that is not key=value; it is ignored');
    }
    return Object.fromEntries(found);
  }

  /** `OTEL_TRACES_EXPORTER` or `OTEL_METRICS_EXPORTER` does not say `none` or something else than `otlp`. */
  sends(signal: 'TRACES' | 'METRICS'): boolean {
    const exporters = this.text(`OTEL_${signal}_EXPORTER`)?.split(',') ?? ['otlp'];
    return exporters.some((one) => one.trim() === 'otlp');
  }

  checkProtocol(signal: 'TRACES' | 'METRICS'): void {
    for (const name of [`OTEL_EXPORTER_OTLP_${signal}_PROTOCOL`, 'OTEL_EXPORTER_OTLP_PROTOCOL']) {
      const protocol = this.text(name);
      if (protocol === undefined || protocol === 'http/protobuf') continue;
      this.warn(name, 'is another protocol than http/protobuf, the one that hopgate sends');
    }
  }
}

function decoded(value: string): string | undefined {
  try {
    const text = decodeURIComponent(value);
    return HEADER_VALUE.test(text) ? text : undefined;
  } catch {
    return undefined;
  }
}
