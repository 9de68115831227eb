/** The client behind trusted proxies: what a client writes itself is never believed. */

import { describe, expect, test } from 'bun:test';
import fc from 'fast-check';
import {
  ClientAddresses,
  clientOrigin,
  publicOrigin,
} from '../../../src/lib/http/client-address.ts';
import { FlatHeaders } from '../../../src/lib/http/headers.ts';
import { parseBlock } from '../../../src/lib/http/public-address.ts';

const TRUSTED = ['10.0.0.0/8', '127.0.0.1', 'fd00::/8'].map((text) => parseBlock(text)!);

const origin = (peer: string, headers: Record<string, string>) =>
  clientOrigin(peer, FlatHeaders.from(new Headers(headers)), TRUSTED);

describe('a peer that is not trusted', () => {
  test.each<[string, Record<string, string>]>([
    ['X-Forwarded-For', { 'x-forwarded-for': '10.0.0.1' }],
    ['Forwarded', { forwarded: 'for=10.0.0.1;proto=https;host=a.example' }],
    ['host and protocol', { 'x-forwarded-host': 'a.example', 'x-forwarded-proto': 'https' }],
  ])('is the client, whatever %s says', (_, headers) => {
    expect(origin('203.0.113.7', headers)).toEqual({ address: '203.0.113.7' });
    expect(origin('::ffff:203.0.113.7', headers)).toEqual({ address: '203.0.113.7' });
  });
});

describe('a trusted peer', () => {
  test.each<[string, Record<string, string>, object]>([
    ['one proxy', { 'x-forwarded-for': '203.0.113.7' }, { address: '203.0.113.7' }],
    ['two proxies', { 'x-forwarded-for': '203.0.113.7, 10.1.1.1' }, { address: '203.0.113.7' }],
    [
      'what the client wrote stands further left',
      { 'x-forwarded-for': '10.9.9.9, 127.0.0.1, 203.0.113.7, 10.1.1.1' },
      { address: '203.0.113.7' },
    ],
    [
      'ports, IPv6 and IPv4 in IPv6',
      { 'x-forwarded-for': '[2001:db8::17]:4711, [fd00::1]:80, ::ffff:10.0.0.2, 10.0.0.3:99' },
      { address: '2001:db8::17' },
    ],
    [
      'an address that is none',
      { 'x-forwarded-for': '203.0.113.7, unknown' },
      { address: '10.0.0.1' },
    ],
    [
      'protocol and host beside one address',
      {
        'x-forwarded-for': '203.0.113.7',
        'x-forwarded-proto': 'https',
        'x-forwarded-host': 'GW.example:8443',
      },
      { address: '203.0.113.7', scheme: 'https', host: 'gw.example:8443' },
    ],
    [
      'lists of equal length go together',
      { 'x-forwarded-for': '203.0.113.7, 10.1.1.1', 'x-forwarded-proto': 'https, http' },
      { address: '203.0.113.7', scheme: 'https' },
    ],
    [
      'a host that could mean more in a URL is left out',
      { 'x-forwarded-host': 'a.example/x?y', 'x-forwarded-proto': 'javascript' },
      { address: '10.0.0.1' },
    ],
    [
      'Forwarded, quoted and in any case',
      { forwarded: 'For="[2001:db8::17]:4711";Proto=HTTPS;host="gw.example:8443", for=10.2.2.2' },
      { address: '2001:db8::17', scheme: 'https', host: 'gw.example:8443' },
    ],
    ['Forwarded that is broken', { forwarded: 'for="203.0.113.7' }, { address: '10.0.0.1' }],
    ['a name twice', { forwarded: 'for=203.0.113.7;for=203.0.113.8' }, { address: '10.0.0.1' }],
    [
      'both, and they agree',
      {
        forwarded: 'for=203.0.113.7;proto=https',
        'x-forwarded-for': '203.0.113.7',
        'x-forwarded-host': 'gw.example',
      },
      { address: '203.0.113.7', scheme: 'https', host: 'gw.example' },
    ],
    [
      'both, and one is the client’s own',
      { forwarded: 'for=198.51.100.1', 'x-forwarded-for': '203.0.113.7' },
      { address: '10.0.0.1' },
    ],
  ])('%s', (_, headers, expected) => {
    expect(JSON.parse(JSON.stringify(origin('10.0.0.1', headers)))).toEqual(expected);
  });

  test('nothing that a client writes before its own address changes the result', () => {
    const written = fc.constantFrom(
      '10.0.0.1',
      '198.51.100.9',
      'unknown',
      '',
      '"',
      'x;y=z',
      '127.0.0.1',
    );
    fc.assert(
      fc.property(fc.array(written), (list) => {
        const chain = [...list, '203.0.113.7', '10.1.1.1'].join(', ');
        expect(origin('10.0.0.1', { 'x-forwarded-for': chain }).address).toBe('203.0.113.7');
      }),
    );
  });

  test('any text gives an address and never throws', () => {
    fc.assert(
      fc.property(fc.string(), fc.string(), (a, b) => {
        const headers = {
          forwarded: a.replace(/[^\t\x20-\x7e]/g, ''),
          'x-forwarded-for': b.replace(/[^\t\x20-\x7e]/g, ''),
        };
        expect(origin('10.0.0.1', headers).address).toMatch(/^[0-9a-f.:]+$/);
      }),
    );
  });
});

describe('addresses are asked for only where they say something', () => {
  const headers = {
    'x-forwarded-for': '203.0.113.7',
    'x-forwarded-proto': 'https',
    'x-forwarded-host': 'gw.example',
  };
  let asked = 0;
  const peers = {
    peerOf: () => {
      asked++;
      return '127.0.0.1';
    },
  };
  const request = () =>
    new Request('http://127.0.0.1:5520/ui/?a=b', {
      headers: { ...headers, host: '127.0.0.1:5520' },
    });

  test('on loopback without proxies there is nothing to say', () => {
    const addresses = new ClientAddresses(peers, { host: '127.0.0.1' });
    expect(addresses.of(request())).toBeUndefined();
    const one = request();
    addresses.restore(one);
    expect([one.url, asked]).toEqual(['http://127.0.0.1:5520/ui/?a=b', 0]);
  });

  test('on an address that other machines reach, it is the peer', () => {
    const addresses = new ClientAddresses(peers, { host: '0.0.0.0' });
    expect(addresses.of(request())).toBe('127.0.0.1');
    expect(addresses.direct).toBe(true);
  });

  test('a request by TLS keeps its path readable for the router, and its origin for links', () => {
    const addresses = new ClientAddresses(peers, { host: '127.0.0.1' });
    const one = new Request('https://a:5520/ui/x?y', { headers: { host: 'a:5520' } });
    addresses.restore(one);
    expect([one.url, publicOrigin(one)]).toEqual(['http://a:5520/ui/x?y', 'https://a:5520']);
    const plain = new Request('http://a:5520/ui/x?y');
    expect(publicOrigin(plain)).toBe('http://a:5520');
  });

  test('behind a trusted proxy, a request gets the URL and the Host that its client asked for', () => {
    const addresses = new ClientAddresses(peers, {
      host: '127.0.0.1',
      trustedProxies: ['127.0.0.1'],
    });
    const one = request();
    expect(addresses.of(one)).toBe('203.0.113.7');
    addresses.restore(one);
    expect([one.url, one.headers.get('host'), publicOrigin(one)]).toEqual([
      'http://gw.example/ui/?a=b',
      'gw.example',
      'https://gw.example',
    ]);
    addresses.configure({ host: '127.0.0.1' });
    expect(addresses.of(one)).toBeUndefined();
  });
});
