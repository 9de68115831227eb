/** The final filter for leaked markup: it removes all markup, however it is split, and leaves other text alone. */

import { describe, expect, test } from 'bun:test';
import fc from 'fast-check';
import { cleanReply } from '../../../src/features/chat-apps/chat-feature.ts';
import { MarkupRemover } from '../../../src/features/chat-apps/leaked-markup.ts';

function clean(text: string, sizes: readonly number[] = [text.length || 1]) {
  const machine = new MarkupRemover();
  let out = '';
  for (let at = 0, i = 0; at < text.length; i++) {
    const size = Math.max(1, sizes[i % sizes.length]!);
    out += machine.push(text.slice(at, at + size));
    at += size;
  }
  return { text: out + machine.end(), count: machine.count };
}

const BLOCK =
  '<｜DSML｜function_calls>\n<｜DSML｜invoke name="x">\n<｜DSML｜parameter name="q" string="true">a < b</｜DSML｜parameter>\n</｜DSML｜invoke>\n</｜DSML｜function_calls>';

describe('markup', () => {
  for (const [what, text, left] of [
    ['a block in a code fence', `看\n\`\`\`\n${BLOCK}\n\`\`\`\n完`, '看\n```\n\n\n\n```\n完'],
    ['a tag in a sentence', '标签 <｜DSML｜function_calls> 是什么', '标签  是什么'],
    ['an unknown tag', '嗯<｜DSML｜oops>好', '嗯好'],
    ['bars of ASCII, doubled', 'a</||DSML||parameter>b', 'ab'],
    ['a tag that lost its bracket', '好｜DSML｜function_calls>吗', '好吗'],
    [
      'a tag without its mark',
      '<function_calls><invoke name="a"><parameter name="q">x</parameter></invoke></function_calls>好',
      '好',
    ],
    ['a call that never ends', `好<｜DSML｜invoke name="x">${'字'.repeat(500)}`, '好'],
    ['the beginning of a tag, at the end', '好。<｜DSM', '好。'],
    ['a tag with a space in it', 'x<｜DSML｜ calls>y</｜DSML｜ calls>z', 'xyz'],
  ] as const) {
    test(`${what} is removed, however it is split`, () => {
      for (const size of [1, 2, 3, 7, 1000]) expect(clean(text, [size]).text).toBe(left);
      expect(clean(text).count).toBeGreaterThan(0);
    });
  }

  test('any text around any block, cut anywhere: no markup is left', () => {
    // Half tags are left out: without the block between them they would form a whole tag.
    const word = fc.constantFrom(
      '好',
      '<',
      '>',
      '|',
      'invoke',
      ' ',
      '\n',
      BLOCK,
      '</｜DSML｜invoke>',
      '<｜DSML｜',
      '<function_calls>',
      '<｜DSML｜parameter name="q">',
    );
    fc.assert(
      fc.property(
        fc.array(word, { maxLength: 14 }),
        fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 1, maxLength: 6 }),
        (texts, sizes) => {
          const text = texts.join('');
          const { text: left } = clean(text, sizes);
          expect(left).toBe(clean(text).text);
          expect(left).not.toMatch(/[|｜]DSML|<function_calls>/);
        },
      ),
      { numRuns: 500 },
    );
  });
});

test('text without markup passes unchanged: tables, HTML, arrows, quotes', () => {
  const texts = [
    '| a | b |\n|---|---|\n| DS | <b>x</b> |',
    'if (a < b || c > d) return <Foo/>;',
    'invoke the parameter of function calls',
    '｜全角竖线｜与 <｜ 也是文字',
  ];
  for (const text of texts) {
    for (const size of [1, 4, 999]) expect(clean(text, [size])).toEqual({ text, count: 0 });
  }
});

test('events without markup stay the same objects', () => {
  const reportCount: number[] = [];
  const interceptor = cleanReply(() => reportCount.push(1), { reasoning: false });
  const start = { type: 'block-start', index: 0, head: { type: 'text' } } as const;
  const delta = { type: 'delta', index: 0, text: 'Hello.' } as const;
  const stop = { type: 'block-stop', index: 0 } as const;
  for (const event of [start, delta, stop]) expect(interceptor.event(event)).toBe(event);
  const reasoning = { ...start, head: { type: 'reasoning' } } as const;
  const thought = { ...delta, text: BLOCK };
  for (const event of [reasoning, thought, stop]) expect(interceptor.event(event)).toBe(event);
  expect(reportCount).toEqual([]);
  interceptor.event(start);
  expect(interceptor.event({ ...delta, text: BLOCK })).toEqual({ ...delta, text: '\n\n' } as never);
  interceptor.event({ ...delta, text: BLOCK });
  interceptor.event(stop);
  expect(reportCount).toEqual([1]);
});
