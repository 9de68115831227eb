/** Where traces and metrics go: the file first, then the variables of the OpenTelemetry specification. */

import { describe, expect, test } from 'bun:test';
import type { TelemetryConfig } from '../../../src/config/sections/telemetry.ts';
import { bad, good, PROVIDER, parse } from '../support.ts';

type Variables = Record<string, string>;

const file = (otlp: unknown) => `${PROVIDER}telemetry: ${JSON.stringify({ otlp })}\n`;
const telemetry = (otlp: unknown, variables: Variables = {}) =>
  good(otlp === undefined ? PROVIDER : file(otlp), variables).telemetry;
const warnings = (variables: Variables, otlp: unknown = {}) => {
  const result = parse(file(otlp), variables);
  return result.ok ? result.warnings.map(({ message }) => message) : [];
};
const headersOf = (target: TelemetryConfig['traces'] | TelemetryConfig['metrics']) =>
  Object.fromEntries(
    Object.entries(target!.headers).map(([name, value]) => [name, value.reveal()]),
  );

const ENDPOINT = { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://collector:4318/' };

describe('without an endpoint', () => {
  test('nothing is sent', () => {
    for (const otlp of [undefined, {}, { metrics: true }]) {
      const { traces, metrics } = telemetry(otlp);
      expect([traces, metrics]).toEqual([undefined, undefined]);
    }
  });

  test('a ratio alone gets a warning', () => {
    expect(warnings({}, { traces: 0.5 })).toEqual(['has no endpoint, so nothing is sent']);
  });
});

describe('the content of messages', () => {
  const NAME = 'OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT';

  test.each([
    [undefined, false],
    ['NO_CONTENT', false],
    ['event_only', false],
    ['false', false],
    ['SPAN_ONLY', true],
    ['span_and_event', true],
    ['True', true],
  ])('%p means %p', (value, content) => {
    const variables = value === undefined ? ENDPOINT : { ...ENDPOINT, [NAME]: value };
    expect(telemetry(undefined, variables).traces?.content).toBe(content);
    expect(warnings(variables)).toEqual([]);
  });

  test('another value is a warning, and no content is sent', () => {
    const variables = { ...ENDPOINT, [NAME]: 'yes please' };
    expect(telemetry(undefined, variables).traces?.content).toBe(false);
    expect(warnings(variables).join()).toContain('no content is sent');
  });
});

describe('the file', () => {
  test('names a base URL; all exchanges are traced, callers are not trusted, metrics are sent', () => {
    const { traces, metrics, names, serviceName } = telemetry({ endpoint: 'http://c:4318' });
    expect(traces).toMatchObject({
      url: 'http://c:4318/v1/traces',
      ratio: 1,
      trustSampled: false,
      timeoutMs: 10_000,
      gzip: false,
    });
    expect(metrics).toMatchObject({ url: 'http://c:4318/v1/metrics', intervalMs: 60_000 });
    expect([names, serviceName]).toEqual(['current', 'hopgate']);
  });

  test('wins over every variable', () => {
    const { traces, metrics } = telemetry(
      { endpoint: 'https://own/otlp', traces: 0.1, trust_sampled: false, metrics: false },
      {
        ...ENDPOINT,
        OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: 'http://other/v1/traces',
        OTEL_TRACES_SAMPLER: 'parentbased_always_on',
      },
    );
    expect(traces).toMatchObject({
      url: 'https://own/otlp/v1/traces',
      ratio: 0.1,
      trustSampled: false,
    });
    expect(metrics).toBeUndefined();
  });

  test('headers are added to those of the variables, and no print shows them', () => {
    const { traces, metrics } = telemetry(
      { endpoint: 'http://c', headers: { 'X-Api-Key': 'of-the-file-1' } },
      {
        OTEL_EXPORTER_OTLP_HEADERS: 'x-api-key=variable,tenant=a%20b',
        OTEL_EXPORTER_OTLP_METRICS_HEADERS: 'only=metrics',
      },
    );
    expect(headersOf(traces)).toEqual({ 'x-api-key': 'of-the-file-1', tenant: 'a b' });
    expect(headersOf(metrics)).toEqual({
      'x-api-key': 'of-the-file-1',
      tenant: 'a b',
      only: 'metrics',
    });
    expect(JSON.stringify(traces)).not.toContain('of-the-file');
    expect(Bun.inspect(traces)).not.toContain('of-the-file');
  });

  test.each([
    [{ endpoint: 'c:4318' }, 'telemetry.otlp.endpoint'],
    [{ traces: 1.5 }, 'telemetry.otlp.traces'],
    [{ traces: -0.1 }, 'telemetry.otlp.traces'],
    [{ names: 'newest' }, 'telemetry.otlp.names'],
    [{ headers: { a: 'b\nc' } }, 'telemetry.otlp.headers.a'],
    [{ endpont: 'http://c' }, 'telemetry.otlp.endpont'],
  ])('%j is a problem', (otlp, path) => {
    expect(bad(file(otlp)).map((one) => one.path)).toEqual([path]);
  });
});

describe('the variables', () => {
  test('fill in what the file leaves out', () => {
    const { traces, metrics, serviceName, attributes } = telemetry(undefined, {
      ...ENDPOINT,
      OTEL_EXPORTER_OTLP_METRICS_ENDPOINT: 'https://m/own/path',
      OTEL_EXPORTER_OTLP_TIMEOUT: '2500',
      OTEL_EXPORTER_OTLP_TRACES_COMPRESSION: 'gzip',
      OTEL_TRACES_SAMPLER: 'parentbased_traceidratio',
      OTEL_TRACES_SAMPLER_ARG: '0.25',
      OTEL_METRIC_EXPORT_INTERVAL: '1000',
      OTEL_RESOURCE_ATTRIBUTES: 'deployment.environment=test,service.name=gate',
    });
    expect(traces).toMatchObject({
      url: 'http://collector:4318/v1/traces',
      timeoutMs: 2500,
      gzip: true,
      ratio: 0.25,
      trustSampled: true,
    });
    expect(metrics).toMatchObject({ url: 'https://m/own/path', gzip: false, intervalMs: 1000 });
    expect(serviceName).toBe('gate');
    expect(attributes).toMatchObject({ 'deployment.environment': 'test' });
  });

  test.each([
    [{ OTEL_SDK_DISABLED: 'true' }, false, false],
    [{ OTEL_TRACES_EXPORTER: 'none' }, false, true],
    [{ OTEL_METRICS_EXPORTER: 'none' }, true, false],
    [{ OTEL_METRICS_EXPORTER: 'prometheus' }, true, false],
    [{ OTEL_TRACES_EXPORTER: 'console,otlp' }, true, true],
  ])('%j', (variables, traces, metrics) => {
    const found = telemetry(undefined, { ...ENDPOINT, ...(variables as Variables) });
    expect([found.traces !== undefined, found.metrics !== undefined]).toEqual([traces, metrics]);
  });

  test.each([
    [{ OTEL_TRACES_SAMPLER: 'always_on' }, 1, false],
    [{ OTEL_TRACES_SAMPLER: 'always_off' }, 0, false],
    [{ OTEL_TRACES_SAMPLER: 'traceidratio', OTEL_TRACES_SAMPLER_ARG: '0.5' }, 0.5, false],
    [{ OTEL_TRACES_SAMPLER: 'traceidratio' }, 1, false],
    [{ OTEL_TRACES_SAMPLER: 'parentbased_always_on' }, 1, true],
    [{ OTEL_TRACES_SAMPLER: 'parentbased_always_off' }, 0, true],
  ])('%j', (variables, ratio, trustSampled) => {
    const { traces } = telemetry(undefined, { ...ENDPOINT, ...(variables as Variables) });
    expect(traces).toMatchObject({ ratio, trustSampled });
  });

  test.each<[Variables]>([
    [{ OTEL_EXPORTER_OTLP_ENDPOINT: 'collector:4317' }],
    [{ OTEL_EXPORTER_OTLP_TIMEOUT: 'soon' }],
    [{ OTEL_EXPORTER_OTLP_HEADERS: 'sk-a-secret' }],
    [{ OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc' }],
    [{ OTEL_TRACES_SAMPLER: 'jaeger_remote' }],
    [{ OTEL_TRACES_SAMPLER: 'traceidratio', OTEL_TRACES_SAMPLER_ARG: 'half' }],
  ])('%j is a warning that does not repeat the value', (variables) => {
    const found = warnings({ ...ENDPOINT, ...variables });
    expect(found).toHaveLength(1);
    expect(found[0]).toContain(Object.keys(variables).at(-1)!);
    expect(found[0]).not.toContain(Object.values(variables).at(-1)!);
  });
});

describe('trace headers of a provider', () => {
  const providers = (more: string, url: string) =>
    good(
      `providers:\n  p: { protocol: openai-chat, base_url: "${url}", keys: [a-key-of-some-length]${more} }\n`,
    ).providers.p!.traceHeaders;

  test('go to servers of this network, and to others only when they are to', () => {
    expect(providers('', 'http://127.0.0.1:8000/v1')).toBe(true);
    expect(providers('', 'https://api.example.com/v1')).toBe(false);
    expect(providers(', trace_headers: true', 'https://api.example.com/v1')).toBe(true);
    expect(providers(', trace_headers: false', 'http://127.0.0.1:8000/v1')).toBe(false);
  });
});
