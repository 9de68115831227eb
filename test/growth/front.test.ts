/** Work on raw client and vendor bytes grows no faster than their size. */

import { describe, expect, test } from 'bun:test';
import { cutWords, encodeHeaderText, printableLine } from '../../src/lib/text/printable-text.ts';
import { readBody } from '../../src/server/body.ts';
import { Connections } from '../../src/server/connections.ts';
import { apiOf, methodsAt } from '../../src/server/endpoints.ts';
import { localUrl, mendedPath, pathOf } from '../../src/server/request-path.ts';
import { type ExchangeRecord, logExchange } from '../../src/telemetry/exchange.ts';
import { createGatewayMetrics } from '../../src/telemetry/gateway-metrics.ts';
import { createLog, event } from '../../src/telemetry/log.ts';
import { sumMetrics } from '../../src/telemetry/metrics.ts';
import { prettyLine } from '../../src/telemetry/pretty-line.ts';
import { ALL_ROUTES } from '../server/all-routes.ts';
import { accessWith } from '../support/access.ts';
import { expectLinear } from '../support/growth.ts';

const TEXTS: readonly (readonly [string, (size: number) => string])[] = [
  ['letters', (size) => 'a'.repeat(size)],
  ['blanks', (size) => ' '.repeat(size)],
  ['blanks between', (size) => 'a '.repeat(size / 2)],
  ['line breaks', (size) => '\n'.repeat(size)],
  ['escapes', (size) => '\x1b['.repeat(size / 2)],
  ['characters of three bytes', (size) => '日'.repeat(size)],
  ['halves of characters', (size) => '\ud800'.repeat(size)],
  ['percent signs', (size) => '%'.repeat(size)],
  ['slashes', (size) => '/'.repeat(size)],
  ['v1 and v1', (size) => '/v1'.repeat(size / 3)],
  ['colons and digits', (size) => ':1'.repeat(size / 2)],
  ['dots', (size) => '.'.repeat(size)],
  ['quotes', (size) => '"\\'.repeat(size / 2)],
];

const record = (text: string): ExchangeRecord => ({
  id: 'req_1',
  protocol: 'openai-chat',
  userAgent: text,
  key: text,
  target: `p/${text}`,
  status: 502,
  stream: false,
  timings: { total: 1 },
  notes: text,
  error: { kind: 'upstream', message: text },
});

const tried = (run: () => unknown) => {
  try {
    return run();
  } catch {
    return undefined;
  }
};

const WORK: readonly (readonly [string, (text: string) => unknown])[] = [
  ['a header', (text) => encodeHeaderText(text)],
  ['a header that may be long', (text) => encodeHeaderText(text, 4096)],
  ['a line', (text) => printableLine(text, Number.MAX_SAFE_INTEGER)],
  ['a cut', (text) => cutWords(text, text.length / 2)],
  [
    'a pretty line',
    (text) =>
      prettyLine(
        JSON.stringify({ event: 'exchange', target: text, client: text, x: [text], y: { text } }),
        false,
      ),
  ],
  [
    'a log line',
    (text) => {
      const log = createLog({ format: 'pretty', write: () => {} });
      logExchange(log, record(text));
      event(log, 'x', { message: text });
    },
  ],
  [
    'a label',
    (text) => {
      const { requests, render } = createGatewayMetrics('1');
      requests.add(1, 'p', text, '200');
      return render();
    },
  ],
  ['a sum of metrics', (text) => sumMetrics([`# HELP a b\n# TYPE a counter\n${text} 1\n`, text])],
  [
    'a path',
    (text) => {
      const url = `http://x/${text}`;
      const path = pathOf(url);
      return [
        mendedPath(path),
        methodsAt(ALL_ROUTES, path),
        apiOf(path),
        tried(() => localUrl(url)),
      ];
    },
  ],
  [
    'a host, an origin and a key',
    (text) => {
      const open = accessWith({});
      const keyed = accessWith({ keys: [{ name: 'a', key: 'key-of-some-length' }] });
      const fields = new Map([
        ['host', text],
        ['origin', `http://${text}`],
        ['authorization', `Bearer ${text} `],
      ]);
      const headers = {
        get: (name: string) => fields.get(name) ?? null,
        has: (name: string) => fields.has(name),
        [Symbol.iterator]: () => fields[Symbol.iterator](),
      };
      tried(() => open(headers));
      tried(() =>
        open({ ...headers, get: (name) => (name === 'host' ? 'localhost' : headers.get(name)) }),
      );
      tried(() => keyed(headers));
    },
  ],
];

// Longer than any real input here, and long enough that quadratic work takes seconds.
const MAX = 1 << 17;

for (const [work, run] of WORK) {
  describe(work, () => {
    test.each(TEXTS)('of %s', (name, input) => expectLinear({ name, input, run, most: MAX }), {
      timeout: 60_000,
    });
  });
}

test('a thousand long names in any order do not fill the metrics', () => {
  const metrics = createGatewayMetrics('1');
  for (let i = 0; i < 3000; i++) {
    const name = `${i}${'x'.repeat(10_000)}`;
    metrics.requests.add(1, 'p', name, '200');
    metrics.requestSeconds.observe(1, 'p', name);
    metrics.firstByteSeconds.observe(1, 'p', name);
  }
  expect(metrics.render().length).toBeLessThan(12_000_000);
});

test('a body in many pieces or many encodings is read in linear time', async () => {
  const connections = new Connections({
    idleMs: 0,
    bodyIdleMs: 0,
    unfinishedBytes: 0,
    runningBytes: 0,
  });
  await expectLinear({
    name: 'pieces',
    most: 1 << 20,
    input: (size) =>
      new ReadableStream<Uint8Array>({
        start(controller) {
          for (let i = 0; i < size / 64; i++) controller.enqueue(new Uint8Array(64));
          controller.close();
        },
      }),
    run: (body) => {
      const request = new Request('http://x/', { method: 'POST', body });
      return readBody(request, request.headers, 1e8, connections);
    },
  });
  await expectLinear({
    name: 'encodings',
    most: 1 << 20,
    input: (size) => 'gzip,'.repeat(size / 5),
    run: (encoding) => {
      const request = new Request('http://x/', { method: 'POST', body: 'x' });
      const headers = {
        get: (name: string) => (name === 'content-encoding' ? encoding : null),
        has: (name: string) => name === 'content-encoding',
        [Symbol.iterator]: () => [][Symbol.iterator](),
      };
      return readBody(request, headers, 1e8, connections).catch(() => {});
    },
  });
}, 60_000);

test('a small body that expands into a large one does not block other requests', async () => {
  const zlib = process.getBuiltinModule('node:zlib');
  const bomb = zlib.brotliCompressSync(Buffer.alloc(49_000_000), {
    params: { [zlib.constants.BROTLI_PARAM_QUALITY]: 4 },
  });
  const connections = new Connections({
    idleMs: 0,
    bodyIdleMs: 0,
    unfinishedBytes: 0,
    runningBytes: 0,
  });
  const request = new Request('http://x/', {
    method: 'POST',
    body: bomb,
    headers: { 'content-encoding': 'br' },
  });
  let turns = 0;
  const counting = setInterval(() => turns++, 1);
  const body = await readBody(request, request.headers, 50_000_000, connections);
  clearInterval(counting);
  expect(body.byteLength).toBe(49_000_000);
  expect(turns).toBeGreaterThan(5);
});
