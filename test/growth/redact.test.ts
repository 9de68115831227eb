/** Credential masks: linear on any text, at least as thorough as a table of patterns, and valid on JSON. */

import { describe, expect, setDefaultTimeout, test } from 'bun:test';
import fc from 'fast-check';
import { redactHeaders, redactText } from '../../src/lib/text/redact.ts';
import { maskSecrets, secretSpellings } from '../../src/lib/text/secret-spellings.ts';
import { BodyMask, maskText, spellings } from '../../src/samples/mask/body-mask.ts';
import { KnownSecrets } from '../../src/samples/mask/known-secrets.ts';
import { createLog, event, maskedFor } from '../../src/telemetry/log.ts';
import { expectLinear } from '../support/growth.ts';

// A busy machine is slow; these tests measure growth instead.
setDefaultTimeout(60_000);

// The patterns as regular expressions: short to read and slow on hostile texts. The tests compare the scan with them on
// short texts.
interface Kind {
  readonly marker: string;
  readonly pattern: RegExp;
  readonly anywhere?: boolean;
}
const KEYLIKE = '(?:(?=[a-z_-]*[0-9A-Z])[A-Za-z0-9_-]{12,}|[A-Za-z0-9_-]{20,})';

const prefixed = (marker: string, least: number): Kind => ({
  marker,
  pattern: new RegExp(`${marker}[A-Za-z0-9_-]{${least},}`, 'y'),
});

const TOKEN_AFTER_SCHEME = /earer\s+([A-Za-z0-9._~+/=-]{8,})/iy;
const NAMED_VALUE =
  /(?:API_?KEY|api_?key|apiKey|api-key|ACCESS_?TOKEN|access_token|AUTH_TOKEN|refresh_token|CLIENT_SECRET|client_secret)\\?["']?\s*[=:]\s*\\?["']?(?=[A-Za-z_+/.~-]*[0-9])([A-Za-z0-9_+/=.~-]{16,})/y;
const named = (marker: string): Kind => ({ marker, pattern: NAMED_VALUE, anywhere: true });
const QUERY = /(?:key|token)=([A-Za-z0-9._~%+/-]{8,})/y;

const ZHIPU: Kind = { marker: '.', pattern: /[0-9a-f]{32}\.[A-Za-z0-9]{16}(?![A-Za-z0-9])/y };

const KINDS: readonly Kind[] = [
  { marker: 'sk-', pattern: new RegExp(`sk-${KEYLIKE}`, 'y') },
  { marker: 'csk-', pattern: new RegExp(`csk-${KEYLIKE}`, 'y') },
  { marker: 'sk_', pattern: /sk_(?:live_|test_)?[A-Za-z0-9]{24,}/y },
  prefixed('AIza', 30),
  prefixed('ya29.', 20),
  prefixed('gsk_', 20),
  prefixed('xai-', 20),
  prefixed('hf_', 20),
  prefixed('pplx-', 20),
  prefixed('nvapi-', 20),
  prefixed('tgp_v1_', 20),
  prefixed('r8_', 30),
  prefixed('tvly-', 16),
  prefixed('jina_', 30),
  prefixed('fc-', 32),
  prefixed('BSA', 24),
  prefixed('ghp_', 30),
  prefixed('gho_', 30),
  prefixed('ghs_', 30),
  prefixed('github_pat_', 30),
  prefixed('glpat-', 20),
  prefixed('npm_', 36),
  { marker: 'xox', pattern: /xox[abeprs]-[A-Za-z0-9-]{10,}/y },
  { marker: 'AKIA', pattern: /AKIA[0-9A-Z]{16}(?![0-9A-Za-z])/y },

  { marker: 'eyJ', pattern: /eyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*/y },
  { marker: 'earer', pattern: TOKEN_AFTER_SCHEME, anywhere: true },
  { marker: 'EARER', pattern: TOKEN_AFTER_SCHEME, anywhere: true },

  { marker: '://', pattern: /:\/\/[^\s/@:"\\]*:([^\s/@"\\]+)@/y, anywhere: true },

  { marker: 'key=', pattern: QUERY },
  { marker: 'token=', pattern: QUERY },
  named('API'),
  named('api'),
  named('ACCESS'),
  named('access_token'),
  named('AUTH_TOKEN'),
  named('refresh_token'),
  named('CLIENT_SECRET'),
  named('client_secret'),
];

function oracle(text: string): string {
  const out = [...text];
  const cover = (from: number, to: number) => out.fill('*', from, to);
  for (let at = 0; at < text.length; at++) {
    for (const { marker, pattern, anywhere } of [...KINDS, ZHIPU]) {
      const zhipu = marker === '.';
      if (!zhipu && !text.startsWith(marker, at)) continue;
      if (anywhere !== true && at > 0 && /[A-Za-z0-9_+/-]/.test(text[at - 1]!)) continue;
      pattern.lastIndex = at;
      const found = pattern.exec(text);
      if (found === null) continue;
      const [whole, secret = whole] = found;
      const from = at + whole.lastIndexOf(secret);
      cover(from, from + secret.length);
    }
  }
  return out.join('');
}

const PIECES = [
  'sk-',
  'csk-',
  'sk_',
  'sk_live_',
  'AIza',
  'ya29.',
  'gsk_',
  'BSA',
  'xoxb-',
  'AKIA',
  'eyJ',
  '.eyJ',
  'Bearer ',
  'BEARER\t',
  '://',
  '://u:',
  '@',
  'key=',
  'token=',
  'API_KEY',
  'api_key',
  'apiKey',
  'client_secret',
  'access_token',
  '=',
  ':',
  '"',
  "'",
  ' ',
  '.',
  '-',
  '_',
  '/',
  '1',
  'a',
  'Z',
  'AIOSFODNN7EXAMPL',
  '0123456789abcdef',
  '0123456789abcdef0123456789abcdef',
  'aB3dE5gH7jK9mN1pQ2rS4tU6vW8xY0z',
  '\n',
  '*',
  'ü',
] as const;
const hostile = fc.array(fc.constantFrom(...PIECES), { maxLength: 14 }).map((all) => all.join(''));

describe('masked texts', () => {
  // Texts without backslashes and private keys, which the scan separates from their surroundings on purpose. A number
  // after a quoted name stays, since asterisks would be invalid JSON.
  test('the scan masks what the table of patterns masks', () => {
    fc.assert(
      fc.property(hostile, (text) => {
        fc.pre(!/"\s*[:=]\s*[-+.\deE]{16}/.test(text));
        expect(redactText(text).text).toBe(oracle(text));
      }),
      { numRuns: 4000 },
    );
  });

  test('a second mask changes nothing, and the length stays', () => {
    const pieces = [...PIECES, '\\', '\\n', '\\u0041', '-----BEGIN PRIVATE KEY-----', '-----END'];
    const text = fc.array(fc.constantFrom(...pieces), { maxLength: 14 }).map((all) => all.join(''));
    fc.assert(
      fc.property(text, (raw) => {
        const once = redactText(raw).text;
        expect(once).toHaveLength(raw.length);
        expect(redactText(once)).toEqual({ text: once, count: 0 });
      }),
      { numRuns: 4000 },
    );
  });
});

describe('JSON stays valid', () => {
  const bits = [
    '-----BEGIN PRIVATE KEY-----',
    '-----END',
    '-----END PRIVATE KEY-----',
    'A -----BEGIN RSA PRIVATE KEY-----',
    '"',
    '\\',
    '\n',
    '\r8_',
    '\fc-',
    '\npm_',
    '\b',
    '0041',
    'Bearer ',
    'API_KEY=',
    'api_key',
    '://u:',
    '@',
    'key=',
    '\u0001',
    'MIIEvQ',
    'aB3dE5gH7jK9mN1pQ2rS4tU6vW8xY0z',
    '0123456789abcdef0123456789abcdef',
    '.',
    '12345678',
    '},{',
    '","role":"',
  ] as const;
  const word = fc.array(fc.constantFrom(...bits), { maxLength: 6 }).map((all) => all.join(''));
  const value = fc.letrec((tie) => ({
    any: fc.oneof(
      { maxDepth: 3 },
      word,
      fc.constantFrom(1234567890123456, 1e300, -12345678, true, null),
      tie('list'),
      tie('object'),
    ),
    list: fc.array(tie('any'), { maxLength: 4 }),
    object: fc.dictionary(word, tie('any'), { maxKeys: 4 }),
  })).any;
  /** What stands between texts and numbers. Not the parsed value: two names may be the same once they are masked. */
  const shapes = (text: string) => {
    JSON.parse(text);
    return text.replace(/"(?:[^"\\]|\\.)*"/g, '""').replace(/-?\d[\d.e+-]*/g, '0');
  };

  test('any string content leaves the JSON valid', () => {
    fc.assert(
      fc.property(value, fc.boolean(), (one, pretty) => {
        const text = JSON.stringify(one, null, pretty ? 1 : 0);
        expect(shapes(redactText(text).text)).toEqual(shapes(text));
        const nested = JSON.stringify({ text });
        const inner = JSON.parse(redactText(nested).text) as { text: string };
        expect(shapes(inner.text)).toEqual(shapes(text));
      }),
      { numRuns: 1500 },
    );
  });

  test("any name of a client's secret leaves the JSON valid", () => {
    const secret = fc.oneof(
      word,
      fc.constantFrom(
        ':[{"role"',
        '","role":"',
        'abcdefg\\',
        'nabcdefgh',
        '0041abcd',
        '12345678',
        '},{},{},{}',
        'ue,12345678',
        'messages',
      ),
    );
    fc.assert(
      fc.property(value, secret, (one, key) => {
        const secrets = new KnownSecrets();
        secrets.headers(
          new Headers(/^[\x20-\x7e]*$/.test(key) ? { 'x-api-key': key } : {}) as never,
        );
        const text = Buffer.from(JSON.stringify([one, `before ${key} after`, `\n${key}`])).toString(
          'latin1',
        );
        expect(shapes(maskText(text, secrets.literals))).toEqual(shapes(text));
      }),
      { numRuns: 1500 },
    );
  });

  test('two halves of a private key in two strings stay two strings', () => {
    const text = JSON.stringify([
      { a: 'A -----BEGIN PRIVATE KEY-----' },
      { b: 'kept' },
      { c: 'zz-----END' },
    ]);
    expect(redactText(text)).toEqual({ text, count: 0 });
    const whole = JSON.stringify({
      key: '-----BEGIN PRIVATE KEY-----\nMIIEvQIBADAN\nabc/+=\n-----END PRIVATE KEY-----\n',
    });
    expect(redactText(whole)).toEqual({
      text: '{"key":"-----BEGIN PRIVATE KEY-----**************************-----END PRIVATE KEY-----\\n"}'.replace(
        /\*+/,
        '*'.repeat('\\nMIIEvQIBADAN\\nabc/+=\\n'.length),
      ),
      count: 1,
    });
  });
});

describe('a body in pieces', () => {
  test('a body in pieces comes out as it does whole', () => {
    const keys = [
      `-----BEGIN PRIVATE KEY-----\\n${'MIIEvQIBADANBgkq\\n'.repeat(900)}-----END`,
      `eyJ${'h1'.repeat(9)}.eyJ${'x1'.repeat(6000)}.${'s2'.repeat(40)}`,
      `API_KEY=${'a1'.repeat(5000)}`,
      'task-sk-ABCDEFGHIJKL1234',
    ];
    const part = fc.tuple(fc.integer({ min: 0, max: 9000 }), fc.constantFrom(...keys));
    fc.assert(
      fc.property(
        fc.array(part, { maxLength: 4 }),
        fc.integer({ min: 1, max: 20_000 }),
        (parts, size) => {
          const text = parts.map(([gap, key]) => `${'word '.repeat(gap / 5)} ${key} `).join('');
          const bytes = Buffer.from(text);
          const mask = new BodyMask(() => []);
          const out: Uint8Array[] = [];
          for (let at = 0; at < bytes.length; at += size)
            out.push(mask.push(bytes.subarray(at, at + size)));
          out.push(mask.end());
          expect(Buffer.concat(out).toString()).toBe(redactText(text).text);
        },
      ),
      { numRuns: 60 },
    );
  });
});

describe('known secrets', () => {
  const odd = 'ab"cd\\ef/gh+ij k';
  const forms = {
    json: JSON.stringify(odd).slice(1, -1),
    'JSON in JSON': JSON.stringify(JSON.stringify(odd)).slice(3, -3),
    url: encodeURIComponent(odd),
    'url in small letters': encodeURIComponent(odd).replace(/%../g, (code) => code.toLowerCase()),
    form: encodeURIComponent(odd).replaceAll('%20', '+'),
  };
  for (const [name, form] of Object.entries(forms)) {
    test(`secrets are masked as ${name}`, () => {
      expect(maskSecrets(`<${form}>`, secretSpellings(odd, false))).toBe(
        `<${'*'.repeat(form.length)}>`,
      );
    });
  }

  test('user:password is masked in Basic authorization, and so is the content of such a header', () => {
    const pair = 'someone:long-password-of-his';
    const base64 = Buffer.from(pair).toString('base64');
    expect(maskSecrets(base64, secretSpellings(pair))).toBe('*'.repeat(base64.length));
    const secrets = new KnownSecrets();
    secrets.headers(new Headers({ authorization: `Basic ${base64}` }) as never);
    expect(maskText('it is long-password-of-his', secrets.literals)).toBe(
      `it is ${'*'.repeat(20)}`,
    );
  });

  test('a secret that contains another one, or a part that a pattern knows, is masked to its end', () => {
    const longer = 'sk-abcdefghijkl1234"tail-of-it';
    const all = new KnownSecrets([...spellings('sk-abcdefghijkl1234'), ...spellings(longer)])
      .literals;
    expect(maskText(JSON.stringify(longer), all)).toBe(`"${'*'.repeat(longer.length + 1)}"`);
  });

  test('a log masks the spelling of its lines, in errors and in names, in both formats', () => {
    const secret = 'Zq"uote\\slash-9';
    for (const format of ['json', 'pretty'] as const) {
      const lines: string[] = [];
      const log = createLog({ format, secrets: () => [secret], write: (line) => lines.push(line) });
      log.warn({ a: secret, deep: { b: JSON.stringify({ secret }) } }, `said ${secret}`);
      event(log, 'x', { url: `https://h/?k=${encodeURIComponent(secret)}` });
      expect(lines.join('')).not.toContain('uote');
      expect(maskedFor(log, `a ${JSON.stringify(secret)}`)).not.toContain('uote');
    }
  });
});

describe('time grows linearly with the length', () => {
  const UNITS = [
    'API_KEY=1',
    'client_secret=1',
    'access_token=1',
    'api_key:a',
    'API_KEY=a',
    'api_key"',
    'api_key\\',
    'api_key ',
    'api_key= ',
    'sk-',
    'sk-1',
    '\\nsk-',
    'csk-a',
    'eyJ',
    'eyJa.',
    'eyJaaaaaaaa.',
    '.eyJaaaaaaaa',
    '://',
    '://a:',
    '://a:b',
    'earer ',
    'earer a',
    'Bearer aaaaaaaa',
    'key=',
    'key=aaaaaaaa',
    'token=a',
    '-----BEGIN ',
    '-----BEGIN PRIVATE KEY-----',
    '-----BEGIN PRIVATE KEY-----\\\\',
    '-----BEGIN A ',
    '-----END',
    'f.',
    '0123456789abcdef',
    'AKIA',
    'xoxb-',
    'BSA',
  ];
  for (const unit of UNITS) {
    test(
      `${JSON.stringify(unit)} repeated takes linear time`,
      () =>
        expectLinear({
          name: unit,
          input: (size) => unit.repeat(size / unit.length),
          run: (text) => redactText(text),
        }),
      60_000,
    );
  }

  test('a unit before one long run, and before many blanks, takes linear time', () => {
    const many = 2 ** 18;
    for (const unit of UNITS) {
      const text = `${unit}${'a'.repeat(many)} ${`${unit}${' '.repeat(many)}`.repeat(2)}x`;
      const before = performance.now();
      redactText(text);
      expect([unit, performance.now() - before < 1000]).toEqual([unit, true]);
    }
  });

  test('known secrets: many occurrences, near misses and backslashes take linear time', async () => {
    const texts: [string, (size: number) => string][] = [
      ['abababab', (size) => 'ab'.repeat(size / 2)],
      [`${'ab'.repeat(5000)}ba`, (size) => 'ab'.repeat(size / 2)],
      ['abcdefgh', (size) => `${'\\'.repeat(size)}abcdefgh`],
      ['abcdefgh', (size) => '\\\\abcdefgh'.repeat(size / 10)],
      ['12345678', (size) => '12345678'.repeat(size / 8)],
    ];
    for (const [secret, input] of texts) {
      const known = secretSpellings(secret);
      await expectLinear({
        name: secret,
        input,
        run: (text) => maskSecrets(text, known),
      });
    }
  });

  test('a client adds only a limited number of secrets', () => {
    const secrets = new KnownSecrets();
    secrets.url(`/v1?${Array.from({ length: 10_000 }, (_, i) => `p${i}=value-${i}-x`).join('&')}`);
    expect(secrets.literals.length).toBeLessThan(1000);
    expect(redactHeaders([['cookie', 'a'.repeat(1000)]]).headers[0]![1]).toBe('*'.repeat(1000));
  });

  test(
    'bodies in tiny pieces take linear time',
    () =>
      expectLinear({
        name: 'one open credential',
        input: (size) => Buffer.from(`API_KEY=${'a1'.repeat(size / 2)}`),
        run: (bytes) => {
          const mask = new BodyMask(() => []);
          for (let at = 0; at < bytes.length; at += 64) mask.push(bytes.subarray(at, at + 64));
          mask.end();
        },
      }),
    60_000,
  );
});
