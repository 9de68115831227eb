/** What is said of an upstream that could not be reached, or hung up before it answered. */

import { expect, test } from 'bun:test';
import { remedyForError } from '../../src/upstream/classify.ts';
import { connectionError } from '../../src/upstream/connection-error.ts';
import { NotConnected } from '../../src/upstream/http1/connection.ts';
import { OtherScheme } from '../../src/upstream/http1/other-scheme.ts';
import { MalformedReply } from '../../src/upstream/http1/response-parser.ts';

const failure = (code: string) => Object.assign(new Error('http://secret.test'), { code });

test.each([
  ['ECONNREFUSED', 'elsewhere', 'could not be reached'],
  ['ENOTFOUND', 'elsewhere', 'could not be reached'],
  ['SELF_SIGNED_CERT_IN_CHAIN', 'elsewhere', 'could not be reached'],
  ['ECONNRESET', 'again', 'closed the connection before it answered'],
  ['EPIPE', 'again', 'closed the connection before it answered'],
] as const)('%s → %s, %s', (code, remedy, what) => {
  const error = connectionError('p', failure(code));
  expect(error.message).toBe(`Provider p ${what} (${code}).`);
  expect(remedyForError(error)).toBe(remedy);
});

test.each([
  ['ERR_PROXY_TUNNEL', 'its proxy answered with status 407', undefined],
  ['UnsupportedProxyProtocol', 'its proxy must speak HTTP, not SOCKS', false],
] as const)(
  'a proxy that does not let through is told apart from the vendor: %s',
  (code, what, retryable) => {
    const error = connectionError('p', Object.assign(failure(code), { status: 407 }));
    expect(error.message).toBe(`Provider p could not be reached: ${what} (${code}).`);
    expect(remedyForError(error)).toBe('elsewhere');
    if (retryable !== undefined) expect(error.retryable).toBe(retryable);
  },
);

test.each([
  ['http', 'Provider p speaks plain HTTP on this port; use http:// (base_url).'],
  ['https', 'Provider p speaks TLS on this port; use https:// (base_url).'],
] as const)('the wrong scheme (%s): the next target is asked at once', (speaks, words) => {
  const error = connectionError('p', new OtherScheme(speaks));
  expect([error.message, remedyForError(error), error.retryable]).toEqual([
    words,
    'elsewhere',
    false,
  ]);
});

// Bun's codes: of fetch where it was to speak HTTP/2, and of a handshake with a server that speaks nothing else.
const NO_PROTOCOL = 'SSL routines:OPENSSL_internal:TLSV1_ALERT_NO_APPLICATION_PROTOCOL';
test.each([
  ['does not speak HTTP/2 at this address; set providers.p.http2 to false', 'HTTP2Unsupported', ''],
  ['speaks HTTP/2 alone; set providers.p.http2 to true', 'EPROTO', NO_PROTOCOL],
])('the wrong version of HTTP: %s', (words, code, message) => {
  const error = connectionError('p', Object.assign(new Error(message), { code }));
  expect([error.message, remedyForError(error), error.retryable]).toEqual([
    `Provider p ${words}.`,
    'elsewhere',
    false,
  ]);
});

test('a limit is named', () => {
  const late = connectionError('p', new NotConnected(10_000));
  expect([late.kind, late.message]).toEqual([
    'timeout',
    'Provider p could not be reached within 10 s (timeouts.connect).',
  ]);
  const large = connectionError('p', new MalformedReply('more than 256 headers (limits.headers)'));
  expect([remedyForError(large), large.retryable]).toEqual(['next-target', false]);
  expect(large.message).toContain('limits.headers');
});

// As many as there may be are opened in a process of its own.
test('without a free descriptor, the error says so, claims no refused connection, and frees that of its client', async () => {
  const script = `
    import { openSync, closeSync } from 'node:fs';
    const { connectionError } = await import(${JSON.stringify(import.meta.resolve('../../src/upstream/connection-error.ts'))});
    const all = [];
    try { for (;;) all.push(openSync('/dev/null', 'r')); } catch {}
    const { message, headers } = connectionError('p', Object.assign(new Error('x'), { code: 'ECONNREFUSED' }));
    for (const one of all) closeSync(one);
    console.log(message, JSON.stringify(headers));
  `;
  const run = Bun.spawn(
    ['sh', '-c', 'ulimit -n 200; exec "$0" -e "$1"', process.execPath, script],
    {
      stdout: 'pipe',
      stderr: 'inherit',
    },
  );
  const said = await new Response(run.stdout).text();
  expect(said).toContain('EMFILE: the limit of this process');
  expect(said).toContain('{"connection":"close"}');
});
