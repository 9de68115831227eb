/** What is told of an exchange in the log: the cause of what fails inside, and no more than that. */

import { expect, test } from 'bun:test';
import { refusedRecord } from '../../src/app/exchange-log.ts';
import { asGatewayError, GatewayError } from '../../src/conversation/errors.ts';
import { WITHOUT_KEY } from '../../src/keys/principal.ts';
import { logExchange } from '../../src/telemetry/exchange.ts';
import { createLog } from '../../src/telemetry/log.ts';
import { refusedKeys } from '../../src/upstream/refused-keys.ts';
import { PROTOCOLS } from '../gateway/scripted.ts';

function lineOf(error: GatewayError, ms = 0): Record<string, unknown> {
  const lines: string[] = [];
  const log = createLog({ format: 'json', write: (line) => lines.push(line) });
  const request = new Request('http://gateway.test/v1/messages');
  const protocol = PROTOCOLS['openai-chat'];
  logExchange(log, refusedRecord(request, protocol, 'req_1', error, WITHOUT_KEY, undefined, ms));
  return JSON.parse(lines[0]!);
}

test('what failed inside is told with its place, credentials masked, and not at any length', () => {
  const thrown = new TypeError(
    `no such member, sk-ant-api03-${'aB3'.repeat(20)} ${'x'.repeat(5000)}`,
  );
  const line = lineOf(asGatewayError(thrown));
  expect(line.error).toBe('internal');
  expect(line.error_message).toBe('The gateway failed to handle this request.');
  expect(line.error_cause).toStartWith('TypeError: no such member, ');
  expect(String(line.error_cause)).toContain('exchange-log.test.ts');
  expect(String(line.error_cause)).not.toContain('aB3aB3');
  expect(String(line.error_cause).length).toBeLessThan(700);
});

test('whatever was thrown is no reason to fail', () => {
  for (const thrown of [
    'a text',
    null,
    5,
    { a: 1 },
    Object.assign(new Error('x'), { stack: undefined }),
  ]) {
    expect(typeof (lineOf(asGatewayError(thrown)).error_cause ?? '')).toBe('string');
  }
});

test('the cause of a vendor’s failure is in its message', () => {
  const line = lineOf(
    new GatewayError('upstream', 'It broke off.', { cause: new Error('ECONNRESET') }),
  );
  expect(line.error_cause).toBeUndefined();
});

test('a refused key is logged once a minute, each by itself', () => {
  const told: string[] = [];
  let now = 0;
  const tell = refusedKeys(
    (...all) => told.push(all.join(' ')),
    () => now,
  );
  for (let i = 0; i < 100; i++) {
    tell('a', 'key-000001', 401);
    tell('a', 'key-000002', 401);
    now += 1000;
  }
  expect(told).toEqual([
    'a key-000001 401',
    'a key-000002 401',
    'a key-000001 401',
    'a key-000002 401',
  ]);
});

test('a request that did not become an exchange has the time that it took, and no hop', () => {
  const line = lineOf(new GatewayError('too_large', 'Too much.'), 1234.5);
  expect(line).toMatchObject({ status: 413, timings: { total: 1234.5 }, hops: 0 });
});
