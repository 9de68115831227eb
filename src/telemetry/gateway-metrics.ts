/** The metrics of this gateway. Their names are published and never change. */

import { GEN_AI_METRICS, prometheusName } from './gen-ai-names.ts';
import { createRegistry, type Histogram } from './metrics.ts';

export type GatewayMetrics = ReturnType<typeof createGatewayMetrics>;

export const METRICS_CONTENT_TYPE = 'text/plain; version=0.0.4; charset=utf-8';

// Models reason for minutes, so the buckets must separate two minutes from ten.
const SECONDS = [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 40, 80, 160, 320, 640] as const;

// The bounds that the gen_ai conventions ask for: 0.01 s doubling to 81.92 s, and 1 token times 4 to 67,108,864.
const INFERENCE_SECONDS = Array.from({ length: 14 }, (_, i) => 2 ** i / 100);
const TOKENS = Array.from({ length: 14 }, (_, i) => 4 ** i);

// A recall takes milliseconds; with vectors it waits for an endpoint.
const RECALL_SECONDS = [
  0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5,
] as const;

/** A new set of metrics, all zero. */
export function createGatewayMetrics(version: string) {
  const registry = createRegistry();
  const startedAt = Date.now() / 1000 - process.uptime();
  registry
    .gauge('hopgate_build_info', 'Always 1; the label is the version.', ['version'])
    .set(1, version);
  const metrics = {
    requests: registry.counter('hopgate_requests_total', 'Exchanges that ended.', [
      'protocol',
      'target',
      'status',
    ]),
    requestSeconds: registry.histogram(
      'hopgate_request_seconds',
      "From a request's arrival to the last byte of its answer.",
      SECONDS,
      ['protocol', 'target'],
    ),
    firstByteSeconds: registry.histogram(
      'hopgate_first_byte_seconds',
      "From a request's arrival to the first byte of its answer.",
      SECONDS,
      ['protocol', 'target'],
    ),
    /** kind: input | output | cache_read | cache_write | reasoning */
    tokens: registry.counter('hopgate_tokens_total', 'Tokens as the upstreams reported them.', [
      'target',
      'kind',
    ]),
    cost: registry.counter(
      'hopgate_cost_usd_total',
      'Cost in USD of attempts at upstreams, by the prices that are known; estimates included.',
      ['target'],
    ),
    errors: registry.counter(
      'hopgate_errors_total',
      'Exchanges that failed, streams that broke off included, by kind of error.',
      ['kind'],
    ),
    targetState: registry.gauge(
      'hopgate_target_state',
      'Health of a target: 0 serves or is no model of its vendor, 1 is tried again after a cooldown, 2 cools down.',
      ['target'],
    ),
    engineUp: registry.gauge(
      'hopgate_engine_up',
      'Shared engines: 1 answers, 0 is away or was not asked yet.',
      ['engine'],
    ),
    engineTrips: registry.counter(
      'hopgate_engine_trips_total',
      'Calls that went to a shared engine.',
      ['engine'],
    ),
    sharedDropped: registry.counter(
      'hopgate_shared_state_dropped_total',
      'Entries that other replicas will not see: the cache was away for too long, or one was too large.',
      ['kind'],
    ),
    sharedLate: registry.counter(
      'hopgate_shared_state_late_total',
      'Answers that ended before their state was in the cache: the next request may miss it.',
      [],
    ),
    responsesLate: registry.counter(
      'hopgate_responses_late_total',
      'Answers that went out before their response was in a shared engine.',
      [],
    ),
    responsesDropped: registry.counter(
      'hopgate_responses_dropped_total',
      'Responses that could not be stored in a shared engine and are lost.',
      [],
    ),
    samplesPending: registry.gauge(
      'hopgate_samples_pending',
      'Recorded exchanges that other replicas cannot see yet: they wait for their upload.',
    ),
    keyRequests: registry.counter(
      'hopgate_key_requests_total',
      'Exchanges that ended, by gateway key.',
      ['key', 'key_name', 'status'],
    ),
    keyTokens: registry.counter(
      'hopgate_key_tokens_total',
      'Tokens as the upstreams reported them, by gateway key.',
      ['key', 'key_name', 'kind'],
    ),
    /** limit: as in the configuration, or the name of a budget */
    limitRefusals: registry.counter(
      'hopgate_limit_refusals_total',
      'Requests that a limit or a budget refused, by gateway key.',
      ['key', 'key_name', 'limit'],
    ),
    retries: registry.counter(
      'hopgate_upstream_retries_total',
      'Upstream calls that were tried again, on the same target or the next.',
      ['provider', 'reason'],
    ),
    notes: registry.counter('hopgate_notes_total', 'Changes made to requests and answers.', [
      'name',
    ]),
    streamsActive: registry.gauge('hopgate_streams_active', 'Streams open to clients right now.'),
    violations: registry.counter(
      'hopgate_stream_violations_total',
      'Protocol violations found in streams as clients got them (`validate`).',
      ['protocol', 'rule'],
    ),
    /** outcome: recovered | removed | left */
    leakedCalls: registry.counter(
      'leaked_calls_total',
      'Tool calls that a model wrote as text, by grammar and outcome.',
      ['family', 'outcome'],
    ),
    /** outcome: stored | duplicate | dropped | full | erased */
    memoryEvents: registry.counter(
      'hopgate_memory_captured_total',
      'Events captured from conversations, by outcome.',
      ['outcome'],
    ),
    /** kind: text | hybrid | fallback | external | failed */
    memoryRecallSeconds: registry.histogram(
      'hopgate_memory_recall_seconds',
      'Recalls from the memory, by kind of ranking.',
      RECALL_SECONDS,
      ['kind'],
    ),
  };
  const genAi = (
    metric: keyof typeof GEN_AI_METRICS,
    help: string,
    buckets: readonly number[],
  ): Histogram =>
    registry.histogram(prometheusName(GEN_AI_METRICS[metric]), help, buckets, [
      'gen_ai_operation_name',
      'gen_ai_provider_name',
      'gen_ai_request_model',
    ]);
  const conventions = {
    inferenceSeconds: genAi(
      'duration',
      'Exchanges with a model, retries and tool hops included.',
      INFERENCE_SECONDS,
    ),
    firstChunkSeconds: genAi(
      'firstChunk',
      "Streams: from a request's arrival to the first byte of its answer.",
      INFERENCE_SECONDS,
    ),
    inputTokens: genAi('inputTokens', 'Prompt tokens of an exchange, cached or not.', TOKENS),
    outputTokens: genAi(
      'outputTokens',
      'Generated tokens of an exchange, reasoning included.',
      TOKENS,
    ),
  };
  registry.gauge('process_resident_memory_bytes', 'Resident memory.', [], () =>
    process.memoryUsage.rss(),
  );
  registry.gauge(
    'process_start_time_seconds',
    'When the process started, in seconds since 1970.',
    [],
    () => startedAt,
  );
  registry.gauge('hopgate_uptime_seconds', 'Seconds since the process started.', [], () =>
    process.uptime(),
  );
  registry.counter(
    'process_cpu_seconds_total',
    'User and system CPU time.',
    [],
    () => (process.cpuUsage().user + process.cpuUsage().system) / 1e6,
  );
  return { ...metrics, ...conventions, render: registry.render, families: registry.families };
}
