/** The address guard: whatever the spelling, what is not public is seen to be so. */

import { describe, expect, test } from 'bun:test';
import fc from 'fast-check';
import {
  checkAddresses,
  inBlock,
  isPublicAddress,
  parseAddress,
  parseBlock,
  parseExceptions,
  RefusedAddress,
  urlHost,
} from '../../../src/lib/http/public-address.ts';

const NONE = parseExceptions([]);
const runs = { numRuns: 300 };
const byte = fc.integer({ min: 0, max: 255 });

const privateV4 = fc.oneof(
  fc.tuple(fc.constantFrom(0, 10, 127), byte, byte, byte),
  fc.tuple(fc.constant(100), fc.integer({ min: 64, max: 127 }), byte, byte),
  fc.tuple(fc.constant(169), fc.constant(254), byte, byte),
  fc.tuple(fc.constant(172), fc.integer({ min: 16, max: 31 }), byte, byte),
  fc.tuple(fc.constant(192), fc.constant(168), byte, byte),
  fc.tuple(fc.integer({ min: 224, max: 255 }), byte, byte, byte),
);
const anyV4 = fc.oneof(privateV4, fc.tuple(byte, byte, byte, byte));

const base = (value: number, radix: number) =>
  radix === 16 ? `0x${value.toString(16)}` : radix === 8 ? `0${value.toString(8)}` : `${value}`;
const radix = fc.constantFrom(8, 10, 16);

/** An address in one of the ways that inet_aton and browsers take. */
const spelt = privateV4.chain((v4) =>
  fc
    .tuple(fc.integer({ min: 1, max: 4 }), fc.array(radix, { minLength: 4, maxLength: 4 }))
    .map(([parts, radices]) => {
      const [a, b, c, d] = v4;
      const last = [((a * 256 + b) * 256 + c) * 256 + d, (b * 256 + c) * 256 + d, c * 256 + d, d];
      const numbers = [...v4.slice(0, parts - 1), last[parts - 1]!];
      return numbers.map((number, index) => base(number, radices[index]!)).join('.');
    }),
);
const disguised = fc
  .tuple(spelt, fc.constantFrom('', '.', '%2E'), fc.integer({ min: 0, max: 3 }))
  .map(([text, tail, how]) => {
    const wide = [...text].map((c) =>
      /\d/.test(c) ? String.fromCharCode(c.charCodeAt(0) + 0xfee0) : c,
    );
    const percent = [...text].map((c) => `%${c.charCodeAt(0).toString(16)}`);
    return [text, wide.join(''), percent.join(''), text.replaceAll('.', '\u3002')][how]! + tail;
  });

describe('addresses', () => {
  test('no spelling of a private IPv4 address passes', () => {
    fc.assert(
      fc.property(disguised, fc.constantFrom('http', 'https'), (host, scheme) => {
        const { host: seen } = urlHost(`${scheme}://${host}/x`);
        expect(parseAddress(seen)).toHaveLength(4);
        expect(isPublicAddress(seen)).toBe(false);
      }),
      runs,
    );
  });

  test('an IPv6 form that leads to an IPv4 address is as public as that one', () => {
    const hex = (a: number, b: number) => ((a << 8) | b).toString(16);
    fc.assert(
      fc.property(anyV4, ([a, b, c, d]) => {
        const plain = isPublicAddress(`${a}.${b}.${c}.${d}`);
        const tail = `${hex(a, b)}:${hex(c, d)}`;
        for (const text of [
          `::ffff:${a}.${b}.${c}.${d}`,
          `::ffff:${tail}`,
          `64:ff9b::${tail}`,
          `2002:${tail}::1`,
          `2a00:1450::5efe:${tail}`,
          `2a00:1450::200:5efe:${tail}`,
        ]) {
          expect([text, isPublicAddress(text)]).toEqual([text, plain]);
          const seen = urlHost(`http://[${text}]/`).host;
          expect([seen, isPublicAddress(seen)]).toEqual([seen, plain]);
        }
      }),
      runs,
    );
  });

  test('any spelling of an IPv6 address has the bytes that a URL parser gives it', () => {
    fc.assert(
      fc.property(fc.ipV6(), (text) => {
        expect(parseAddress(text)).toHaveLength(16);
        // Bun's URL parser refuses some legal spellings with an IPv4 tail: `::1:0:0:0:1.2.3.4`.
        fc.pre(URL.canParse(`http://[${text}]/`));
        const seen = urlHost(`http://[${text}]/`).host;
        expect(parseAddress(text)).toEqual(parseAddress(seen)!);
      }),
      runs,
    );
  });

  test('what is no address is never public, and never throws', () => {
    fc.assert(
      fc.property(
        fc.oneof(fc.string(), fc.domain(), fc.stringMatching(/^[0-9a-f:.%x[\]]*$/)),
        (text) => {
          if (parseAddress(text) === undefined) expect(isPublicAddress(text)).toBe(false);
        },
      ),
      runs,
    );
  });

  test.each([
    '127.0.0.1',
    '10.0.0.1',
    '0.0.0.0',
    '169.254.169.254',
    '168.63.129.16',
    '100.100.100.200',
    '192.0.0.192',
    '255.255.255.255',
    '224.0.0.1',
    '198.18.0.1',
    '::',
    '::1',
    'fe80::1',
    'fc00::1',
    'fd00:ec2::254',
    'ff02::1',
    '::127.0.0.1',
    '::ffff:0:127.0.0.1',
    '64:ff9b:1::1',
    '2001::1',
    '2001:db8::1',
    '3fff::1',
    '2002:7f00:1::',
    '100::1',
    '5f00::1',
    '127.1',
    '0177.0.0.1',
    '1.2.3',
    'fe80::1%eth0',
    '1.2.3.4.5',
    '1::2::3',
    ':::',
    '1:2:3:4:5:6:7:8:9',
    '::ffff:1.2.3.4:5',
    '',
  ])('%s is not public', (text) => {
    expect(isPublicAddress(text)).toBe(false);
  });

  test.each([
    '1.1.1.1',
    '8.8.8.8',
    '172.15.0.1',
    '172.32.0.1',
    '100.63.255.255',
    '100.128.0.0',
    '169.253.1.1',
    '2606:4700:4700::1111',
    '2a00:1450:4001::200e',
    '::ffff:8.8.8.8',
    '64:ff9b::8.8.8.8',
  ])('%s is public', (text) => {
    expect(isPublicAddress(text)).toBe(true);
  });

  test('a block holds exactly the addresses with its first bits', () => {
    const value = (bytes: readonly number[]) => bytes.reduce((n, b) => n * 256n + BigInt(b), 0n);
    fc.assert(
      fc.property(fc.ipV4(), fc.ipV4(), fc.integer({ min: 0, max: 32 }), (a, b, bits) => {
        const same =
          value(parseAddress(a)!) >> BigInt(32 - bits) ===
          value(parseAddress(b)!) >> BigInt(32 - bits);
        expect(inBlock(parseAddress(a)!, parseBlock(`${b}/${bits}`)!)).toBe(same);
      }),
      runs,
    );
    expect(inBlock(parseAddress('::1')!, parseBlock('0.0.0.0/0')!)).toBe(false);
    expect(parseBlock('10.0.0.0/33')).toBeUndefined();
    expect(parseBlock('10.0.0.0/')).toBeUndefined();
  });
});

describe('URLs', () => {
  test.each([
    'ftp://example.com/',
    'file:///etc/passwd',
    'gopher://example.com/',
    'javascript:alert(1)',
    'data:text/html,x',
    'http://user@example.com/',
    'http://a:b@example.com/',
    'http://',
    'nonsense',
    '//example.com/x',
    'http://[::1%25eth0]/',
    'http://[fe80::1%eth0]/',
    'http://256.256.256.256/',
    'http://1.2.3.4.5/',
    'http://exa mple.com/',
  ])('%s is refused before anything is looked up', (text) => {
    expect(() => urlHost(text)).toThrow(RefusedAddress);
  });

  test('an endless URL is refused', () => {
    expect(() => urlHost(`http://example.com/${'x'.repeat(9000)}`)).toThrow(RefusedAddress);
  });

  test('a host comes out in one spelling', () => {
    expect(urlHost('HTTP://Example.COM.:8080/x')).toMatchObject({
      host: 'example.com',
      port: 8080,
    });
    expect(urlHost('https://[::FFFF:7f00:1]/').host).toBe('::ffff:7f00:1');
    expect(urlHost('/y', 'https://example.com/x').url.href).toBe('https://example.com/y');
    expect(urlHost('//127.0.0.1/', 'https://example.com/x').host).toBe('127.0.0.1');
  });
});

describe('what a name leads to', () => {
  const check = (url: string, addresses: string[], ...listed: string[]) =>
    checkAddresses(urlHost(url), addresses, parseExceptions(listed));

  test('one private address among public ones is enough to refuse', () => {
    expect(() => check('http://a.test/', ['1.1.1.1', '10.0.0.1'])).toThrow(RefusedAddress);
    expect(() => check('http://a.test/', ['1.1.1.1', '::1'])).toThrow(RefusedAddress);
    expect(() => check('http://a.test/', [])).toThrow(RefusedAddress);
    check('http://a.test/', ['1.1.1.1', '2606:4700::1']);
  });

  test('only what the operator lists is excepted', () => {
    check('http://a.test:8080/', ['10.0.0.1'], 'a.test');
    check('http://a.test:8080/', ['10.0.0.1'], 'A.test.:8080');
    check('http://a.test/', ['10.0.0.1'], '10.0.0.0/8');
    check('http://a.b.test/', ['10.0.0.1'], '*.b.test');
    check('http://[::1]:81/', ['::1'], '[::1]:81');
    check('http://127.0.0.1:81/', ['127.0.0.1'], '127.0.0.1:81');
    expect(() => check('http://a.test:81/', ['10.0.0.1'], 'a.test:8080')).toThrow(RefusedAddress);
    expect(() => check('http://xa.test/', ['10.0.0.1'], 'a.test')).toThrow(RefusedAddress);
    expect(() => check('http://b.test/', ['10.0.0.1'], '*.b.test')).toThrow(RefusedAddress);
    expect(() => check('http://127.0.0.1:82/', ['127.0.0.1'], '127.0.0.1:81')).toThrow();
    expect(() => check('http://a.test/', ['::ffff:10.0.0.1'], '10.0.0.0/8')).toThrow();
  });

  test('ports of other services are refused, listed ones pass', () => {
    for (const port of [22, 25, 110, 445, 6667]) {
      expect(() => check(`http://a.test:${port}/`, ['1.1.1.1'])).toThrow(/not a port of the web/);
    }
    check('http://a.test:25/', ['1.1.1.1'], 'a.test:25');
    check('http://a.test:8443/', ['1.1.1.1']);
    expect(() => checkAddresses(urlHost('http://a.test:25/'), ['1.1.1.1'], NONE)).toThrow();
  });
});
