/** Which hosts count as this machine and as its own network, and which only look like it. */

import { describe, expect, test } from 'bun:test';
import fc from 'fast-check';
import { isLocalNetwork, isLoopback } from '../../../src/lib/http/local-address.ts';

const LOOPBACK = [
  '127.0.0.1',
  '127.9.9.9',
  '127.255.255.255',
  '::1',
  '[::1]',
  '0:0:0:0:0:0:0:1',
  '::ffff:127.0.0.1',
  '::FFFF:127.1.2.3',
  '[::ffff:7f00:1]',
  'localhost',
  'LOCALHOST',
  'localhost.',
  'app.localhost',
  'a.b.localhost',
];

const LOCAL_NETWORK = [
  '10.0.0.1',
  '172.16.0.1',
  '172.31.255.255',
  '192.168.1.1',
  '169.254.0.1',
  '::ffff:192.168.1.1',
  'fd00::1',
  '[fe80::1]',
  'nas',
  'nas.local',
  'models.lan',
  'models.internal',
];

const ELSEWHERE = [
  '',
  '0.0.0.0',
  '[::]',
  '::',
  '128.0.0.1',
  '172.32.0.1',
  '192.169.0.1',
  '::ffff:8.8.8.8',
  '::2',
  '2001:4860:4860::8888',
  // Names that begin or end like a local one.
  '127.0.0.1.example',
  '127.example.com',
  '127.0.0.1.nip.io',
  'localhost.example',
  'evillocalhost.example',
  'mylocal.example',
  // Spellings that some readers take for another address.
  '127.0.0.256',
  '0127.0.0.1',
];

describe('isLoopback', () => {
  test.each(LOOPBACK)('%s is this machine', (host) => expect(isLoopback(host)).toBe(true));
  test.each([...LOCAL_NETWORK, ...ELSEWHERE])('"%s" is another machine', (host) =>
    expect(isLoopback(host)).toBe(false),
  );
  test('every address of 127.0.0.0/8 counts, in each of its spellings', () => {
    const byte = fc.integer({ min: 0, max: 255 });
    fc.assert(
      fc.property(byte, byte, byte, (a, b, c) => {
        const address = `127.${a}.${b}.${c}`;
        for (const host of [address, `::ffff:${address}`, `[::ffff:${address}]`]) {
          expect(isLoopback(host)).toBe(true);
        }
        expect(isLoopback(new URL(`http://[::ffff:${address}]/`).hostname)).toBe(true);
      }),
    );
  });
  test('a name that only ends in the letters of localhost is another machine', () => {
    expect(isLoopback('evillocalhost')).toBe(false);
  });
});

describe('isLocalNetwork', () => {
  test.each([...LOOPBACK, ...LOCAL_NETWORK])('%s is near', (host) =>
    expect(isLocalNetwork(host)).toBe(true),
  );
  test.each(ELSEWHERE)('"%s" is elsewhere', (host) => expect(isLocalNetwork(host)).toBe(false));
});
