/** Settings of keys, admin keys, shared budgets and tokens in the file: how they are read, and what is refused where. */

import { expect, test } from 'bun:test';
import { createHash } from 'node:crypto';
import { bad, good, PROVIDER, parse } from '../support.ts';

const file = (more: Record<string, unknown>) =>
  PROVIDER +
  Object.entries(more)
    .map(([key, value]) => `${key}: ${JSON.stringify(value)}\n`)
    .join('');
const key = (more: Record<string, unknown>) =>
  file({ auth: { keys: [{ name: 'ci', key: 'a-key-of-some-length', ...more }] } });
const paths = (text: string) => bad(text).map(({ path }) => path);

test('the settings of a key are read in the units of the program', () => {
  const [ci] = good(
    key({
      labels: { team: 'web' },
      models: ['glm/*'],
      expires: '2027-01-01',
      limits: { requests_per_minute: 60, concurrent: 8 },
      budgets: [
        { usd: 0.1, per: 'day' },
        { name: 'big', usd: 200, per: 'day', warn: [0.8, 0.5, 0.5], over: 'warn' },
      ],
    }),
  ).auth.keys;
  expect(ci).toMatchObject({
    labels: { team: 'web' },
    models: ['glm/*'],
    expires: Date.UTC(2027, 0, 1),
    limits: { requestsPerMinute: 60, concurrent: 8 },
    budgets: [
      { id: 'key:ci/per day', nanoUsd: 100_000_000, warn: [0.5, 0.8], timeZone: 'UTC' },
      { id: 'key:ci/big', nanoUsd: 200e9, warn: [0.5, 0.8], over: { action: 'warn' } },
    ],
  });
});

test.each<[Record<string, unknown>, string]>([
  [{ name: 'hk_mine' }, 'auth.keys[0].name'],
  [{ name: 'jwt:ann' }, 'auth.keys[0].name'],
  [{ expires: 'soon' }, 'auth.keys[0].expires'],
  [{ expires: '2027-02-30' }, 'auth.keys[0].expires'],
  [{ limits: { requests_per_minute: 0 } }, 'auth.keys[0].limits.requests_per_minute'],
  [{ labels: { 'a b': 'x' } }, 'auth.keys[0].labels.a b'],
  [{ budgets: [{ usd: 1, per: 'day', over: 'nowhere' }] }, 'auth.keys[0].budgets[0].over'],
  [
    {
      budgets: [
        { usd: 1, per: 'day' },
        { usd: 2, per: 'day' },
      ],
    },
    'auth.keys[0].budgets[1]',
  ],
  [{ models: Array.from({ length: 201 }, () => 'x') }, 'auth.keys[0].models'],
])('a key with %j is refused at %s', (more, path) => {
  expect(paths(key(more))).toEqual([path]);
});

test('an admin key that is also a key of clients is refused, plain or as a digest', () => {
  const client = 'a-key-of-some-length';
  const digest = `sha256:${createHash('sha256').update(client).digest('hex')}`;
  for (const admin of [client, digest]) {
    const text = file({ auth: { keys: [client], admin_keys: ['another-admin-key', admin] } });
    expect(paths(text)).toEqual(['auth.admin_keys[1]']);
  }
});

test('admin keys and tokens are reason enough to listen beyond this machine', () => {
  const jwt = { issuer: 'i', audience: 'a', jwks: '/etc/jwks.json' };
  for (const [auth, warned] of [
    [{}, true],
    [{ admin_keys: ['an-admin-key-1'] }, false],
    [{ jwt }, false],
  ] as const) {
    const result = parse(file({ listen: '0.0.0.0:5520', auth }));
    expect(result.ok && result.warnings.some(({ path }) => path === 'listen')).toBe(warned);
  }
});

test('shared budgets have a name of their own, a time zone, and routes that there are', () => {
  const budget = { name: 'web', keys: { team: 'web' }, usd: 200, per: 'month' };
  expect(
    good(file({ budgets: [{ ...budget, time_zone: 'Europe/Berlin' }] })).budgets,
  ).toMatchObject([
    {
      id: 'budget:web',
      keys: { team: 'web' },
      timeZone: 'Europe/Berlin',
      over: { action: 'refuse' },
    },
  ]);
  expect(paths(file({ budgets: [budget, budget] }))).toEqual(['budgets[1].name']);
  expect(paths(file({ budgets: [{ ...budget, time_zone: 'Berlin' }] }))).toEqual([
    'budgets[0].time_zone',
  ]);
  expect(paths(file({ budgets: [{ ...budget, over: 'cheap' }] }))).toEqual(['budgets[0].over']);
});

test('a key set over plain HTTP and algorithms with shared secrets are refused', () => {
  const jwt = (more: Record<string, unknown>) =>
    file({
      auth: { jwt: { issuer: 'i', audience: 'a', jwks: 'https://id.example/jwks', ...more } },
    });
  expect(paths(jwt({ jwks: 'http://id.example/jwks' }))).toEqual(['auth.jwt.jwks']);
  expect(paths(jwt({ algorithms: ['HS256'] }))).toEqual(['auth.jwt.algorithms[0]']);
  expect(good(jwt({ jwks: 'http://127.0.0.1:9/jwks' })).auth.jwt?.jwks).toEqual({
    url: 'http://127.0.0.1:9/jwks',
  });
});
