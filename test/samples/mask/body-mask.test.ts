/** Masking of bodies in pieces: no credential comes out at any split; everything else is unchanged. */

import { describe, expect, test } from 'bun:test';
import fc from 'fast-check';
import { BodyMask, spellings } from '../../../src/samples/mask/body-mask.ts';

const KEYS = [
  'sk-proj-A1b2C3d4E5f6G7h8I9j0',
  'Bearer abcdefgh12345678',
  'AIzaSyA1234567890abcdefghijklmnopqrstuvw',
  '0123456789abcdef0123456789abcdef.AbCdEfGh12345678',
  `eyJhbGciOiJIUzI1NiJ9.eyJ${'x1'.repeat(900)}.sig`,
  `-----BEGIN PRIVATE KEY-----${'MIIEvQIBADANBgkq'.repeat(110)}-----END`,
  'known secret with spaces "and quotes"',
];
const LITERALS = spellings('known secret with spaces "and quotes"');
const core = (key: string) => key.replace(/^Bearer |^-----BEGIN PRIVATE KEY-----|-----END$/g, '');

function masked(bytes: Uint8Array, cuts: readonly number[]): { text: string; count: number } {
  const mask = new BodyMask(() => LITERALS);
  const out: Uint8Array[] = [];
  let at = 0;
  for (const cut of [...cuts, bytes.length]) {
    if (cut < at) continue;
    out.push(mask.push(bytes.subarray(at, cut)));
    at = cut;
  }
  out.push(mask.end());
  return { text: Buffer.concat(out).toString('latin1'), count: mask.count };
}

describe('a body in pieces', () => {
  test('shows no key at any split, and keeps its length and everything around', () => {
    const filler = fc.string({
      unit: fc.constantFrom('word ', '{"a":1},', 'data: \n\n', 'ü', '嗨'),
      maxLength: 2500,
    });
    fc.assert(
      fc.property(
        fc.array(fc.tuple(filler, fc.constantFrom(...KEYS)), { minLength: 1, maxLength: 4 }),
        fc.array(fc.nat(40_000), { maxLength: 12 }),
        (parts, raw) => {
          const text = parts.map(([before, key]) => `${before} ${key} `).join('');
          const bytes = Buffer.from(text);
          const cuts = raw.map((cut) => cut % bytes.length).sort((a, b) => a - b);
          const out = masked(bytes, cuts);
          expect(out.text.length).toBe(bytes.length);
          for (const key of KEYS) expect(out.text).not.toContain(core(key));
          expect(out.count).toBe(parts.length);
          const raws = bytes.toString('latin1');
          for (let i = 0; i < raws.length; i++) {
            if (out.text[i] !== raws[i]) expect(out.text[i]).toBe('*');
          }
        },
      ),
      { numRuns: 60 },
    );
  });

  test('a body without keys is unchanged, also byte by byte', () => {
    const bytes = Buffer.from('{"text":"grüße, 世界 — 100 %","n":1.0}'.repeat(400));
    expect(masked(bytes, [])).toEqual({ text: bytes.toString('latin1'), count: 0 });
    expect(masked(bytes, [...bytes.keys()]).text).toBe(bytes.toString('latin1'));
  });

  test('known secrets are found in JSON and URL spelling; short ones are not searched', () => {
    const mask = new BodyMask(() => spellings('a "quoted" secret'));
    mask.push(
      Buffer.from(
        String.raw`plain a "quoted" secret, json a \"quoted\" secret, url a%20%22quoted%22%20secret`,
      ),
    );
    const text = Buffer.from(mask.end()).toString();
    expect(text).not.toContain('secret');
    expect(mask.count).toBe(3);
    expect(spellings('short')).toEqual([]);
  });
});
