/** What happens after a refusal: remedies, delays, keys, headers, slots. */

import { describe, expect, test } from 'bun:test';
import fc from 'fast-check';
import { GatewayError } from '../../src/conversation/errors.ts';
import { FlatHeaders } from '../../src/lib/http/headers.ts';
import { remedyForError, remedyForStatus, retryDelay } from '../../src/upstream/classify.ts';
import { ConcurrencyLimit } from '../../src/upstream/concurrency-limit.ts';
import { KeyRing } from '../../src/upstream/key-ring.ts';
import { UpstreamHeaders, upstreamHeaders } from '../../src/upstream/request-headers.ts';

const key = (text: string) => ({ reveal: () => text });
const limits = (ms: number) => ({ limits: { askedMs: ms, longestMs: ms } });
const refused = (askedMs: number) => ({ reason: 'key_refused', status: 401, askedMs }) as const;
const error = (kind: ConstructorParameters<typeof GatewayError>[0]) => new GatewayError(kind, 'x');

describe('what a refusal means', () => {
  test.each([
    [500, 'upstream', 'again'],
    [503, 'overloaded', 'again'],
    [529, 'overloaded', 'again'],
    [408, 'timeout', 'again'],
    [429, 'rate_limit', 'again'],
    [429, 'quota', 'next-key'],
    [401, 'authentication', 'next-key'],
    [402, 'billing', 'next-key'],
    [404, 'not_found', 'next-target'],
    [301, 'upstream', 'next-target'],
    [308, 'upstream', 'next-target'],
    [400, 'invalid_request', 'never'],
    [400, 'context_overflow', 'wider'],
    [500, 'context_overflow', 'wider'],
    [413, 'too_large', 'wider'],
    [500, 'invalid_request', 'never'],
  ] as const)('%i %s → %s', (status, kind, remedy) => {
    expect(remedyForStatus(status, error(kind), new Headers())).toBe(remedy);
  });

  test("the vendor's own word against a retry wins over a 429", () => {
    const headers = new Headers({ 'x-should-retry': 'false' });
    expect(remedyForStatus(429, error('rate_limit'), headers)).toBe('never');
  });

  test('an error inside a 200 is judged by its kind', () => {
    const vendors = new GatewayError('overloaded', 'x', { fromUpstream: true });
    expect(remedyForError(vendors)).toBe('again');
    expect(remedyForError(error('invalid_request'))).toBe('never');
    expect(remedyForError(new GatewayError('upstream', 'x', { retryable: false }))).toBe('never');
  });

  test.each(['rate_limit', 'overloaded'] as const)(
    '%s of the gateway itself is told at once, whatever it says of later',
    (kind) => {
      const own = new GatewayError(kind, 'x', { retryAfter: 5, retryable: true });
      expect(remedyForError(own)).toBe('never');
    },
  );

  test('retry-after is obeyed exactly up to the bound and handed to the client beyond it', () => {
    expect(retryDelay(1, 2, 500, 8000)).toBe(2000);
    expect(retryDelay(1, 60, 500, 8000)).toBeUndefined();
    for (let attempt = 1; attempt < 12; attempt++) {
      const delay = retryDelay(attempt, undefined, 500, 8000)!;
      const full = Math.min(500 * 2 ** (attempt - 1), 8000);
      expect(delay).toBeGreaterThanOrEqual(full / 2);
      expect(delay).toBeLessThanOrEqual(full);
    }
  });
});

describe('keys', () => {
  test('are used in turn; one that was refused rests, at most the longest time', () => {
    const ring = new KeyRing([key('a'), key('b')], limits(1000));
    const first = ring.leaseAny();
    expect([first.text, ring.leaseAny().text, ring.leaseAny().text]).toEqual(['a', 'b', 'a']);
    first.settle(refused(1_000_000), ring.now);
    expect([ring.leaseAny().text, ring.leaseAny().text]).toEqual(['b', 'b']);
    expect(ring.available(ring.now + 1001)).toBe(2);
  });

  test('when all rest, the one due first is tried rather than none', () => {
    const ring = new KeyRing([key('a'), key('b')], limits(10_000));
    ring.leaseAny().settle(refused(9000), ring.now);
    ring.leaseAny().settle(refused(3000), ring.now);
    expect(ring.leaseAny().text).toBe('b');
    expect(new KeyRing([], limits(0)).leaseAny().text).toBeUndefined();
  });
});

describe('headers to an upstream', () => {
  const client = new Headers({
    authorization: 'Bearer gateway-key',
    'x-api-key': 'gateway-key',
    cookie: 'a=b',
    host: 'me',
    'anthropic-beta': 'new-thing-2027-01-01',
    'anthropic-unheard-of': '1',
    'x-hopgate-x': '1',
    'x-forwarded-for': '10.0.0.1',
    connection: 'keep-alive',
  });
  const options = {
    client,
    protocol: 'anthropic-messages',
    auth: 'x-api-key',
    key: 'vendor-key',
    stream: true,
    extra: { 'X-Org': { reveal: () => 'o' } },
  } as const;

  test("on the same protocol every vendor header goes along, the client's credentials never do", () => {
    const sent = upstreamHeaders({ ...options, sameProtocol: true });
    expect(sent.get('anthropic-beta')).toBe('new-thing-2027-01-01');
    expect(sent.get('anthropic-unheard-of')).toBe('1');
    expect(sent.get('x-api-key')).toBe('vendor-key');
    expect(sent.get('x-org')).toBe('o');
    expect(JSON.stringify([...sent])).not.toContain('gateway-key');
    for (const name of ['cookie', 'host', 'connection', 'x-forwarded-for', 'x-hopgate-x']) {
      expect(sent.has(name)).toBe(false);
    }
  });

  test('a client that sends other fields than before never gets what was made for another', () => {
    const fields = fc.dictionary(
      fc.constantFrom(
        'anthropic-beta',
        'x-session-id',
        'accept',
        'authorization',
        'cookie',
        'x-api-key',
      ),
      fc.constantFrom('a', 'b', 'c'),
    );
    const asked = fc.record({
      fields,
      key: fc.constantFrom('key-1', 'key-2'),
      stream: fc.boolean(),
      sameProtocol: fc.boolean(),
    });
    fc.assert(
      fc.property(fc.array(asked, { minLength: 1, maxLength: 40 }), (all) => {
        const upstream = new UpstreamHeaders();
        for (const { fields: sent, ...rest } of all) {
          const wanted = { ...options, ...rest, client: FlatHeaders.of(sent) };
          expect([...upstream.of(wanted)]).toEqual([...upstreamHeaders(wanted)]);
        }
      }),
    );
  });

  test('the same fields get the very same list, whatever credentials and lengths they come with', () => {
    const upstream = new UpstreamHeaders();
    const from = (fields: Record<string, string>) =>
      upstream.of({ ...options, sameProtocol: true, client: FlatHeaders.of(fields) });
    const first = from({ host: 'a', 'x-session-id': '1', 'content-length': '10', cookie: 'a' });
    expect(from({ 'content-length': '99', 'x-session-id': '1', authorization: 'b' })).toBe(first);
    expect(from({ 'x-session-id': '2' })).not.toBe(first);
    expect(from({})).not.toBe(first);
    expect(from({ 'x-session-id': '1' })).toBe(first);
  });

  test.each([
    ['X-Title', ['x-session-id']],
    ['keep-alive, x-title , X-Session-Id', []],
    ['close,,x-session-id', ['x-title']],
    ['Keep-Alive', ['x-title', 'x-session-id']],
    ['close', ['x-title', 'x-session-id']],
  ])(
    'fields that the client meant for this hop (Connection: %s) go no further',
    (connection, left) => {
      const upstream = new UpstreamHeaders();
      const fields = { 'x-title': '1', 'x-session-id': '1' };
      const names = (client: FlatHeaders) =>
        [...upstream.of({ ...options, sameProtocol: true, client })]
          .map(([name]) => name)
          .filter((name) => name in fields || name === 'connection');
      const named = FlatHeaders.of({ ...fields, connection });
      expect(names(named)).toEqual(left);
      // Neither list is taken for the other's.
      expect(names(FlatHeaders.of(fields))).toEqual(['x-title', 'x-session-id']);
      expect(names(named)).toEqual(left);
      expect(names(FlatHeaders.of({ 'x-session-id': '1' }))).toEqual(['x-session-id']);
      expect(names(named)).toEqual(left);
    },
  );

  test('what is ours to say goes out though the client’s Connection names it', () => {
    const connection = 'x-api-key, content-type, anthropic-version, x-org';
    const client = FlatHeaders.of({ connection });
    const sent = upstreamHeaders({ ...options, sameProtocol: true, client });
    expect(sent.get('x-api-key')).toBe('vendor-key');
    expect(sent.get('content-type')).toBe('application/json');
    expect(sent.get('anthropic-version')).toBe('2023-06-01');
    expect(sent.get('x-org')).toBe('o');
  });

  test('another protocol gets only what is ours to say', () => {
    const sent = upstreamHeaders({ ...options, sameProtocol: false });
    expect(sent.has('anthropic-beta')).toBe(false);
    expect(sent.get('anthropic-version')).toBe('2023-06-01');
  });
});

describe('slots', () => {
  test('the limit holds, waiters enter in order, one who leaves the line is skipped', async () => {
    const slots = new ConcurrencyLimit(1);
    const open = new AbortController();
    const first = slots.take(open) as () => void;
    const leaving = new AbortController();
    const second = slots.take(leaving) as Promise<() => void>;
    const third = slots.take(open) as Promise<() => void>;
    leaving.abort(new Error('gone'));
    expect(
      await second.then(
        () => 'in',
        () => 'out',
      ),
    ).toBe('out');
    first();
    first();
    const give = await third;
    give();
    expect(typeof slots.take(open)).toBe('function');
  });
});
