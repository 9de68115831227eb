/** Traces and metrics of the compiled program, as a collector gets them: read with OpenTelemetry's own protobuf definitions. */

import { Database } from 'bun:sqlite';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'bun:test';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { type Gateway, startGateway, threeProviders } from '../support/binary.ts';
import {
  call,
  type FakeUpstream,
  refuse,
  say,
  startFakeUpstream,
} from '../support/fake-upstream/index.ts';
import {
  metricsIn,
  OTLP_PYTHON,
  type OtlpReceiver,
  type ReceivedSpan,
  spansIn,
  startOtlpReceiver,
} from '../support/otlp-receiver.ts';
import { startToolServers, stopAll, type ToolServers, toolsOf } from '../support/tool-servers.ts';
import { until } from '../support/until.ts';
import { PROTOCOLS, plainRequest, post, VIA } from './clients.ts';

if (OTLP_PYTHON === undefined) {
  console.warn(
    'SKIPPED: no python3 with opentelemetry-proto here (pip install opentelemetry-proto)',
  );
}

/** The traces of the rows of spend; none before the file is there. */
function tracesIn(file: string): string[] {
  if (!existsSync(file)) return [];
  const db = new Database(file, { readonly: true });
  try {
    db.run('PRAGMA busy_timeout = 5000');
    // The file is there a moment before its tables.
    if (db.query("SELECT 1 FROM sqlite_master WHERE name = 'spend'").get() === null) return [];
    return db
      .query<{ trace: string }, []>('SELECT trace FROM spend WHERE trace IS NOT NULL')
      .all()
      .map(({ trace }) => trace);
  } finally {
    db.close();
  }
}

const SOON = { OTEL_BSP_SCHEDULE_DELAY: '20', OTEL_METRIC_EXPORT_INTERVAL: '100' };
const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736';
const SPAN = '00f067aa0ba902b7';

let upstream: FakeUpstream;
let toolServers: ToolServers;
let collector: OtlpReceiver;
const gateways: Gateway[] = [];

beforeAll(async () => {
  upstream = await startFakeUpstream({ keys: ['sk-upstream'], models: ['m1'] });
  toolServers = await startToolServers();
  collector = startOtlpReceiver();
}, 120_000);
afterEach(async () => {
  for (const gateway of gateways.splice(0)) await gateway.stop();
  upstream.clear();
  toolServers.clear();
  collector.requests.length = 0;
  collector.mood = 'takes';
});
afterAll(async () => {
  await stopAll(upstream, toolServers);
  await collector.stop();
});

async function start(
  otlp: Record<string, unknown>,
  more: Record<string, unknown> = {},
  env: Record<string, string> = {},
): Promise<Gateway> {
  const telemetry = { otlp: { endpoint: collector.url, ...otlp } };
  const config = threeProviders(upstream, { telemetry, ...more });
  const gateway = await startGateway(config, { env: { ...SOON, ...env } });
  gateways.push(gateway);
  return gateway;
}

const exchangeLine = (gateway: Gateway) =>
  until(() => gateway.logs().find(({ event }) => event === 'exchange'));

const spansOf = (): readonly ReceivedSpan[] => spansIn(collector.requests);

/** The spans of a trace once its request has come, parents first. */
async function tree(count: number): Promise<readonly ReceivedSpan[]> {
  await until(() => collector.requests.some(({ signal }) => signal === 'traces'));
  return until(() => {
    const spans = spansOf();
    return spans.length >= count && spans;
  });
}

/** `chat m1 < POST /v1/…`: each span with its parent. */
function lines(spans: readonly ReceivedSpan[]): readonly string[] {
  const names = new Map(spans.map(({ spanId, name }) => [spanId, name]));
  return spans.map(({ name, kind, parentSpanId }) => {
    const parent = parentSpanId === '' ? '' : ` < ${names.get(parentSpanId) ?? 'caller'}`;
    return `${kind} ${name}${parent}`;
  });
}

describe.skipIf(OTLP_PYTHON === undefined)('spans', () => {
  test.each(PROTOCOLS)('%s: what was said is there only where it is asked for', async (client) => {
    const { path, body } = plainRequest(client, VIA[client], true);
    for (const [value, held] of [
      ['NO_CONTENT', false],
      ['SPAN_ONLY', true],
    ] as const) {
      collector.requests.length = 0;
      const gateway = await start(
        { metrics: false },
        {},
        { OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT: value },
      );
      upstream.enqueue(say('High at noon.'));
      expect(await (await post(gateway.url, path, body)).text()).toContain('noon');
      const { attributes } = (await tree(3)).find(({ name }) => name.startsWith('chat '))!;
      expect(attributes['gen_ai.input.messages'] !== undefined).toBe(held);
      if (!held) continue;
      expect(JSON.parse(String(attributes['gen_ai.input.messages']))).toEqual([
        { role: 'user', parts: [{ type: 'text', content: 'hi' }] },
      ]);
      expect(JSON.parse(String(attributes['gen_ai.output.messages']))).toMatchObject([
        { role: 'assistant', parts: [{ type: 'text', content: 'High at noon.' }] },
      ]);
    }
  });

  for (const client of PROTOCOLS) {
    test(`${client}: request, model call, each try and the tool are one tree`, async () => {
      const gateway = await start({ metrics: false }, { server_tools: toolsOf(toolServers) });
      const { path, body } = plainRequest(client, VIA[client], true);
      // Chat tells the tokens of a stream only to clients that ask.
      if (client === 'openai-chat') body.stream_options = { include_usage: true };
      upstream.enqueue(
        refuse(503),
        call({ name: 'web_search', arguments: { query: 'tides' } }),
        say('High at noon.'),
      );
      const answer = await post(gateway.url, path, body);
      expect(await answer.text()).toContain('noon');
      const spans = await tree(6);
      expect(lines(spans)).toEqual([
        `server POST ${path}`,
        `client chat ${VIA[client]} < POST ${path}`,
        `client POST < chat ${VIA[client]}`,
        `client POST < chat ${VIA[client]}`,
        `client POST < chat ${VIA[client]}`,
        `internal execute_tool web_search < chat ${VIA[client]}`,
      ]);
      const [server, model, refused, first, second, tool] = spans as [
        ReceivedSpan,
        ReceivedSpan,
        ReceivedSpan,
        ReceivedSpan,
        ReceivedSpan,
        ReceivedSpan,
      ];
      expect(new Set(spans.map(({ traceId }) => traceId)).size).toBe(1);
      expect(new Set(spans.map(({ spanId }) => spanId)).size).toBe(6);
      for (const { start, end } of spans) expect(start <= end).toBe(true);
      for (const part of spans) {
        expect(part.start >= server.start && part.end <= server.end).toBe(true);
      }
      // What is done one after another does not overlap.
      const steps = [refused, first, tool, second];
      steps.forEach((step, i) => {
        if (i > 0) expect(step.start >= steps[i - 1]!.end).toBe(true);
      });
      expect(server).toMatchObject({
        failed: false,
        attributes: {
          'http.request.method': 'POST',
          'url.path': path,
          'http.response.status_code': 200,
          'hopgate.protocol': client,
          'hopgate.request.id': answer.headers.get('x-hopgate-request-id'),
        },
        resource: { 'service.name': 'hopgate' },
      });
      expect(model).toMatchObject({
        failed: false,
        attributes: {
          'gen_ai.operation.name': 'chat',
          'gen_ai.request.model': VIA[client],
          'gen_ai.response.model': 'm1',
          'gen_ai.request.stream': true,
          'gen_ai.response.finish_reasons': ['stop'],
          'server.address': '127.0.0.1',
          'hopgate.hops': 2,
          'hopgate.tries': 3,
        },
      });
      expect(model.attributes['gen_ai.usage.input_tokens']).toBeGreaterThan(0);
      expect(model.attributes['gen_ai.usage.output_tokens']).toBeGreaterThan(0);
      expect(model.attributes['gen_ai.response.id']).toBeString();
      expect(model.attributes['gen_ai.response.time_to_first_chunk']).toBeGreaterThan(0);
      expect(refused).toMatchObject({
        failed: true,
        attributes: { 'http.response.status_code': 503, 'error.type': '503', 'hopgate.hop': 1 },
      });
      expect(first).toMatchObject({
        failed: false,
        attributes: {
          'http.response.status_code': 200,
          'http.request.resend_count': 1,
          'hopgate.hop': 1,
        },
      });
      expect(second).toMatchObject({ failed: false, attributes: { 'hopgate.hop': 2 } });
      expect(tool).toMatchObject({
        failed: false,
        attributes: { 'gen_ai.tool.name': 'web_search' },
      });
    });
  }

  test('the model that searches is a span of the exchange that asked', async () => {
    const gateway = await start(
      { metrics: false },
      {
        server_tools: {
          web_search: { inject: 'force', engines: [{ type: 'model', target: 'chat/m1' }] },
        },
      },
    );
    upstream.enqueue(
      call({ name: 'web_search', arguments: { query: 'tides' } }),
      say('High water is at noon, says the almanac.'),
      say('At noon.'),
    );
    const { path, body } = plainRequest('anthropic-messages', 'via-messages', false);
    expect(await (await post(gateway.url, path, body)).text()).toContain('noon');
    const spans = await tree(6);
    expect(lines(spans).toSorted()).toEqual(
      [
        `server POST ${path}`,
        `client chat via-messages < POST ${path}`,
        'client POST < chat via-messages',
        'client POST < chat via-messages',
        'internal execute_tool web_search < chat via-messages',
        'client chat m1 < chat via-messages',
      ].toSorted(),
    );
    expect(new Set(spans.map(({ traceId }) => traceId)).size).toBe(1);
    const side = spans.find(({ name }) => name === 'chat m1')!;
    expect(side.attributes).toMatchObject({ 'hopgate.target': 'chat/m1' });
    expect(side.attributes['gen_ai.usage.input_tokens']).toBeGreaterThan(0);
  });

  test('a stream that breaks off is a failure, although its status is 200', async () => {
    const gateway = await start({ metrics: false });
    upstream.enqueue(
      say('This is cut in its middle.', { delivery: { cut: { at: 3, by: 'reset' } } }),
    );
    const { path, body } = plainRequest('openai-chat', 'via-chat', true);
    await (await post(gateway.url, path, body)).text().catch(() => '');
    const spans = await tree(3);
    expect(spans.map(({ failed }) => failed)).toEqual([true, true, true]);
    expect(spans[1]!.attributes['error.type']).toBe('upstream');
    expect(spans[2]!.attributes['http.response.status_code']).toBe(200);
  });

  test('a request for an unknown model is one span, and no failure of the server', async () => {
    const gateway = await start({ metrics: false });
    const { path, body } = plainRequest('openai-chat', 'no-such-model', false);
    expect((await post(gateway.url, path, body)).status).toBe(404);
    const spans = await tree(1);
    expect(lines(spans)).toEqual([`server POST ${path}`]);
    expect(spans[0]).toMatchObject({ failed: false, attributes: { 'error.type': 'not_found' } });
  });

  test('a caller’s trace is joined, and the vendor’s spans join the try', async () => {
    const gateway = await start({ metrics: false });
    upstream.enqueue(say('hi'));
    const { path, body } = plainRequest('openai-chat', 'via-messages', false);
    const headers = { traceparent: `00-${TRACE}-${SPAN}-00`, tracestate: 'a=1', baggage: 'b=2' };
    await (await post(gateway.url, path, body, { headers })).text();
    const spans = await tree(3);
    expect(lines(spans)[0]).toBe(`server POST ${path} < caller`);
    expect(spans.map(({ traceId }) => traceId)).toEqual([TRACE, TRACE, TRACE]);
    expect(spans[0]!.parentSpanId).toBe(SPAN);
    const { headers: sent } = upstream.modelRequests[0]!;
    expect(sent).toMatchObject({
      traceparent: `00-${TRACE}-${spans[2]!.spanId}-01`,
      tracestate: 'a=1',
      baggage: 'b=2',
    });
    expect((await exchangeLine(gateway)).trace_id).toBe(TRACE);
    const file = join(gateway.home, 'state', 'state', 'spend.db');
    expect(await until(() => tracesIn(file)[0])).toBe(TRACE);
  });

  test('a caller’s flag decides only if callers are trusted', async () => {
    const { path, body } = plainRequest('openai-chat', 'via-chat', false);
    const headers = { traceparent: `00-${TRACE}-${SPAN}-01` };
    for (const trust of [false, true]) {
      const gateway = await start({ metrics: false, traces: 0, trust_sampled: trust });
      upstream.enqueue(say('hi'));
      await (await post(gateway.url, path, body, { headers })).text();
      // What is queued is sent before the end.
      await gateway.stop();
      expect(spansOf().length).toBe(trust ? 3 : 0);
      expect(upstream.modelRequests.at(-1)!.headers.traceparent).toMatch(trust ? /-01$/ : /-00$/);
    }
  });

  test('older names where a backend needs them', async () => {
    const gateway = await start({ names: 'older' });
    upstream.enqueue(say('hi'));
    const { path, body } = plainRequest('openai-chat', 'via-chat', false);
    await (await post(gateway.url, path, body)).text();
    const [, model] = await tree(3);
    expect(model!.attributes['gen_ai.system']).toBe('chat');
    expect(model!.attributes['gen_ai.provider.name']).toBeUndefined();
    const metrics = await until(() => {
      const found = metricsIn(collector.requests).filter(
        ({ name, points }) => name === 'gen_ai.client.token.usage' && points.length > 0,
      );
      return found.length > 0 && found;
    });
    const types = metrics.at(-1)!.points.map(({ attributes }) => attributes['gen_ai.token.type']);
    expect(types.toSorted()).toEqual(['input', 'output']);
  });

  test('no prompt, no answer, no key is in what is sent', async () => {
    const auth = { keys: [{ name: 'ann', key: 'sk-ann-secret-0001' }] };
    const gateway = await start({}, { auth });
    upstream.enqueue(say('the-answer-of-the-model'));
    const body = {
      model: 'via-chat',
      messages: [{ role: 'user', content: 'the-words-of-the-user' }],
    };
    const headers = { authorization: 'Bearer sk-ann-secret-0001' };
    await (
      await post(gateway.url, '/v1/chat/completions?api_key=the-query', body, { headers })
    ).text();
    const spans = await tree(3);
    expect(spans[0]!.attributes['hopgate.key']).toBe('ann');
    await gateway.stop();
    const all = collector.requests.map((one) => Buffer.from(one.body).toString('latin1')).join('');
    expect(all).not.toMatch(/the-answer|the-words|the-query|sk-ann|sk-upstream/);
  });
});

describe.skipIf(OTLP_PYTHON === undefined)('metrics', () => {
  test('are the numbers of /metrics', async () => {
    const gateway = await start(
      { headers: { 'x-api-key': 'of-the-collector' } },
      {},
      {
        OTEL_EXPORTER_OTLP_COMPRESSION: 'gzip',
        OTEL_RESOURCE_ATTRIBUTES: 'deployment.environment.name=test',
      },
    );
    upstream.enqueue(say('hi'));
    const { path, body } = plainRequest('openai-chat', 'via-chat', false);
    await (await post(gateway.url, path, body)).text();
    const found = await until(() => {
      const metrics = metricsIn(collector.requests.slice(-2));
      const counted = metrics.find(({ name }) => name === 'hopgate_requests_total');
      return counted !== undefined && counted.points.length > 0 && metrics;
    });
    const named = new Map(
      found.filter(({ points }) => points.length > 0).map((metric) => [metric.name, metric]),
    );
    expect(named.get('hopgate_requests_total')).toMatchObject({
      kind: 'sum',
      monotonic: true,
      points: [
        { value: 1, attributes: { protocol: 'openai-chat', target: 'chat/m1', status: '200' } },
      ],
      resource: { 'service.name': 'hopgate', 'deployment.environment.name': 'test' },
    });
    expect(named.get('hopgate_streams_active')).toMatchObject({ kind: 'gauge' });
    expect(named.get('gen_ai.client.inference.duration')).toMatchObject({
      kind: 'histogram',
      unit: 's',
      points: [
        {
          count: 1,
          attributes: {
            'gen_ai.operation.name': 'chat',
            'gen_ai.provider.name': 'chat',
            'gen_ai.request.model': 'via-chat',
          },
        },
      ],
    });
    const { bounds, counts } = named.get('gen_ai.client.inference.duration')!.points[0]!;
    expect(counts.length).toBe(bounds.length + 1);
    const text = await (await fetch(`${gateway.url}/metrics`)).text();
    const own = [...text.matchAll(/^# TYPE (\S+)/gm)].map(([, name]) => name!);
    const sent = found.map(({ name }) => name);
    expect(
      own.filter((name) => !name.startsWith('gen_ai')).filter((name) => !sent.includes(name)),
    ).toEqual([]);
    const { headers } = collector.requests.find(({ signal }) => signal === 'metrics')!;
    expect(headers.get('x-api-key')).toBe('of-the-collector');
    expect(headers.get('content-encoding')).toBe('gzip');
  });

  test('every worker sends its own under its own name, and a scrape is the sum', async () => {
    const gateway = await start({}, { workers: 2 });
    const { path, body } = plainRequest('openai-chat', 'via-chat', false);
    const asked = 12;
    for (let i = 0; i < asked; i++) {
      upstream.enqueue(say('hi'));
      await (await post(gateway.url, path, body, { headers: { connection: 'close' } })).text();
    }
    // An exchange ends, and is counted, a moment after its last byte has reached the client.
    const counted = /^gen_ai_client_inference_duration_seconds_count\{[^}]*\} (\d+)$/m;
    await until(async () => {
      const text = await (await fetch(`${gateway.url}/metrics`)).text();
      return Number(counted.exec(text)?.[1]) === asked;
    });
    await until(() => {
      const latest = new Map<unknown, number>();
      for (const { name, resource, points } of metricsIn(collector.requests)) {
        if (name !== 'hopgate_requests_total') continue;
        const sum = points.reduce((all, { value }) => all + value, 0);
        latest.set(resource['service.instance.id'], sum);
      }
      const sum = [...latest.values()].reduce((all, one) => all + one, 0);
      return latest.size === 2 && sum === asked;
    });
  });
});

describe('a collector that is away', () => {
  const { path, body } = plainRequest('openai-chat', 'via-chat', false);

  async function ask(gateway: Gateway, times: number) {
    for (let i = 0; i < times; i++) {
      upstream.enqueue(say('hi'));
      const answer = await post(gateway.url, path, body);
      expect(answer.status).toBe(200);
      await answer.text();
    }
  }
  const events = (gateway: Gateway, name: string) =>
    gateway.logs().filter(({ event }) => event === name);

  test('costs no request, is logged once, and holds up no stop', async () => {
    const probe = startOtlpReceiver();
    await probe.stop();
    const gateway = await start({ endpoint: probe.url }, {}, { OTEL_EXPORTER_OTLP_TIMEOUT: '50' });
    await ask(gateway, 3);
    await until(() => events(gateway, 'otlp.failed').length === 2);
    await ask(gateway, 3);
    // 0: it ended by itself, and was not killed.
    expect(await gateway.stop()).toBe(0);
    const signals = events(gateway, 'otlp.failed').map(({ signal }) => signal);
    expect(signals.toSorted()).toEqual(['metrics', 'traces']);
  });

  test('one that takes connections and never answers holds up no stop either', async () => {
    collector.mood = 'hangs';
    const gateway = await start({});
    await ask(gateway, 3);
    await until(() => collector.requests.length > 0);
    expect(await gateway.stop()).toBe(0);
  });

  test.each([
    ['refuses some', '5 were refused: over quota'],
    ['is no collector', 'it answered with a web page'],
    ['goes on and on', 'no whole answer within 1000 ms'],
  ] as const)('one that %s, with a 200, is reported for both signals', async (mood, message) => {
    collector.mood = mood;
    const gateway = await start({}, {}, { OTEL_EXPORTER_OTLP_TIMEOUT: '1000' });
    await ask(gateway, 1);
    await until(() => events(gateway, 'otlp.failed').length === 2);
    const failed = events(gateway, 'otlp.failed').map((one) => [one.signal, one.message]);
    expect(failed.toSorted()).toEqual([
      ['metrics', message],
      ['traces', message],
    ]);
    expect(await gateway.stop()).toBe(0);
  });

  test('one that comes back is reported', async () => {
    collector.mood = 'refuses';
    const gateway = await start({ metrics: false }, {}, { OTEL_EXPORTER_OTLP_TIMEOUT: '50' });
    await ask(gateway, 1);
    await until(() => events(gateway, 'otlp.failed').length === 1);
    collector.mood = 'takes';
    await ask(gateway, 1);
    await until(() => events(gateway, 'otlp.recovered').length === 1);
  });
});

describe('trace headers', () => {
  const { path, body } = plainRequest('openai-chat', 'via-chat', false);
  const headers = { traceparent: `00-${TRACE}-${SPAN}-01`, tracestate: 'a=1', baggage: 'b=2' };

  test('of a client do not reach a provider that is not to have them', async () => {
    const config = threeProviders(upstream) as { providers: Record<string, object> };
    config.providers.chat = { ...config.providers.chat, trace_headers: false };
    const gateway = await startGateway(config);
    gateways.push(gateway);
    upstream.enqueue(say('hi'));
    await (await post(gateway.url, path, body, { headers })).text();
    const sent = Object.keys(upstream.modelRequests[0]!.headers);
    expect(sent.filter((name) => name in headers)).toEqual([]);
  });

  test('of a client go on as they came where nothing is traced', async () => {
    const gateway = await startGateway(threeProviders(upstream));
    gateways.push(gateway);
    upstream.enqueue(say('hi'));
    await (await post(gateway.url, path, body, { headers })).text();
    expect(upstream.modelRequests[0]!.headers).toMatchObject(headers);
    expect((await exchangeLine(gateway)).trace_id).toBeUndefined();
  });
});

test('a reload starts and ends sending', async () => {
  const gateway = await startGateway(threeProviders(upstream), { env: SOON });
  gateways.push(gateway);
  const { path, body } = plainRequest('openai-chat', 'via-chat', false);
  const ask = async () => {
    upstream.enqueue(say('hi'));
    await (await post(gateway.url, path, body)).text();
  };
  const reload = async (more: Record<string, unknown>) => {
    const before = gateway.logs().filter(({ event }) => event === 'config.reloaded').length;
    await Bun.write(gateway.configPath, JSON.stringify(threeProviders(upstream, more)));
    gateway.signal('SIGHUP');
    await until(
      () => gateway.logs().filter(({ event }) => event === 'config.reloaded').length > before,
    );
  };
  await ask();
  expect(collector.requests).toEqual([]);
  await reload({ telemetry: { otlp: { endpoint: collector.url, metrics: false } } });
  await ask();
  await until(() => collector.requests.length > 0);
  await reload({});
  const sent = collector.requests.length;
  await ask();
  await gateway.stop();
  expect(collector.requests.length).toBe(sent);
});
