/** Metrics: Prometheus can read the exposition, and made-up labels cannot fill the memory. */

import { describe, expect, test } from 'bun:test';
import { countExchange } from '../../src/telemetry/exchange.ts';
import { createGatewayMetrics } from '../../src/telemetry/gateway-metrics.ts';
import { createRegistry } from '../../src/telemetry/metrics.ts';

const LINE =
  /^(# (HELP|TYPE) [a-z_]+ .+|[a-z_]+(\{([a-z_]+="(\\.|[^"\\\n])*",?)+\})? -?[0-9.e+-]+)$/;

describe('the registry', () => {
  test('counters, gauges and values computed at render time are rendered', () => {
    const registry = createRegistry();
    const hits = registry.counter('hits_total', 'Hits.', ['who', 'what']);
    hits.add(1, 'a', 'x');
    hits.add(2, 'a', 'x');
    hits.add(1, 'b', 'x');
    const open = registry.gauge('open', 'Open.');
    open.add(3);
    open.add(-1);
    let now = 1;
    registry.gauge('now', 'Now.', [], () => now);
    now = 7;
    expect(registry.render()).toBe(
      `# HELP hits_total Hits.
# TYPE hits_total counter
hits_total{who="a",what="x"} 3
hits_total{who="b",what="x"} 1
# HELP open Open.
# TYPE open gauge
open 2
# HELP now Now.
# TYPE now gauge
now 7
`,
    );
  });

  test('histograms: buckets are cumulative and include their bound', () => {
    const registry = createRegistry();
    const seconds = registry.histogram('s', 'S.', [0.1, 1], ['p']);
    for (const value of [0.05, 0.1, 0.5, 30]) seconds.observe(value, 'x');
    expect(registry.render()).toBe(
      `# HELP s S.
# TYPE s histogram
s_bucket{p="x",le="0.1"} 2
s_bucket{p="x",le="1"} 3
s_bucket{p="x",le="+Inf"} 4
s_sum{p="x"} 30.65
s_count{p="x"} 4
`,
    );
  });

  test('quotes, backslashes and line breaks in labels are escaped', () => {
    const registry = createRegistry();
    registry.counter('c', 'C.', ['l']).add(1, 'a"b\\c\nd');
    expect(registry.render()).toContain('c{l="a\\"b\\\\c\\nd"} 1');
  });

  test('made-up names share one series', () => {
    const registry = createRegistry();
    const counter = registry.counter('c', 'C.', ['model']);
    for (let i = 0; i < 5000; i++) counter.add(1, `model-${i}`);
    const lines = registry.render().split('\n');
    expect(lines.length).toBeLessThan(1010);
    expect(lines).toContain('c{model="other"} 4000');
    counter.add(1, 'model-0');
    expect(registry.render()).toContain('c{model="model-0"} 2');
  });
});

describe('the gateway’s metrics', () => {
  test('an exchange is counted in every metric', () => {
    const metrics = createGatewayMetrics('1.2.3');
    countExchange(metrics, {
      id: 'req_1',
      protocol: 'openai-chat',
      target: 'glm/glm-4.7',
      status: 200,
      stream: true,
      timings: { firstByte: 300, total: 3000 },
      usage: { input: 10, output: 5, cacheRead: 4, cacheWrite: 0, reasoning: 2 },
      notes: 'a,b=3,stripped_4_thinking_blocks,rewritten_2_srvtoolu_ids',
    });
    countExchange(metrics, {
      id: 'req_2',
      protocol: 'openai-chat',
      status: 404,
      stream: false,
      timings: { total: 1 },
    });
    metrics.retries.add(1, 'glm', 'rate_limit');
    metrics.streamsActive.add(1);
    metrics.leakedCalls.add(1, 'dsml', 'recovered');
    const lines = metrics.render().split('\n');
    for (const line of [
      'hopgate_build_info{version="1.2.3"} 1',
      'hopgate_requests_total{protocol="openai-chat",target="glm/glm-4.7",status="200"} 1',
      'hopgate_requests_total{protocol="openai-chat",target="",status="404"} 1',
      'hopgate_request_seconds_sum{protocol="openai-chat",target="glm/glm-4.7"} 3',
      'hopgate_first_byte_seconds_bucket{protocol="openai-chat",target="glm/glm-4.7",le="0.25"} 0',
      'hopgate_first_byte_seconds_bucket{protocol="openai-chat",target="glm/glm-4.7",le="0.5"} 1',
      'hopgate_tokens_total{target="glm/glm-4.7",kind="input"} 10',
      'hopgate_tokens_total{target="glm/glm-4.7",kind="cache_read"} 4',
      'hopgate_tokens_total{target="glm/glm-4.7",kind="reasoning"} 2',
      'hopgate_upstream_retries_total{provider="glm",reason="rate_limit"} 1',
      'hopgate_notes_total{name="a"} 1',
      'hopgate_notes_total{name="b"} 3',
      'hopgate_notes_total{name="stripped_thinking_blocks"} 4',
      'hopgate_notes_total{name="rewritten_srvtoolu_ids"} 2',
      'hopgate_streams_active 1',
      'leaked_calls_total{family="dsml",outcome="recovered"} 1',
    ]) {
      expect(lines).toContain(line);
    }
    expect(metrics.render()).toMatch(/^process_resident_memory_bytes [1-9]\d{6,}$/m);
    for (const line of lines.slice(0, -1)) expect(line).toMatch(LINE);
    expect(lines.at(-1)).toBe('');
  });
});

describe('as data', () => {
  test('the families are what the text shows', () => {
    const registry = createRegistry();
    registry.counter('hits_total', 'Hits.', ['who', 'what']).add(2, 'a"b', 'x');
    registry.gauge('now', 'Now.', [], () => 7);
    const seconds = registry.histogram('s', 'S.', [0.1, 1], ['p']);
    for (const value of [0.05, 0.5, 30]) seconds.observe(value, 'x');
    expect(registry.families()).toEqual([
      {
        name: 'hits_total',
        help: 'Hits.',
        type: 'counter',
        labels: ['who', 'what'],
        buckets: [],
        series: [{ labels: ['a"b', 'x'], value: 2 }],
      },
      {
        name: 'now',
        help: 'Now.',
        type: 'gauge',
        labels: [],
        buckets: [],
        series: [{ labels: [], value: 7 }],
      },
      {
        name: 's',
        help: 'S.',
        type: 'histogram',
        labels: ['p'],
        buckets: [0.1, 1],
        series: [{ labels: ['x'], value: 30.55, counts: [1, 1, 1] }],
      },
    ]);
  });

  test('made-up models fill the histograms of the conventions no further than any other metric', () => {
    const metrics = createGatewayMetrics('1');
    for (let i = 0; i < 5000; i++) metrics.inferenceSeconds.observe(1, 'chat', 'openai', `m${i}`);
    const family = metrics
      .families()
      .find(({ name }) => name === 'gen_ai_client_inference_duration_seconds')!;
    expect(family.series.length).toBe(1001);
    const counted = family.series.flatMap(({ counts = [] }) => counts);
    expect(counted.reduce((sum, one) => sum + one, 0)).toBe(5000);
  });
});

test('an exchange counts in the histograms of the conventions as they define tokens', () => {
  const metrics = createGatewayMetrics('1');
  countExchange(metrics, {
    id: 'req_1',
    protocol: 'openai-chat',
    target: 'glm/a',
    status: 200,
    stream: true,
    timings: { firstByte: 500, total: 2000 },
    usage: { input: 10, output: 5, cacheRead: 100, cacheWrite: 20, reasoning: 7 },
    genAi: { operation: 'chat', provider: 'zhipu', model: 'm' },
  });
  const text = metrics.render();
  const labels =
    '{gen_ai_operation_name="chat",gen_ai_provider_name="zhipu",gen_ai_request_model="m"}';
  const sums = Object.fromEntries(
    [
      'inference_duration_seconds',
      'inference_time_to_first_chunk_seconds',
      'inference_operation_input_tokens',
      'inference_operation_output_tokens',
    ].map((name) => [
      name,
      new RegExp(`^gen_ai_client_${name}_sum${RegExp.escape(labels)} (\\S+)$`, 'm').exec(text)?.[1],
    ]),
  );
  expect(sums).toEqual({
    inference_duration_seconds: '2',
    inference_time_to_first_chunk_seconds: '0.5',
    inference_operation_input_tokens: '130',
    inference_operation_output_tokens: '12',
  });
});
