/** Spans of an exchange: one tree whatever happened, with true times, states and names. */

import { describe, expect, test } from 'bun:test';
import { SpanKind, SpanStatusCode } from '@opentelemetry/api';
import { resourceFromAttributes } from '@opentelemetry/resources';
import type { ReadableSpan } from '@opentelemetry/sdk-trace-base';
import fc from 'fast-check';
import type { Payer, TryResult, TryStart } from '../../../src/conversation/account/payer.ts';
import { NO_PROFILE } from '../../../src/conversation/profile-facts.ts';
import { sidePayer } from '../../../src/gateway/tries/side-calls.ts';
import type { ExchangeRecord } from '../../../src/telemetry/exchange.ts';
import { GEN_AI_ATTRIBUTES, type GenAiNames } from '../../../src/telemetry/gen-ai-names.ts';
import { ExchangeSpans, type TracedExchange } from '../../../src/telemetry/otel/exchange-spans.ts';
import { ExchangeTrace, type TracedTry } from '../../../src/telemetry/trace.ts';

const RECORD: ExchangeRecord = {
  id: 'req_1',
  protocol: 'openai-chat',
  target: 'glm/glm-4.7',
  status: 200,
  stream: true,
  timings: { queue: 1, firstByte: 40, total: 100 },
  usage: { input: 10, output: 5, cacheRead: 100, cacheWrite: 20, reasoning: 7 },
  genAi: { operation: 'chat', provider: 'zhipu', model: 'gpt-x' },
};

const started = performance.now();
const oneTry = (more: Partial<TracedTry> = {}): TracedTry => ({
  spanId: 'aaaaaaaaaaaaaaaa',
  hop: 1,
  attempt: 1,
  target: 'glm/glm-4.7',
  url: 'https://api.example.com/v4/chat/completions',
  server: { host: 'api.example.com', port: 443 },
  started: started + 2,
  status: 200,
  ended: started + 99,
  ...more,
});

function spans(
  record: Partial<ExchangeRecord> = {},
  fill: (trace: ExchangeTrace) => void = (trace) => trace.addTry(oneTry()),
  more: Partial<TracedExchange> = {},
  names: GenAiNames = 'current',
): readonly ReadableSpan[] {
  const trace = new ExchangeTrace({ ratio: 1, trustSampled: false }, undefined);
  fill(trace);
  const maker = new ExchangeSpans({
    resource: resourceFromAttributes({}),
    scope: { name: 'hopgate' },
    names,
  });
  const vendorOf = (provider: string) => ({
    name: `the-${provider}`,
    server: { host: `${provider}.example.com`, port: 443 },
  });
  return maker.of({
    trace,
    record: { ...RECORD, ...record },
    started,
    vendorOf,
    call: {},
    ...more,
  });
}

const failed = (all: readonly ReadableSpan[]) =>
  all.map(({ status }) => status.code === SpanStatusCode.ERROR);
const ms = ([seconds, nanos]: readonly [number, number]) => seconds * 1000 + nanos / 1e6;

test('cached tokens are input, reasoning is output', () => {
  expect(spans()[1]!.attributes).toMatchObject({
    'gen_ai.usage.input_tokens': 130,
    'gen_ai.usage.cache_read.input_tokens': 100,
    'gen_ai.usage.cache_write.input_tokens': 20,
    'gen_ai.usage.output_tokens': 12,
    'gen_ai.usage.reasoning.output_tokens': 7,
    'gen_ai.response.time_to_first_chunk': 0.04,
  });
});

test('times are those of the exchange, on the wall clock', () => {
  const now = Date.now();
  const [server, call, one] = spans() as [ReadableSpan, ReadableSpan, ReadableSpan];
  expect(ms(server.duration)).toBeCloseTo(100, 3);
  expect(ms(call.startTime) - ms(server.startTime)).toBeCloseTo(1, 2);
  expect(ms(one.startTime) - ms(server.startTime)).toBeCloseTo(2, 2);
  expect(ms(one.duration)).toBeCloseTo(97, 3);
  expect(Math.abs(ms(server.startTime) - now)).toBeLessThan(60_000);
});

test('kinds and parents make one tree', () => {
  const all = spans({}, (trace) => {
    trace.addTry(oneTry());
    trace.addTry(oneTry({ spanId: 'bbbbbbbbbbbbbbbb', hop: 2 }));
    trace.addTool({ name: 'web_search', started: started + 5, ended: started + 9, failed: true });
  });
  expect(all.map(({ kind }) => kind)).toEqual([
    SpanKind.SERVER,
    SpanKind.CLIENT,
    SpanKind.CLIENT,
    SpanKind.CLIENT,
    SpanKind.INTERNAL,
  ]);
  const [server, call, ...rest] = all;
  expect(server!.parentSpanContext).toBeUndefined();
  expect(call!.parentSpanContext!.spanId).toBe(server!.spanContext().spanId);
  for (const part of rest) {
    expect(part.parentSpanContext!.spanId).toBe(call!.spanContext().spanId);
  }
  expect(failed(all)).toEqual([false, false, false, false, true]);
});

test('calls to other models are spans of the same tree, named as the conventions name them', async () => {
  const asked: TryStart[] = [];
  const ends: TryResult[] = [];
  const payer: Payer = {
    beginTry(start) {
      asked.push(start);
      return { answered: () => {}, end: (result) => void ends.push(result) };
    },
  };
  const startOf = (model: string, more: Partial<TryStart> = {}): TryStart => ({
    target: { provider: 'up', model, protocol: 'google-gemini', profile: NO_PROFILE },
    model,
    upstreamKey: undefined,
    hop: 1,
    attempt: 1,
    stream: false,
    inputTokens: 1,
    maxOutputTokens: undefined,
    serviceTier: undefined,
    ...more,
  });
  const done = { ended: 'done', final: true, content: true, bytes: 10 } as const;
  const trace = new ExchangeTrace({ ratio: 1, trustSampled: false }, undefined);
  const side = sidePayer(payer, trace)!;
  const eyes = await side.beginTry(startOf('eyes', { attempt: 2 }));
  eyes.answered(200);
  eyes.end({ ...done, usage: { input: 5, cacheRead: 20, output: 3, reasoning: 4 } });
  const vectors = await side.beginTry(startOf('vectors', { maxOutputTokens: 0 }));
  vectors.answered(503);
  vectors.end({ ...done, ended: 'error', usage: undefined });
  (await side.beginTry(startOf('hanging'))).end({ ...done, ended: 'timeout', usage: undefined });

  expect(asked.map(({ model }) => model)).toEqual(['eyes', 'vectors', 'hanging']);
  expect(ends.map(({ ended }) => ended)).toEqual(['done', 'error', 'timeout']);
  const all = spans({}, () => {}, { trace });
  const [, call, ...rest] = all;
  expect(rest.map(({ name, kind }) => [name, kind])).toEqual([
    ['generate_content eyes', SpanKind.CLIENT],
    ['embeddings vectors', SpanKind.CLIENT],
    ['generate_content hanging', SpanKind.CLIENT],
  ]);
  for (const part of rest) {
    expect(part.parentSpanContext!.spanId).toBe(call!.spanContext().spanId);
  }
  expect(failed(rest)).toEqual([false, true, true]);
  expect(rest[0]!.attributes).toEqual({
    'gen_ai.operation.name': 'generate_content',
    'gen_ai.provider.name': 'the-up',
    'gen_ai.request.model': 'eyes',
    'gen_ai.usage.input_tokens': 25,
    'gen_ai.usage.output_tokens': 7,
    'http.response.status_code': 200,
    'http.request.resend_count': 1,
    'server.address': 'up.example.com',
    'server.port': 443,
    'hopgate.target': 'up/eyes',
  });
  expect(rest[1]!.attributes['error.type']).toBe('503');
  expect(rest[2]!.attributes['error.type']).toBe('timeout');
});

test('calls of an exchange that is not sampled cost no span', () => {
  const payer: Payer = { beginTry: () => ({ answered: () => {}, end: () => {} }) };
  const trace = new ExchangeTrace({ ratio: 0, trustSampled: false }, undefined);
  expect(sidePayer(payer, trace)).toBe(payer);
  expect(sidePayer(payer, undefined)).toBe(payer);
});

describe('what failed', () => {
  test('a vendor’s refusal that a retry made good fails its try alone', () => {
    const all = spans({}, (trace) => {
      trace.addTry(oneTry({ status: 503, error: 'overloaded' }));
      trace.addTry(oneTry({ attempt: 2 }));
    });
    expect(failed(all)).toEqual([false, false, true, false]);
    expect(all[2]!.attributes['error.type']).toBe('503');
    expect(all[3]!.attributes['http.request.resend_count']).toBe(1);
  });

  test('a try without an answer is named by its kind of error', () => {
    const all = spans({ status: 502, error: { kind: 'upstream' } }, (trace) =>
      trace.addTry(oneTry({ status: undefined, error: 'upstream' })),
    );
    expect(failed(all)).toEqual([true, true, true]);
    expect(all[2]!.attributes['error.type']).toBe('upstream');
    expect(all[2]!.attributes['http.response.status_code']).toBeUndefined();
  });

  test('a client’s own mistake fails the call, not the server', () => {
    const all = spans({ status: 400, error: { kind: 'invalid_request' } }, (trace) =>
      trace.addTry(oneTry({ status: 400, error: 'invalid_request' })),
    );
    expect(failed(all)).toEqual([false, true, true]);
  });

  test('a client that left fails nothing', () => {
    const all = spans({ status: 499, aborted: true, error: { kind: 'timeout' } });
    expect(failed(all)).toEqual([false, false, false]);
  });
});

test('a try that is still open ends with its exchange', () => {
  const all = spans({}, (trace) => trace.addTry(oneTry({ ended: undefined })));
  expect(ms(all[2]!.endTime)).toBeCloseTo(ms(all[0]!.endTime), 3);
});

test('without a target there is the request alone', () => {
  expect(spans({ genAi: undefined, status: 404 }, () => {}).map(({ kind }) => kind)).toEqual([
    SpanKind.SERVER,
  ]);
});

test('the older names replace the ones that changed, and no others', () => {
  const call = { maxTokens: 10, temperature: 0, stopSequences: ['a'] };
  const keys = (names: GenAiNames) =>
    Object.keys(spans({}, undefined, { call }, names)[1]!.attributes).sort();
  const changed = Object.values(GEN_AI_ATTRIBUTES).flatMap((name) =>
    'older' in name ? [[name.current, name.older] as const] : [],
  );
  expect(changed.length).toBeGreaterThan(0);
  const older = new Map<string, string>(changed);
  expect(
    keys('current')
      .map((name) => older.get(name) ?? name)
      .sort(),
  ).toEqual(keys('older'));
  expect(keys('older')).toContain('gen_ai.request.temperature');
});

test('whatever the times are, no span ends before it starts', () => {
  const time = fc.double({ min: -1e6, max: 1e6, noNaN: true });
  fc.assert(
    fc.property(time, time, fc.double({ min: 0, max: 1e6, noNaN: true }), (from, to, total) => {
      const all = spans({ timings: { queue: from, total } }, (trace) => {
        trace.addTry(oneTry({ started: started + from, ended: started + to }));
        trace.addTool({ name: 't', started: started + from, ended: started + to, failed: false });
      });
      for (const { startTime, endTime, duration } of all) {
        expect(ms(endTime)).toBeGreaterThanOrEqual(ms(startTime));
        expect(Math.min(...duration)).toBeGreaterThanOrEqual(0);
        expect(duration[1]).toBeLessThan(1e9);
      }
    }),
  );
});
