/** The style sheet that browsers get: lists of selectors are written out, where that says the same. */

import { describe, expect, test } from 'bun:test';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { bundlePage, writtenOut } from '../../src/ui/bundle-page.ts';

describe('the style sheet of the page', () => {
  test.each([
    [':is(.a,.b .c)', '.a,.b .c'],
    [':is(.a,.b):hover', '.a:hover,.b:hover'],
    ['.x>:is(.a,b),.y', '.x>.a,.x>b,.y'],
    [':is(.a,.b):is(.c,.d)', '.a.c,.a.d,.b.c,.b.d'],
    [':is(.a :is(b,i),.c)', '.a b,.a i,.c'],
    ['.a:not(:is(.b,.c)) :is(.d,.e)', '.a:not(:is(.b,.c)) .d,.a:not(:is(.b,.c)) .e'],
  ])('%s is a list of selectors that a browser finds by their last names', (list, written) => {
    expect(writtenOut(`${list}{color:red}`)).toBe(`${written}{color:red}`);
    expect(writtenOut(`@media (width:1px){${list}{}}`)).toBe(`@media (width:1px){${written}{}}`);
  });

  test.each([
    // The first finds a `.b` around `.a`, too; the second would be another name.
    '.a :is(.b .c,.d)',
    '.a:is(b,.c)',
    '@media (width:1px)',
  ])('%s stays: written out it would say something else', (kept) => {
    expect(writtenOut(`${kept}{}`)).toBe(`${kept}{}`);
  });

  test('no rule for one thing is tried on every element', () => {
    const [css, ...more] = bundlePage().match(/(?<=<style>).*?(?=<\/style>)/gs)!;
    expect([css!.length > 10_000, more]).toEqual([true, []]);
    expect(css!.match(/(?<=[{}])[^{}]*?(?<=^|,):is\([^{]*/g)).toBeNull();
  });

  test('no series and no bar is red but what failed', () => {
    const file = join(import.meta.dir, '../../src/ui/page/charts.css');
    const rules = readFileSync(file, 'utf8').match(/[^{}]*\{[^{}]*--tone: var\(--bad\)[^{}]*\}/g)!;
    const red = rules.flatMap((rule) => rule.match(/\.[a-z]+-?\d*/g)!);
    expect(red.toSorted()).toEqual(['.err-0', '.failed', '.key', '.mark', '.span', '.stroke']);
  });
});
