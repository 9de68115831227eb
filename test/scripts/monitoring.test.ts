/** The dashboard and the alert rules: up to date, accepted by a real Prometheus, and each of them finds something. */

import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  ALERTS,
  ALERTS_FILE,
  alertsYaml,
  alertTestsYaml,
  DASHBOARD_FILE,
  dashboardJson,
  ROWS,
} from '../../scripts/monitoring.ts';
import { createGatewayMetrics, METRICS_CONTENT_TYPE } from '../../src/telemetry/gateway-metrics.ts';
import { until } from '../support/until.ts';

const ROOT = join(import.meta.dir, '../..');
const panels = ROWS.flatMap((row) => row.panels);

const prometheus = Bun.which('prometheus');
const promtool = Bun.which('promtool');
const missing = prometheus === null || promtool === null;
if (missing)
  console.warn('SKIPPED: no prometheus and promtool here (Debian: apt install prometheus)');

const folder = mkdtempSync(join(tmpdir(), 'hopgate-monitoring-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

test('the files are what the list says (else: bun scripts/monitoring.ts)', () => {
  expect(readFileSync(join(ROOT, DASHBOARD_FILE), 'utf8')).toBe(dashboardJson());
  expect(readFileSync(join(ROOT, ALERTS_FILE), 'utf8')).toBe(alertsYaml());
});

test('each panel and each alert has a name of its own', () => {
  for (const names of [panels.map(({ title }) => title), ALERTS.map(({ name }) => name)]) {
    expect(new Set(names).size).toBe(names.length);
  }
  const { panels: shown } = JSON.parse(dashboardJson()) as { panels: { id: number }[] };
  expect(new Set(shown.map(({ id }) => id)).size).toBe(panels.length + ROWS.length);
});

test('every metric of an expression is one of the gateway', () => {
  const known = new Set(
    [
      ...createGatewayMetrics('1')
        .render()
        .matchAll(/^# TYPE (\S+)/gm),
    ].map(([, name]) => name!),
  );
  const named = [
    ...panels.flatMap(({ lines }) => lines.map(({ expr }) => expr)),
    ...ALERTS.map(({ expr }) => expr),
  ]
    .flatMap((expr) => [
      ...expr.matchAll(/\b((?:hopgate|process|gen_ai|leaked)_\w+?)(?:_bucket)?[[{)\s]/g),
    ])
    .map(([, name]) => name!)
    .filter((name) => !name.startsWith('gen_ai_') || name.startsWith('gen_ai_client'));
  expect(named.length).toBeGreaterThan(ALERTS.length + panels.length);
  expect([...new Set(named)].filter((name) => !known.has(name))).toEqual([]);
});

/** A gateway's metrics as a scrape finds them, everything counted once more each time. */
function scraped(): () => string {
  const metrics = createGatewayMetrics('1');
  return () => {
    for (const status of ['200', '502']) metrics.requests.add(1, 'openai-chat', 'glm/a', status);
    metrics.requestSeconds.observe(2, 'openai-chat', 'glm/a');
    metrics.firstByteSeconds.observe(1, 'openai-chat', 'glm/a');
    for (const kind of ['input', 'output', 'cache_read']) metrics.tokens.add(10, 'glm/a', kind);
    metrics.errors.add(1, 'upstream');
    metrics.cost.add(0.01, 'glm/a');
    metrics.limitRefusals.add(1, 'ci', 'ci', 'web-team');
    metrics.targetState.set(2, 'glm/a');
    metrics.keyRequests.add(1, 'ci', 'ci', '200');
    metrics.keyTokens.add(10, 'ci', 'ci', 'input');
    metrics.retries.add(1, 'glm', 'overloaded');
    metrics.notes.add(1, 'parameter_dropped');
    metrics.streamsActive.set(1);
    metrics.violations.add(1, 'openai-chat', 'order');
    metrics.leakedCalls.add(1, 'xml', 'left');
    metrics.inferenceSeconds.observe(2, 'chat', 'openai', 'a');
    metrics.engineUp.set(1, 'cache');
    metrics.engineTrips.add(1, 'cache');
    metrics.sharedDropped.add(1, 'hops');
    metrics.sharedLate.add(1);
    metrics.responsesDropped.add(1);
    metrics.responsesLate.add(1);
    return metrics.render();
  };
}

interface Found {
  readonly status: string;
  readonly error?: string;
  readonly data?: { readonly result: readonly { readonly value: [number, string] }[] };
}

describe.skipIf(missing)('a real Prometheus', () => {
  let server: ReturnType<typeof Bun.serve>;
  let running: Bun.Subprocess;
  let url = '';

  beforeAll(async () => {
    const render = scraped();
    server = Bun.serve({
      port: 0,
      hostname: '127.0.0.1',
      fetch: () => new Response(render(), { headers: { 'content-type': METRICS_CONTENT_TYPE } }),
    });
    const port = freePort();
    url = `http://127.0.0.1:${port}`;
    const config = join(folder, 'prometheus.yml');
    writeFileSync(
      config,
      `global: { scrape_interval: 500ms, scrape_timeout: 500ms, evaluation_interval: 500ms }
rule_files: [${JSON.stringify(join(ROOT, ALERTS_FILE))}]
scrape_configs:
  - { job_name: hopgate, static_configs: [{ targets: ["127.0.0.1:${server.port}"] }] }
`,
    );
    running = Bun.spawn(
      [
        prometheus!,
        `--config.file=${config}`,
        `--storage.tsdb.path=${join(folder, 'data')}`,
        `--web.listen-address=127.0.0.1:${port}`,
      ],
      { stdout: 'ignore', stderr: 'ignore' },
    );
    await until(async () => {
      const { data } = await query('count_over_time(hopgate_build_info[5m])').catch(
        (): Found => ({ status: 'error' }),
      );
      return Number(data?.result[0]?.value[1] ?? 0) >= 4;
    });
  }, 60_000);
  afterAll(async () => {
    running?.kill();
    await running?.exited;
    await server?.stop(true);
  });

  const query = async (expr: string): Promise<Found> => {
    const body = new URLSearchParams({ query: expr });
    return (await (await fetch(`${url}/api/v1/query`, { method: 'POST', body })).json()) as Found;
  };

  const lines = panels.flatMap(({ title, lines: own }) =>
    own.map(({ expr, legend }) => [`${title}: ${legend}`, expr] as const),
  );
  test.each(lines)('%s is drawn', async (_, expr) => {
    const { status, error, data } = await query(
      expr
        .replaceAll('$__rate_interval', '1m')
        .replaceAll('$job', 'hop.*')
        .replaceAll('$instance', '.*'),
    );
    expect([status, error]).toEqual(['success', undefined]);
    const values = data!.result.map(({ value }) => Number(value[1]));
    expect(values.length).toBeGreaterThan(0);
    expect(values.filter(Number.isNaN)).toEqual([]);
  });

  test.each(ALERTS.map(({ name, expr }) => [name, expr] as const))(
    '%s is evaluated',
    async (_, expr) => {
      expect(await query(expr)).toMatchObject({ status: 'success' });
    },
  );

  test('it loads the rules, and none fails', async () => {
    interface Rule {
      readonly name: string;
      readonly health: string;
      readonly lastError?: string;
    }
    const rules = await until(async () => {
      const answer = await fetch(`${url}/api/v1/rules`);
      const { data } = (await answer.json()) as { data: { groups: { rules: Rule[] }[] } };
      const all = data.groups.flatMap((group) => group.rules);
      return all.length > 0 && all.every(({ health }) => health !== 'unknown') && all;
    });
    expect(rules.map(({ name }) => name)).toEqual(ALERTS.map(({ name }) => name));
    expect(rules.filter(({ health }) => health !== 'ok')).toEqual([]);
  });

  test('each alert fires on its trouble, and stays quiet on the rest', () => {
    const file = join(folder, 'tests.yml');
    writeFileSync(file, alertTestsYaml(join(ROOT, ALERTS_FILE)));
    const { exitCode, stdout, stderr } = Bun.spawnSync([promtool!, 'test', 'rules', file]);
    expect([exitCode, `${stdout}${stderr}`]).toEqual([0, expect.stringContaining('SUCCESS')]);
  });
});

function freePort(): number {
  const probe = Bun.serve({ port: 0, hostname: '127.0.0.1', fetch: () => new Response() });
  const { port } = probe;
  void probe.stop(true);
  return port!;
}
