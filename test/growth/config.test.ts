/** Reading a configuration takes linear time, however hostile the file: a running gateway reads it beside its streams. */

import { describe, expect, test } from 'bun:test';
import { suggest } from '../../src/lib/text/did-you-mean.ts';
import { globTest } from '../../src/lib/text/glob.ts';
import { PROVIDER, parse } from '../config/support.ts';
import { expectCpuBelow } from '../support/cpu-time.ts';

const lines = (count: number, one: (n: number) => string) =>
  Array.from({ length: count }, (_, n) => one(n)).join('');

/** Sizes near the largest accepted; quadratic work would take seconds to hours. */
const files: Readonly<Record<string, string>> = {
  'aliases in a row': `${PROVIDER}aliases:\n${lines(20_000, (n) => `  a${n}: a${n + 1}\n`)}`,
  'aliases in one circle': `${PROVIDER}aliases:\n${lines(20_000, (n) => `  a${n}: a${(n + 1) % 20_000}\n`)}`,
  'aliases that lead into a circle': `${PROVIDER}aliases:\n  x: y\n  y: x\n${lines(20_000, (n) => `  a${n}: ${n === 0 ? 'x' : `a${n - 1}`}\n`)}`,
  'unknown keys': `${PROVIDER}${lines(30_000, (n) => `unknown${n}: 1\n`)}`,
  'routes to unknown providers': `${PROVIDER}routes:\n${lines(8000, (n) => `  - { to: [q${n}/x] }\n`)}`,
  'routes to what is not listed': `${PROVIDER.replace(' }', `, models: [${lines(1000, (n) => `m${n},`)}] }`)}routes:\n${lines(1000, (n) => `  - { to: [p/mm${n}] }\n`)}`,
  'many providers': `providers:\n${lines(1500, (n) => `  p${n}: { protocol: openai-chat, base_url: "http://127.0.0.1:1/v1" }\n`)}routes:\n${lines(1500, (n) => `  - { to: [p${n}x/m] }\n`)}`,
  'profiles in a row': `${PROVIDER}profiles:\n${lines(3000, (n) => `  f${n}: { extends: f${n + 1} }\n`)}`,
  references: `${PROVIDER}aliases:\n${lines(20_000, (n) => `  a${n}: "\${V}\${V}"\n`)}`,
  'open references': `${PROVIDER}aliases: { a: "${'${'.repeat(100_000)}" }\n`,
  'short keys': `${PROVIDER}auth: { keys: [${lines(30_000, (n) => `k${n},`)}] }\n`,
  'a very long name': `${PROVIDER}${'a'.repeat(900_000)}: 1\n`,
  'a very long value': `${PROVIDER}listen: ${'1.'.repeat(450_000)}\n`,
  'a very long address': `providers:\n  p: { protocol: openai-chat, base_url: "${'a.'.repeat(450_000)}" }\n`,
  'a very long range': `${PROVIDER}routes:\n  - { when: { tokens: "${' '.repeat(400_000)}x" }, to: [p/x] }\n`,
  'a very long pattern': `${PROVIDER}routes:\n  - { when: { model: "${'*a'.repeat(400_000)}" }, to: [p/x] }\n`,
  'a quote that never ends': `${PROVIDER}listen: "${'\\\\" '.repeat(100_000)}\\`,
  'blanks and line breaks': `${PROVIDER}${`${' '.repeat(50)}\n`.repeat(15_000)}`,
  'a comment of a megabyte': `${PROVIDER}#${'# '.repeat(450_000)}\n`,
};

describe('a file of', () => {
  for (const [name, text] of Object.entries(files)) {
    test(name, () => expectCpuBelow(5000, () => parse(text, { V: 'value' })));
  }
});

test('suggestions and patterns of any length', async () => {
  const long = 'ab'.repeat(500_000);
  await expectCpuBelow(1000, () => {
    expect(suggest(long, [`${long}c`, 'x'])).toBeUndefined();
    expect(suggest('short', [long, 'shorts'])).toBe('shorts');
    expect(globTest(`*${'a?'.repeat(1000)}*x`)(long)).toBe(false);
  });
});
