/** Writes the Grafana dashboard and the Prometheus alert rules from one list: `bun scripts/monitoring.ts`; with --check it only reports whether they are up to date. */

import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

const ROOT = join(import.meta.dir, '..');
export const DASHBOARD_FILE = 'deploy/grafana/hopgate.json';
export const ALERTS_FILE = 'deploy/prometheus/alerts.yml';

type Unit = 'reqps' | 's' | 'short' | 'percentunit' | 'currencyUSD' | 'bytes';

/** A graph of the dashboard. `$job` and `$instance` choose the gateways, `$__rate_interval` is Grafana's. */
export interface Panel {
  readonly title: string;
  readonly what: string;
  readonly unit: Unit;
  readonly lines: readonly { readonly expr: string; readonly legend: string }[];
}

export interface Row {
  readonly title: string;
  readonly panels: readonly Panel[];
}

const ON = 'job=~"$job",instance=~"$instance"';
const metric = (name: string, labels = '') => `${name}{${ON}${labels === '' ? '' : `,${labels}`}}`;
const rate = (name: string, labels = '') => `rate(${metric(name, labels)}[$__rate_interval])`;
const quantiles = (name: string) =>
  [0.5, 0.95, 0.99].map((q) => ({
    expr: `histogram_quantile(${q}, sum by (le) (${rate(`${name}_bucket`)}))`,
    legend: `p${q * 100}`,
  }));

/** The dashboard, row by row. */
export const ROWS: readonly Row[] = [
  {
    title: 'Traffic',
    panels: [
      {
        title: 'Requests by target',
        what: 'Exchanges that ended, per second.',
        unit: 'reqps',
        lines: [
          { expr: `sum by (target) (${rate('hopgate_requests_total')})`, legend: '{{target}}' },
        ],
      },
      {
        title: 'Requests by status',
        what: 'The HTTP status that clients got, per second.',
        unit: 'reqps',
        lines: [
          { expr: `sum by (status) (${rate('hopgate_requests_total')})`, legend: '{{status}}' },
        ],
      },
      {
        title: 'Open streams',
        what: 'Streams to clients that are open now.',
        unit: 'short',
        lines: [{ expr: `sum(${metric('hopgate_streams_active')})`, legend: 'streams' }],
      },
    ],
  },
  {
    title: 'Failures',
    panels: [
      {
        title: 'Errors by kind',
        what: 'Exchanges that failed, per second; streams that broke off are among them.',
        unit: 'reqps',
        lines: [{ expr: `sum by (kind) (${rate('hopgate_errors_total')})`, legend: '{{kind}}' }],
      },
      {
        title: 'Retries by provider',
        what: 'Upstream calls that were tried again, per second. Clients do not notice these yet.',
        unit: 'reqps',
        lines: [
          {
            expr: `sum by (provider, reason) (${rate('hopgate_upstream_retries_total')})`,
            legend: '{{provider}} {{reason}}',
          },
        ],
      },
      {
        title: 'State of targets',
        what: '0 in use, 1 tried with one request, 2 resting.',
        unit: 'short',
        lines: [
          { expr: `max by (target) (${metric('hopgate_target_state')})`, legend: '{{target}}' },
        ],
      },
    ],
  },
  {
    title: 'Latency',
    panels: [
      {
        title: 'To the last byte',
        what: "From a request's arrival to the last byte of its answer.",
        unit: 's',
        lines: quantiles('hopgate_request_seconds'),
      },
      {
        title: 'To the first byte',
        what: "From a request's arrival to the first byte of its answer.",
        unit: 's',
        lines: quantiles('hopgate_first_byte_seconds'),
      },
      {
        title: 'First byte by target (p95)',
        what: 'The slowest twentieth of answers, by target.',
        unit: 's',
        lines: [
          {
            expr: `histogram_quantile(0.95, sum by (le, target) (${rate('hopgate_first_byte_seconds_bucket')}))`,
            legend: '{{target}}',
          },
        ],
      },
    ],
  },
  {
    title: 'Tokens and money',
    panels: [
      {
        title: 'Tokens by kind',
        what: 'As the vendors report them, per second.',
        unit: 'short',
        lines: [{ expr: `sum by (kind) (${rate('hopgate_tokens_total')})`, legend: '{{kind}}' }],
      },
      {
        title: 'Share of cached input',
        what: 'Input tokens that vendors read from their caches.',
        unit: 'percentunit',
        lines: [
          {
            expr: `sum by (target) (${rate('hopgate_tokens_total', 'kind="cache_read"')}) / sum by (target) (${rate('hopgate_tokens_total', 'kind=~"input|cache_read|cache_write"')})`,
            legend: '{{target}}',
          },
        ],
      },
      {
        title: 'Cost per hour',
        what: 'By the price list, in USD.',
        unit: 'currencyUSD',
        lines: [
          {
            expr: `3600 * sum by (target) (${rate('hopgate_cost_usd_total')})`,
            legend: '{{target}}',
          },
        ],
      },
    ],
  },
  {
    title: 'Keys and limits',
    panels: [
      {
        title: 'Requests by key',
        what: 'Per second, by the name of the gateway key.',
        unit: 'reqps',
        lines: [
          {
            expr: `sum by (key_name) (${rate('hopgate_key_requests_total')})`,
            legend: '{{key_name}}',
          },
        ],
      },
      {
        title: 'Tokens by key',
        what: 'Per second, by the name of the gateway key.',
        unit: 'short',
        lines: [
          {
            expr: `sum by (key_name) (${rate('hopgate_key_tokens_total')})`,
            legend: '{{key_name}}',
          },
        ],
      },
      {
        title: 'Refusals by limit',
        what: 'Requests refused by a limit or a budget, per second.',
        unit: 'reqps',
        lines: [
          {
            expr: `sum by (key_name, limit) (${rate('hopgate_limit_refusals_total')})`,
            legend: '{{key_name}} {{limit}}',
          },
        ],
      },
    ],
  },
  {
    title: 'Models and repairs',
    panels: [
      {
        title: 'Model calls by vendor (p95)',
        what: 'Retries and tool hops included; the histogram of the gen_ai conventions.',
        unit: 's',
        lines: [
          {
            expr: `histogram_quantile(0.95, sum by (le, gen_ai_provider_name, gen_ai_request_model) (${rate('gen_ai_client_inference_duration_seconds_bucket')}))`,
            legend: '{{gen_ai_provider_name}} {{gen_ai_request_model}}',
          },
        ],
      },
      {
        title: 'Tool calls written as text',
        what: 'By outcome, per second; all but recovered ones are lost.',
        unit: 'reqps',
        lines: [
          {
            expr: `sum by (outcome) (${rate('leaked_calls_total')})`,
            legend: '{{outcome}}',
          },
        ],
      },
      {
        title: 'Changes by note',
        what: 'Changes to requests and answers, per second.',
        unit: 'reqps',
        lines: [{ expr: `sum by (name) (${rate('hopgate_notes_total')})`, legend: '{{name}}' }],
      },
    ],
  },
  {
    title: 'Shared engines',
    panels: [
      {
        title: 'Engines',
        what: '1 answers, 0 is away. Only where several gateways share engines.',
        unit: 'short',
        lines: [{ expr: `min by (engine) (${metric('hopgate_engine_up')})`, legend: '{{engine}}' }],
      },
      {
        title: 'Calls to engines',
        what: 'Calls per second.',
        unit: 'reqps',
        lines: [
          { expr: `sum by (engine) (${rate('hopgate_engine_trips_total')})`, legend: '{{engine}}' },
        ],
      },
      {
        title: 'State that other gateways miss',
        what: 'Dropped while an engine was away, or not there when the answer ended, per second.',
        unit: 'reqps',
        lines: [
          {
            expr: `sum by (kind) (${rate('hopgate_shared_state_dropped_total')})`,
            legend: 'dropped: {{kind}}',
          },
          { expr: `sum(${rate('hopgate_responses_dropped_total')})`, legend: 'dropped: responses' },
          { expr: `sum(${rate('hopgate_shared_state_late_total')})`, legend: 'late' },
          { expr: `sum(${rate('hopgate_responses_late_total')})`, legend: 'late: responses' },
        ],
      },
      {
        title: 'Exchanges that wait for their upload',
        what: 'Recorded, and not yet in the database and the object store.',
        unit: 'short',
        lines: [
          {
            expr: `sum by (instance) (${metric('hopgate_samples_pending')})`,
            legend: '{{instance}}',
          },
        ],
      },
    ],
  },
  {
    title: 'Process',
    panels: [
      {
        title: 'CPU',
        what: 'Cores in use.',
        unit: 'short',
        lines: [
          {
            expr: `sum by (instance) (${rate('process_cpu_seconds_total')})`,
            legend: '{{instance}}',
          },
        ],
      },
      {
        title: 'Memory',
        what: 'Resident memory of all processes of an instance.',
        unit: 'bytes',
        lines: [
          {
            expr: `sum by (instance) (${metric('process_resident_memory_bytes')})`,
            legend: '{{instance}}',
          },
        ],
      },
      {
        title: 'Uptime',
        what: 'Since the process started.',
        unit: 's',
        lines: [
          {
            expr: `max by (instance) (${metric('hopgate_uptime_seconds')})`,
            legend: '{{instance}}',
          },
        ],
      },
    ],
  },
];

/** An alert. `fires` and `quiet` are series for the rule's own test: one sample a minute, in promtool's notation. */
export interface Alert {
  readonly name: string;
  readonly expr: string;
  /** How long it must be true. */
  readonly for: string;
  readonly severity: 'critical' | 'warning' | 'info';
  readonly summary: string;
  readonly description: string;
  readonly fires: Readonly<Record<string, string>>;
  readonly quiet: Readonly<Record<string, string>>;
}

/** Also true where a series begins above zero: an increase needs two samples. */
const any = (series: string, window: string) =>
  `increase(${series}[${window}]) > 0 or (${series} unless ${series} offset ${window}) > 0`;

export const ALERTS: readonly Alert[] = [
  {
    name: 'HopgateAbsent',
    expr: 'absent(hopgate_build_info)',
    for: '5m',
    severity: 'critical',
    summary: 'No hopgate answers its scrapes.',
    description: 'Is the process running, and may Prometheus read /metrics?',
    fires: { 'hopgate_build_info{version="1"}': '1x3 stale' },
    quiet: { 'hopgate_build_info{version="1"}': '1x60' },
  },
  {
    name: 'HopgateErrors',
    expr: 'sum by (job) (rate(hopgate_errors_total{kind!~"invalid_request|authentication|permission|not_found|too_large|context_overflow|content_filter"}[10m])) / sum by (job) (rate(hopgate_requests_total[10m])) > 0.05',
    for: '10m',
    severity: 'critical',
    summary: '{{ $value | humanizePercentage }} of the exchanges fail.',
    description:
      'Errors that clients did not cause. hopgate_errors_total says which kinds; hopgate doctor tests the providers.',
    fires: {
      'hopgate_errors_total{job="hopgate",kind="upstream"}': '0+10x60',
      'hopgate_requests_total{job="hopgate",status="200"}': '0+100x60',
    },
    quiet: {
      'hopgate_errors_total{job="hopgate",kind="invalid_request"}': '0+10x60',
      'hopgate_requests_total{job="hopgate",status="200"}': '0+100x60',
    },
  },
  {
    name: 'HopgateRetries',
    expr: 'sum by (job, provider) (rate(hopgate_upstream_retries_total[10m])) / on (job) group_left sum by (job) (rate(hopgate_requests_total[10m])) > 0.2',
    for: '10m',
    severity: 'warning',
    summary: 'Provider {{ $labels.provider }} needs many retries.',
    description:
      'Clients do not notice yet, but they wait longer. hopgate_upstream_retries_total has the reason.',
    fires: {
      'hopgate_upstream_retries_total{job="hopgate",provider="glm",reason="overloaded"}': '0+30x60',
      'hopgate_requests_total{job="hopgate",status="200"}': '0+100x60',
    },
    quiet: {
      'hopgate_upstream_retries_total{job="hopgate",provider="glm",reason="overloaded"}': '0+1x60',
      'hopgate_requests_total{job="hopgate",status="200"}': '0+100x60',
    },
  },
  {
    name: 'HopgateSlowFirstByte',
    expr: 'histogram_quantile(0.95, sum by (le, job, target) (rate(hopgate_first_byte_seconds_bucket[10m]))) > 40',
    for: '10m',
    severity: 'warning',
    summary: '{{ $labels.target }} begins to answer late.',
    description:
      'The slowest twentieth of its answers waits {{ $value | humanizeDuration }} for the first byte.',
    fires: {
      'hopgate_first_byte_seconds_bucket{job="hopgate",target="glm/a",le="40"}': '0+1x60',
      'hopgate_first_byte_seconds_bucket{job="hopgate",target="glm/a",le="80"}': '0+10x60',
      'hopgate_first_byte_seconds_bucket{job="hopgate",target="glm/a",le="+Inf"}': '0+10x60',
    },
    quiet: {
      'hopgate_first_byte_seconds_bucket{job="hopgate",target="glm/a",le="40"}': '0+10x60',
      'hopgate_first_byte_seconds_bucket{job="hopgate",target="glm/a",le="80"}': '0+10x60',
      'hopgate_first_byte_seconds_bucket{job="hopgate",target="glm/a",le="+Inf"}': '0+10x60',
    },
  },
  {
    name: 'HopgateTargetResting',
    expr: 'max by (job, target) (hopgate_target_state) >= 2',
    for: '15m',
    severity: 'warning',
    summary: '{{ $labels.target }} gets no requests.',
    description:
      'It failed or asked for a pause. hopgate models --explain says why a target is left out.',
    fires: { 'hopgate_target_state{job="hopgate",target="glm/a"}': '2x60' },
    quiet: { 'hopgate_target_state{job="hopgate",target="glm/a"}': '2x5 0x60' },
  },
  {
    name: 'HopgateKeyTrouble',
    expr: any(
      'hopgate_upstream_retries_total{reason=~"authentication|permission|billing|quota"}',
      '15m',
    ),
    for: '0m',
    severity: 'warning',
    summary: 'A vendor refuses a key of provider {{ $labels.provider }}.',
    description:
      'The log event upstream.key_refused names the key. Is it valid, and is there money on its account?',
    fires: {
      'hopgate_upstream_retries_total{job="hopgate",provider="glm",reason="billing"}': '_x30 1x30',
    },
    quiet: {
      'hopgate_upstream_retries_total{job="hopgate",provider="glm",reason="overloaded"}': '0+1x60',
    },
  },
  {
    name: 'HopgateEngineAway',
    expr: 'min by (job, instance, engine) (hopgate_engine_up) == 0',
    for: '2m',
    severity: 'critical',
    summary: 'The shared {{ $labels.engine }} does not answer {{ $labels.instance }}.',
    description:
      'Requests are served as the manual says (Many machines, when an engine is away). hopgate doctor tests the engines from that machine.',
    fires: { 'hopgate_engine_up{job="hopgate",instance="a",engine="cache"}': '1x5 0x60' },
    quiet: { 'hopgate_engine_up{job="hopgate",instance="a",engine="cache"}': '1x5 0 1x60' },
  },
  {
    name: 'HopgateStateLost',
    expr: `${any('hopgate_responses_dropped_total', '15m')} or ${any('hopgate_shared_state_dropped_total', '15m')}`,
    for: '0m',
    severity: 'warning',
    summary: 'State for other gateways was dropped on {{ $labels.instance }}.',
    description: 'An engine has been away for too long: what waited for it found no room.',
    fires: {
      'hopgate_responses_dropped_total{job="hopgate",instance="a"}': '_x30 1x30',
    },
    quiet: {
      'hopgate_shared_state_dropped_total{job="hopgate",instance="a",kind="hops"}': '0x60',
    },
  },
  {
    name: 'HopgateLimitRefusals',
    expr: 'sum by (job, key, key_name, limit) (increase(hopgate_limit_refusals_total[15m])) > 10',
    for: '5m',
    severity: 'info',
    summary: 'Key {{ $labels.key_name }} is refused by {{ $labels.limit }}.',
    description: 'The limit may be too low, or a client ignores Retry-After.',
    fires: {
      'hopgate_limit_refusals_total{job="hopgate",key="ci",key_name="ci",limit="web-team"}':
        '0+5x60',
    },
    quiet: {
      'hopgate_limit_refusals_total{job="hopgate",key="ci",key_name="ci",limit="web-team"}': '0x60',
    },
  },
  {
    name: 'HopgateToolCallsLost',
    expr: any('leaked_calls_total{outcome!="recovered"}', '1h'),
    for: '0m',
    severity: 'warning',
    summary: 'A model wrote tool calls as text that could not be recovered.',
    description: 'The log event leaked_call names the model and the provider.',
    fires: { 'leaked_calls_total{job="hopgate",family="xml",outcome="left"}': '_x30 1x30' },
    quiet: { 'leaked_calls_total{job="hopgate",family="xml",outcome="recovered"}': '_x30 1x30' },
  },
  {
    name: 'HopgateStreamViolations',
    expr: any('hopgate_stream_violations_total', '1h'),
    for: '0m',
    severity: 'warning',
    summary: 'A stream to a client broke rule {{ $labels.rule }} of its protocol.',
    description: 'The log event stream.violation has the place. Please report it.',
    fires: {
      'hopgate_stream_violations_total{job="hopgate",protocol="openai-chat",rule="order"}':
        '_x30 1x30',
    },
    quiet: {
      'hopgate_stream_violations_total{job="hopgate",protocol="openai-chat",rule="order"}': '0x60',
    },
  },
  {
    name: 'HopgateRestarts',
    expr: 'resets(hopgate_uptime_seconds[15m]) > 2',
    for: '0m',
    severity: 'warning',
    summary: '{{ $labels.instance }} was started {{ $value }} times in 15 minutes.',
    description: 'The log of its last end says why.',
    fires: { 'hopgate_uptime_seconds{instance="a"}': '_x30 0 60 0 60 0 60 0+60x60' },
    quiet: { 'hopgate_uptime_seconds{instance="a"}': '0+60x60' },
  },
];

/** A text as YAML: JSON strings are. */
const quoted = (text: string) => JSON.stringify(text);

export function alertsYaml(): string {
  const rules = ALERTS.map(
    (alert) => `      - alert: ${alert.name}
        expr: ${quoted(alert.expr)}
        for: ${alert.for}
        labels:
          severity: ${alert.severity}
        annotations:
          summary: ${quoted(alert.summary)}
          description: ${quoted(alert.description)}
`,
  );
  return `# Alert rules for hopgate. Written by scripts/monitoring.ts.
groups:
  - name: hopgate
    rules:
${rules.join('')}`;
}

/** The tests of the rules, for `promtool test rules`: each fires on its own series, and stays quiet on others. */
export function alertTestsYaml(ruleFile: string): string {
  const tests = ALERTS.flatMap((alert) =>
    (['fires', 'quiet'] as const).map((kind) => {
      const series = Object.entries(alert[kind]).map(
        ([name, values]) => `      - series: ${quoted(name)}\n        values: ${quoted(values)}\n`,
      );
      return `  - interval: 1m
    name: ${alert.name} ${kind}
    input_series:
${series.join('')}    promql_expr_test:
      - expr: ${quoted(`count(ALERTS{alertname="${alert.name}",alertstate="firing"}) or vector(0)`)}
        eval_time: 40m
        exp_samples:
          - labels: '{}'
            value: ${kind === 'fires' ? 1 : 0}
`;
    }),
  );
  return `rule_files: [${quoted(ruleFile)}]\nevaluation_interval: 1m\ntests:\n${tests.join('')}`;
}

// Grafana's grid has 24 columns.
const WIDTH = 8;
const HEIGHT = 8;

export function dashboardJson(): string {
  const datasource = { type: 'prometheus', uid: '$datasource' };
  let id = 0;
  const panels = ROWS.flatMap(({ title, panels: own }, row) => {
    const y = row * (HEIGHT + 1);
    const head = {
      id: ++id,
      type: 'row',
      title,
      collapsed: false,
      gridPos: { x: 0, y, w: 24, h: 1 },
      panels: [],
    };
    const graphs = own.map((panel, column) => ({
      id: ++id,
      type: 'timeseries',
      title: panel.title,
      description: panel.what,
      datasource,
      gridPos: { x: column * WIDTH, y: y + 1, w: WIDTH, h: HEIGHT },
      fieldConfig: {
        defaults: { unit: panel.unit, min: 0, custom: { fillOpacity: 10, showPoints: 'never' } },
        overrides: [],
      },
      options: {
        legend: { displayMode: 'list', placement: 'bottom', showLegend: true },
        tooltip: { mode: 'multi', sort: 'desc' },
      },
      targets: panel.lines.map(({ expr, legend }, index) => ({
        refId: String.fromCharCode(65 + index),
        datasource,
        expr,
        legendFormat: legend,
        range: true,
      })),
    }));
    return [head, ...graphs];
  });
  const variable = (name: string, label: string, query: string) => ({
    name,
    label,
    type: 'query',
    datasource,
    query: { query, refId: name },
    refresh: 2,
    multi: true,
    includeAll: true,
    allValue: '.*',
    current: { text: 'All', value: '$__all' },
  });
  const dashboard = {
    uid: 'hopgate',
    title: 'hopgate',
    description: 'Written by scripts/monitoring.ts.',
    tags: ['hopgate', 'llm'],
    editable: true,
    schemaVersion: 39,
    time: { from: 'now-6h', to: 'now' },
    refresh: '30s',
    templating: {
      list: [
        { name: 'datasource', label: 'Data source', type: 'datasource', query: 'prometheus' },
        variable('job', 'Job', 'label_values(hopgate_build_info, job)'),
        variable('instance', 'Instance', 'label_values(hopgate_build_info{job=~"$job"}, instance)'),
      ],
    },
    panels,
  };
  return `${JSON.stringify(dashboard, null, 2)}\n`;
}

if (import.meta.main) {
  const files = { [DASHBOARD_FILE]: dashboardJson(), [ALERTS_FILE]: alertsYaml() };
  let stale = false;
  for (const [path, text] of Object.entries(files)) {
    const file = join(ROOT, path);
    if (process.argv.includes('--check')) {
      if (readFileSync(file, 'utf8') === text) continue;
      stale = true;
      console.error(`${path} is not up to date: bun scripts/monitoring.ts`);
    } else {
      mkdirSync(dirname(file), { recursive: true });
      writeFileSync(file, text);
    }
  }
  process.exitCode = stale ? 1 : 0;
}
