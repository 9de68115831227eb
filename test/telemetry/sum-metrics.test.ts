/** The metrics of several processes are added up. */

import { expect, test } from 'bun:test';
import { createGatewayMetrics } from '../../src/telemetry/gateway-metrics.ts';
import { createRegistry, sumMetrics } from '../../src/telemetry/metrics.ts';

function text(hits: Record<string, number>, open: number, seconds: number): string {
  const registry = createRegistry();
  const counter = registry.counter('hits_total', 'Hits.', ['who']);
  for (const who in hits) counter.add(hits[who]!, who);
  registry.gauge('open', 'Open.').set(open);
  registry.histogram('took', 'Took.', [1, 2], ['who']).observe(seconds, 'a b');
  registry.gauge('process_start_time_seconds', 'Start.').set(seconds);
  return registry.render();
}

test('counters, gauges and buckets are added, times are not', () => {
  expect(sumMetrics([text({ a: 1, 'x" y': 2 }, 3, 0.5), text({ a: 10, c: 5 }, 4, 1.5)])).toBe(
    `# HELP hits_total Hits.
# TYPE hits_total counter
hits_total{who="a"} 11
hits_total{who="x\\" y"} 2
hits_total{who="c"} 5
# HELP open Open.
# TYPE open gauge
open 7
# HELP took Took.
# TYPE took histogram
took_bucket{who="a b",le="1"} 1
took_bucket{who="a b",le="2"} 2
took_bucket{who="a b",le="+Inf"} 2
took_sum{who="a b"} 2
took_count{who="a b"} 2
# HELP process_start_time_seconds Start.
# TYPE process_start_time_seconds gauge
process_start_time_seconds 0.5
`,
  );
});

test('the counters of an ended process stay counted, its gauges do not', () => {
  const sum = sumMetrics([text({ a: 1 }, 3, 0.5)], [text({ a: 2 }, 9, 0.5)]);
  expect(sum).toContain('hits_total{who="a"} 3\n');
  expect(sum).toContain('open 3\n');
  expect(sum).toContain('took_count{who="a b"} 2\n');
});

test('a target that one process rests is shown resting', () => {
  const text = (state: number) => {
    const { targetState, render } = createGatewayMetrics('1');
    targetState.set(state, 'glm/a');
    return render();
  };
  const sum = sumMetrics([text(0), text(2), text(1)]);
  expect(sum).toContain('hopgate_target_state{target="glm/a"} 2\n');
});

test('a single text stays as it is', () => {
  const { requests, render } = createGatewayMetrics('1');
  requests.add(1, 'p', 't\\"\n', '200');
  const own = render();
  expect(sumMetrics([own])).toBe(own);
});
