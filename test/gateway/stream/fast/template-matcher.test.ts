/** Which frames a template matches, and what goes out for them. */

import { describe, expect, test } from 'bun:test';
import { TemplateMatcher } from '../../../../src/gateway/stream/fast/template-matcher.ts';

describe('a frame of plain text', () => {
  const from = { head: 'data: {"t":"', foot: '"}\n\n' };
  const pushed = (text: string | Uint8Array, watched = '') => {
    const chunk = Buffer.concat([
      Buffer.from(from.head),
      typeof text === 'string' ? Buffer.from(text) : text,
      Buffer.from(from.foot),
    ]);
    return new TemplateMatcher(from, undefined, watched).push(chunk);
  };

  test.each([
    ['no text', ''],
    ['a quote', 'a"b'],
    ['an escape', 'a\\n'],
    ['a control character', 'a\tb'],
    ['a space at its end', 'a '],
    ['a wide space at its end', '你　'],
    ['half a character', new Uint8Array([0x61, 0xe4, 0xbd])],
    ['the other half', new Uint8Array([0xa0, 0x61])],
    ['two frames', 'a"}\n\ndata: {"t":"b'],
    ['more than there is room for', 'x'.repeat(513)],
  ])('is none with %s', (_name, text) => {
    expect(pushed(text)).toBeUndefined();
  });

  test('is none with a character that is watched, in ASCII or beyond', () => {
    expect(pushed('a<b', '<◁')).toBeUndefined();
    expect(pushed('a◁b', '<◁')).toBeUndefined();
    expect(pushed('a◁b', '<')).toBeDefined();
  });

  test('is none when anything around it differs, and leaves nothing behind', () => {
    const plain = new TemplateMatcher(from, undefined, '!');
    const whole = Buffer.from(`${from.head}text${from.foot}`);
    for (let i = 0; i < whole.length; i++) {
      const other = Buffer.from(whole);
      if (i < from.head.length || i >= from.head.length + 4) other[i] = whole[i]! ^ 1;
      else other[i] = 0x21;
      expect(plain.push(other)).toBeUndefined();
    }
    expect(plain.push(whole.subarray(1))).toBeUndefined();
    expect(plain.push(whole.subarray(0, -1))).toBeUndefined();
    expect(plain.taken()).toBe('');
    expect(plain.push(whole)).toBe(whole);
    expect(plain.taken()).toBe('text');
    expect(plain.taken()).toBe('');
  });

  test('goes out in the frame of the other side', () => {
    const plain = new TemplateMatcher(from, { head: 'é<', foot: '>é' }, '');
    const out = plain.push(Buffer.from(`${from.head}你 ok${from.foot}`));
    expect(Buffer.from(out!).toString()).toBe('é<你 ok>é');
    expect(plain.taken()).toBe('你 ok');
  });
});
