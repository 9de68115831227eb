/** Trace context: only what the standard calls valid is taken over, and sampling is decided by the trace id. */

import { describe, expect, test } from 'bun:test';
import fc from 'fast-check';
import {
  addressOf,
  ExchangeTrace,
  inRatio,
  newTraceId,
  readCaller,
  spanIdIn,
} from '../../src/telemetry/trace.ts';

const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736';
const SPAN = '00f067aa0ba902b7';
const VALID = `00-${TRACE}-${SPAN}-01`;

describe('a caller’s context', () => {
  test('is taken over with its state', () => {
    expect(readCaller(VALID, 'a=1,b=2')).toEqual({
      traceId: TRACE,
      spanId: SPAN,
      sampled: true,
      state: 'a=1,b=2',
    });
    expect(readCaller(`00-${TRACE}-${SPAN}-00`, null)?.sampled).toBe(false);
    // Only the last bit says "sampled".
    expect(readCaller(`00-${TRACE}-${SPAN}-02`, null)?.sampled).toBe(false);
    expect(readCaller(`00-${TRACE}-${SPAN}-03`, null)?.sampled).toBe(true);
  });

  test('of a later version counts as far as it is known', () => {
    expect(readCaller(`cc-${TRACE}-${SPAN}-01-what-is-new`, null)?.traceId).toBe(TRACE);
  });

  test.each([
    ['nothing', null],
    ['an empty text', ''],
    ['version ff', `ff-${TRACE}-${SPAN}-01`],
    ['more than version 00 has', `${VALID}-01`],
    ['capitals', VALID.toUpperCase()],
    ['a trace id of zeros', `00-${'0'.repeat(32)}-${SPAN}-01`],
    ['a span id of zeros', `00-${TRACE}-${'0'.repeat(16)}-01`],
    ['a short trace id', `00-${TRACE.slice(1)}-${SPAN}-01`],
    ['two at once', `${VALID}, ${VALID}`],
    ['a flood', `cc-${TRACE}-${SPAN}-01-${'x'.repeat(100_000)}`],
  ])('%s is none', (_, header) => {
    expect(readCaller(header, 'a=1')).toBeUndefined();
  });

  test('a state that is too long or not printable is dropped, the rest stays', () => {
    expect(readCaller(VALID, 'a'.repeat(513))).toMatchObject({ traceId: TRACE, state: '' });
    expect(readCaller(VALID, 'a=\u00e4')).toMatchObject({ traceId: TRACE, state: '' });
  });

  test('whatever is sent, what goes out is valid', () => {
    fc.assert(
      fc.property(fc.string(), fc.string(), (parent, state) => {
        const trace = new ExchangeTrace(
          { ratio: 1, trustSampled: false },
          readCaller(parent, state),
        );
        const out = trace.parentOf(trace.spanId);
        expect(out).toMatch(/^00-[0-9a-f]{32}-[0-9a-f]{16}-01$/);
        expect(readCaller(out, null)?.traceId).toBe(trace.traceId);
        expect(spanIdIn(out)).toBe(trace.spanId);
      }),
    );
  });
});

describe('sampling', () => {
  const caller = (sampled: boolean) => readCaller(`00-${TRACE}-${SPAN}-0${sampled ? 1 : 0}`, null);

  test('a caller’s flag counts only if callers are trusted', () => {
    const sampled = (ratio: number, trustSampled: boolean, flag: boolean) =>
      new ExchangeTrace({ ratio, trustSampled }, caller(flag)).sampled;
    expect(sampled(0, false, true)).toBe(false);
    expect(sampled(1, false, false)).toBe(true);
    expect(sampled(0, true, true)).toBe(true);
    expect(sampled(1, true, false)).toBe(false);
    expect(new ExchangeTrace({ ratio: 1, trustSampled: true }, undefined).sampled).toBe(true);
  });

  test('the ratio is kept, and 0 and 1 are none and all', () => {
    const ids = Array.from({ length: 4000 }, newTraceId);
    expect(new Set(ids).size).toBe(ids.length);
    expect(ids.filter((id) => inRatio(id, 0))).toEqual([]);
    expect(ids.filter((id) => inRatio(id, 1))).toEqual(ids);
    const share = ids.filter((id) => inRatio(id, 0.25)).length / ids.length;
    expect(share).toBeGreaterThan(0.2);
    expect(share).toBeLessThan(0.3);
  });

  test('all parties decide alike: a trace in a small ratio is in every larger one', () => {
    fc.assert(
      fc.property(
        fc.double({ min: 0, max: 1, noNaN: true }),
        fc.double({ min: 0, max: 1, noNaN: true }),
        (a, b) => {
          const id = newTraceId();
          return !inRatio(id, Math.min(a, b)) || inRatio(id, Math.max(a, b));
        },
      ),
    );
  });
});

test('an exchange without end cannot fill the memory with tries and tool runs', () => {
  const trace = new ExchangeTrace({ ratio: 1, trustSampled: false }, undefined);
  for (let i = 0; i < 10_000; i++) {
    trace.addTool({ name: 't', started: 0, ended: 1, failed: false });
    trace.addTry({
      spanId: '1',
      hop: 1,
      attempt: i,
      target: 'a/b',
      url: '',
      server: undefined,
      started: 0,
    });
  }
  expect([trace.tries.length, trace.tools.length]).toEqual([200, 200]);
});

test('addresses are host and port; the built-in model has none', () => {
  expect(addressOf('https://api.example.com/v1')).toEqual({ host: 'api.example.com', port: 443 });
  expect(addressOf('http://127.0.0.1:8000')).toEqual({ host: '127.0.0.1', port: 8000 });
  expect(addressOf('demo:')).toBeUndefined();
});
