/** Masks along a text and along a stream: what comes out at any time shows nothing that the end would mask. */

import { describe, expect, test } from 'bun:test';
import fc from 'fast-check';
import { BodyMask, maskText, spellings } from '../../../src/samples/mask/body-mask.ts';
import { TextMask } from '../../../src/samples/mask/text-mask.ts';
import { chunkBytes } from './chunk-bytes.ts';
import { FORMS, SECRETS } from './streams.ts';

const REPEATED = 'ababababab';
const LITERALS = [SECRETS.known, REPEATED, 'ababababab-XYZ'].flatMap((secret) => spellings(secret));

/** Whole secrets, their parts, what only looks like them, and what ends them. */
const parts = fc.oneof(
  fc.constantFrom(...Object.values(SECRETS), REPEATED, 'ababababab-XYZ'),
  fc
    .tuple(fc.constantFrom(...Object.values(SECRETS), 'ababababab-XYZ'), fc.nat(60), fc.nat(60))
    .map(([secret, from, length]) => secret.slice(from % secret.length).slice(0, length)),
  fc.constantFrom(
    ' ',
    '\n',
    '"',
    '\\',
    '\t',
    '. ',
    '.',
    'é',
    '嗨',
    '*',
    '/',
    ': ',
    '=',
    '-----BEGIN ',
    'RSA PRIVATE KEY-----',
    '-----END',
    'Bearer ',
    'bearer\n',
    '"api_key": "',
    'sk-',
    'eyJ',
    '.eyJ',
    'https://',
    'deadbeef',
    'u00e9',
    'ab',
  ),
  fc.string({ unit: fc.constantFrom(...'abcdef0123456789ABkseyJ-_.:/@ ='), maxLength: 12 }),
);
const texts = fc.array(parts, { maxLength: 30 }).map((all) => all.join(''));
const raw = (text: string) => Buffer.from(JSON.stringify(text).slice(1, -1)).toString('latin1');

/** Every byte is what it is at the end, or masked. */
function expectNothingMore(early: Uint8Array | string, end: string): void {
  const shown = typeof early === 'string' ? early : Buffer.from(early).toString('latin1');
  for (let i = 0; i < shown.length; i++) {
    if (shown[i] === end[i] || shown[i] === '*') continue;
    throw new Error(
      `${shown.slice(Math.max(0, i - 40), i + 40)} came out, at the end ${end.slice(Math.max(0, i - 40), i + 40)}`,
    );
  }
}

describe('a text in pieces', () => {
  test('is masked as the whole text is, and says nothing before it is decided', () => {
    fc.assert(
      fc.property(texts, fc.array(fc.nat(30), { minLength: 1, maxLength: 40 }), (text, sizes) => {
        const whole = raw(text);
        const end = maskText(whole, LITERALS);
        const mask = new TextMask(() => LITERALS);
        let out = '';
        for (let at = 0, n = 0; at < whole.length; n++) {
          const size = sizes[n % sizes.length]! + 1;
          mask.add(whole.slice(at, at + size));
          at += size;
          out += mask.settle();
          expect(out).toBe(end.slice(0, out.length));
        }
        expect(out + mask.settle(true)).toBe(end);
      }),
      { numRuns: 3000 },
    );
  });

  test('what opens nothing is not held back', () => {
    const mask = new TextMask(() => LITERALS);
    for (const word of ['Good morning. ', 'The result is 42.', '{\\"path\\":1} ']) {
      mask.add(word);
      expect(mask.settle()).toBe(word);
    }
  });

  test('a match that never ends is masked, to the end of its run', () => {
    const mask = new TextMask(() => []);
    let out = '';
    for (let i = 0; i < 2000; i++) {
      mask.add('://user:'.padEnd(100, 'x').slice(i === 0 ? 0 : 8));
      out += mask.settle();
    }
    expect(mask.waiting).toBe(0);
    mask.add('rest of it');
    out += mask.settle() + mask.settle(true);
    expect(out).toMatch(/^\*+ of it$/);
    expect(mask.count).toBe(1);
  });
});

/** Events in which several texts are told in parts, and where those parts stand. */
interface Told {
  readonly stream: string;
  readonly places: ReadonlyMap<string, readonly (readonly [from: number, to: number])[]>;
}

const MARK = '\u0001';
function tell(said: readonly { form: string; index: number; bit: string }[]): Told {
  let stream = '';
  const places = new Map<string, [number, number][]>();
  for (const { form, index, bit } of said) {
    const [before, after] = FORMS[form]!(MARK)
      .replaceAll(/"(?:output_)?index":[01]/g, (pair) => `${pair.slice(0, -1)}${index}`)
      .split(JSON.stringify(MARK).slice(1, -1));
    stream += before;
    // Texts of one member and index are one, whatever their kind.
    const text = `${/"(\w+)":"$/.exec(before!)![1]} ${[...(before! + after!).matchAll(/"(\w*index)":/g)].map(([, name]) => name).join()} ${index}`;
    const own = places.get(text) ?? [];
    places.set(text, own);
    const piece = raw(bit);
    if (piece !== '') own.push([stream.length, stream.length + piece.length]);
    stream += piece + after;
  }
  return { stream, places };
}

/** What the mask of the whole makes of a stream: of its bytes, then of each text joined. */
function maskedWhole({ stream, places }: Told): string {
  const out = [...maskText(stream, LITERALS)];
  for (const all of places.values()) {
    const joined = all.map(([from, to]) => out.slice(from, to).join('')).join('');
    const masked = maskText(joined, LITERALS);
    let at = 0;
    for (const [from, to] of all) for (let i = from; i < to; i++) out[i] = masked[at++]!;
  }
  return out.join('');
}

function checkStream(told: Told, sizes: readonly number[]): number {
  const end = maskedWhole(told);
  const mask = new BodyMask(() => LITERALS, true);
  let file = Buffer.alloc(0);
  let patched = 0;
  const take = (bytes: Uint8Array) => {
    file = Buffer.concat([file, bytes]);
    for (const { at, bytes } of mask.takePatches()) {
      file.set(bytes, at);
      patched++;
    }
    expectNothingMore(file, end);
  };
  const sent = Buffer.from(told.stream, 'latin1');
  const before = Buffer.from(sent);
  for (const chunk of chunkBytes(sent, sizes)) take(mask.push(chunk));
  take(mask.end());
  expect(file.toString('latin1')).toBe(end);
  // The bytes of the stream are the client's, too.
  expect(sent.equals(before)).toBe(true);
  return patched;
}

const cutUp = (text: string, sizes: readonly number[]): string[] => {
  const bits: string[] = [];
  for (let at = 0, n = 0; at < text.length; n++) {
    const size = sizes[n % sizes.length]! + 1;
    bits.push(text.slice(at, at + size));
    at += size;
  }
  return bits;
};

const counts = (most: number) => fc.array(fc.nat(most), { minLength: 1, maxLength: 12 });
const voices = fc.array(
  fc.record({
    form: fc.constantFrom(...Object.keys(FORMS)),
    index: fc.nat(3),
    text: texts,
    sizes: counts(12),
  }),
  { minLength: 1, maxLength: 3 },
);

describe('texts in the events of a stream', () => {
  test('are masked as each whole text is, at every split into events and chunks', () => {
    fc.assert(
      fc.property(voices, counts(2), counts(900), (all, turns, sizes) => {
        const left = all.map(({ text, sizes }) => cutUp(text, sizes));
        const said: { form: string; index: number; bit: string }[] = [];
        for (let n = 0; left.some((bits) => bits.length > 0); n++) {
          const who = turns[n % turns.length]! % all.length;
          const next = left[who]!.length > 0 ? who : left.findIndex((bits) => bits.length > 0);
          const { form, index } = all[next]!;
          said.push({ form, index, bit: left[next]!.shift()! });
        }
        checkStream(tell(said), sizes);
      }),
      { numRuns: 400 },
    );
  });

  test('a text that ends in a beginning and rests holds nothing back for long', () => {
    const words = Array.from({ length: 250 }, () => ({
      form: 'Messages, text',
      index: 2,
      bit: 'word ',
    }));
    const told = tell([
      { form: 'Messages, text', index: 1, bit: 'The key: sk-proj-A1' },
      ...words,
      { form: 'Messages, text', index: 1, bit: 'b2' },
      ...words,
      { form: 'Messages, text', index: 1, bit: ' is short.' },
      ...words,
    ]);
    expect(checkStream(told, [1500])).toBe(2);
    const mask = new BodyMask(() => LITERALS, true);
    let held = 0;
    let most = 0;
    for (const chunk of chunkBytes(Buffer.from(told.stream, 'latin1'), [500])) {
      held += chunk.length - mask.push(chunk).length;
      most = Math.max(most, held);
    }
    expect(most).toBeLessThan(20_000);
  });

  test('a secret in one text too many is masked, also when other texts close meanwhile', () => {
    const said = (index: number, bit: string) => ({ form: 'Messages, text', index, bit });
    const many = Array.from({ length: 32 }, (_, index) => index);
    const told = tell([
      ...many.map((index) => said(index, 'ends with sk-')),
      said(32, 'sk-proj-A1b2C3'),
      ...many.map((index) => said(index, ' and goes on.')),
      said(32, 'd4E5f6G7h8'),
    ]);
    expect(checkStream(told, [100])).toBe(0);
    expect(maskedWhole(told)).toContain('"**********"');
  });

  test('an event of any length is given out as it comes', () => {
    const long = 'A long text. '.repeat(20_000);
    const told = tell([{ form: 'Responses, text', index: 0, bit: long }]);
    const mask = new BodyMask(() => LITERALS, true);
    let held = 0;
    for (const chunk of chunkBytes(Buffer.from(told.stream, 'latin1'), [3000])) {
      held += chunk.length - mask.push(chunk).length;
      expect(held).toBeLessThan(25_000);
    }
    checkStream(told, [3000]);
  });

  test('what opens nothing is given out with its event', () => {
    const mask = new BodyMask(() => LITERALS, true);
    for (const frame of Object.values(FORMS)) {
      const event = Buffer.from(frame('Good morning. '));
      expect(mask.push(event)).toEqual(event);
    }
  });
});
