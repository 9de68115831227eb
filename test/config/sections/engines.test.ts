/** Addresses of shared engines: their forms, and what is wrong with others, without a word of their passwords. */

import { describe, expect, test } from 'bun:test';
import { secretsIn } from '../../../src/config/secret.ts';
import { bad, good, PROVIDER } from '../support.ts';

const file = (engines: object) => `${PROVIDER}engines: ${JSON.stringify(engines)}\n`;
const engines = (own: object, variables: Record<string, string> = {}) =>
  good(file(own), variables).engines;
const node = (host: string, port: number) => ({ host, port });

test('without engines there are none', () => {
  expect(good(PROVIDER).engines).toEqual({ onError: 'local', seal: [] });
});

describe('cache', () => {
  test.each([
    ['redis://h', { form: 'single', nodes: [node('h', 6379)], db: 0, tls: false }],
    ['rediss://h:1/3', { form: 'single', nodes: [node('h', 1)], db: 3, tls: true }],
    ['redis://[::1]:7', { form: 'single', nodes: [node('::1', 7)], db: 0, tls: false }],
    [
      'redis+sentinel://a,b:2/main/1',
      {
        form: 'sentinel',
        nodes: [node('a', 26379), node('b', 2)],
        master: 'main',
        db: 1,
        tls: false,
      },
    ],
    [
      'rediss+cluster://a:1,b:2?ca_file=/ca.pem',
      { form: 'cluster', nodes: [node('a', 1), node('b', 2)], db: 0, tls: true, caFile: '/ca.pem' },
    ],
  ])('%s', (cache, expected) => {
    expect(engines({ cache }).cache).toEqual(expected as never);
  });

  test('the password of the sentinels, which prints as stars', () => {
    const { cache } = engines({ cache: 'redis+sentinel://h/main?sentinel_password=p%40ss' });
    expect(cache?.sentinelPassword?.reveal()).toBe('p@ss');
    expect(JSON.stringify(cache)).not.toContain('p@ss');
  });

  test('user and password, with marks in them', () => {
    const { cache } = engines({ cache: 'redis://me:p%40ss%2Fword@h:6379' });
    expect(cache!.username).toBe('me');
    expect(cache!.password!.reveal()).toBe('p@ss/word');
    expect(engines({ cache: 'redis://:only@h' }).cache!.username).toBeUndefined();
  });

  test.each([
    'http://h',
    'redis://',
    'redis://a,b',
    'redis+sentinel://a:1',
    'redis://h/x',
    'redis://h:99999',
    'redis+cluster://a/1',
  ])('%s is a problem', (cache) => {
    expect(bad(file({ cache })).map((one) => one.path)).toEqual(['engines.cache']);
  });
});

test('database: a whole URL, whose password is masked', () => {
  const text = 'postgres://me:long-password@h:1/db?sslmode=require';
  const { database } = engines({ database: text });
  expect(database!.url.reveal()).toBe(text);
  expect(secretsIn(database)).toContain('long-password');
  for (const wrong of ['mysql://h/db', 'postgres://h', 'postgres://h:x/db']) {
    const [problem] = bad(file({ database: wrong }));
    expect(problem!.path).toBe('engines.database');
  }
});

describe('objects', () => {
  test('with a key of the environment or of the address', () => {
    const variables = { AWS_ACCESS_KEY_ID: 'id', AWS_SECRET_ACCESS_KEY: 'secret' };
    const { objects } = engines({ objects: 's3://b/p/q?region=eu-west-1' }, variables);
    expect(objects).toMatchObject({
      bucket: 'b',
      prefix: 'p/q/',
      region: 'eu-west-1',
      endpoint: 'https://s3.eu-west-1.amazonaws.com',
      accessKeyId: 'id',
    });
    const own = engines({ objects: 's3://k:s%2F@b?endpoint=http://127.0.0.1:9000/' }).objects!;
    expect([own.accessKeyId, own.secretAccessKey.reveal()]).toEqual(['k', 's/']);
    expect([own.endpoint, own.prefix]).toEqual(['http://127.0.0.1:9000', '']);
  });

  test.each(['s3://b', 'http://b', 's3://k:s@b?endpoint=h:1'])('%s is a problem', (objects) => {
    expect(bad(file({ objects })).map((one) => one.path)).toEqual(['engines.objects']);
  });
});

test('no problem quotes a password', () => {
  for (const name of ['cache', 'database', 'objects']) {
    for (const address of [
      'redis://u:hunter22@',
      'postgres://u:hunter22@h:x/',
      's3://u:hunter22@',
    ]) {
      const problems = bad(file({ [name]: address }));
      expect(JSON.stringify(problems)).not.toContain('hunter22');
    }
  }
});

test('on_error is one of three words', () => {
  expect(engines({ on_error: 'closed' }).onError).toBe('closed');
  expect(bad(file({ on_error: 'maybe' }))[0]!.path).toBe('engines.on_error');
});

test('a short secret for sealing is a problem, and is not quoted', () => {
  const problems = JSON.stringify(bad(file({ seal: ['too short'] })));
  expect(problems).toContain('must have at least 32 characters');
  expect(problems).not.toContain('too short');
});
