/** Reading a text by a template says what parsing says of it, or nothing. */

import { describe, expect, test } from 'bun:test';
import fc from 'fast-check';
import { isObject } from '../../../src/lib/json/json.ts';
import { JsonTemplate, type TemplateForm } from '../../../src/lib/json/json-template.ts';

/** The text of `{ id, text, index: 0, used }`, with any id. */
const text = (value: unknown): string | undefined =>
  isObject(value) && value.index === 0 && value.error === undefined
    ? (value.text as string | undefined)
    : undefined;
const PLAIN: TemplateForm = { key: 'text', text };
const COUNTING: TemplateForm = { ...PLAIN, counts: ({ used }) => used !== undefined };

const json = (inner: string, used = '3', more = '') =>
  `{"id":"a","text":"${inner}","index":0,"used":${used}${more}}`;
const framed = (data: string, event = '') =>
  `${event === '' ? '' : `event: ${event}\n`}data: ${data}\n\n`;

/** The first text is only noticed, the second one learned. */
function learnt(form: TemplateForm, data: string, event = ''): JsonTemplate {
  const template = new JsonTemplate(form);
  for (let i = 0; i < 2; i++) template.learn(data, event, JSON.parse(data));
  return template;
}

const inner = fc.oneof(
  { weight: 6, arbitrary: fc.string().map((value) => JSON.stringify(value).slice(1, -1)) },
  {
    weight: 1,
    arbitrary: fc.string({
      unit: fc.constantFrom('"', '\\', 'n', 'u', '0', ',', '{', '}', '\n', '\t', 'é', '\u007f'),
    }),
  },
);
const number = fc.oneof(
  fc.nat(2000).map(String),
  fc.constantFrom('0', '034', '00', '-3', '3.5', '3e2', '', 'null', '9'.repeat(16)),
);

describe.each([
  ['with numbers that may differ', COUNTING],
  ['where nothing else may differ', PLAIN],
])('a template %s', (_, form) => {
  test('reads what a parse says, or nothing', () => {
    const template = learnt(form, json('hi'));
    let read = 0;
    fc.assert(
      fc.property(inner, fc.oneof(fc.constant('3'), number), (words, used) => {
        const data = json(words, used);
        const got = template.read(data, '');
        if (got === undefined) return;
        read++;
        const value = JSON.parse(data);
        expect(text(value)).toBe(got);
        const last = template.takeLast();
        if (form === COUNTING) expect(last).toEqual({ ...value, text: '' });
        else expect([used, last]).toEqual(['3', undefined]);
        expect(template.takeLast()).toBeUndefined();
      }),
      { numRuns: 3000 },
    );
    expect(read).toBeGreaterThan(1000);
  });

  test('a run of frames says what its frames say, and ends before the first different one', () => {
    const template = learnt(form, json('hi'));
    const frame = fc
      .tuple(inner, fc.oneof({ weight: 9, arbitrary: fc.constant('3') }, number))
      .map(([words, used]) => framed(json(words, used)));
    const other = fc.constantFrom(
      'data: [DONE]\n\n',
      ': ping\n\n',
      'event: x\ndata: {}\n\n',
      framed(json('x'), 'error'),
      framed(json('x', '3', ',"error":{}')),
      framed(json('x')).replace('data: ', 'data:'),
    );
    let pieces = 0;
    fc.assert(
      fc.property(
        fc.array(fc.oneof({ weight: 12, arbitrary: frame }, other), { maxLength: 30 }),
        (frames) => {
          const all = frames.join('');
          for (let at = 0, i = 0; i < frames.length; ) {
            const run = template.run(all, at);
            if (run === undefined) {
              at += frames[i++]!.length;
              continue;
            }
            let said = '';
            let last: unknown;
            for (; at < run.to; i++) {
              last = JSON.parse(frames[i]!.slice('data: '.length));
              said += text(last);
              at += frames[i]!.length;
              pieces++;
            }
            expect([at, run.text]).toEqual([run.to, said]);
            if (form === COUNTING) {
              expect(template.takeLast()).toEqual({ ...(last as object), text: '' });
            }
          }
        },
      ),
      { numRuns: 400 },
    );
    expect(pieces).toBeGreaterThan(1000);
  });
});

describe('a template', () => {
  test('reads any white space and any escape that it learned', () => {
    const spaced = (words: string) => `{"id": "a", "text": "${words}", "index": 0}`;
    const template = learnt(PLAIN, spaced('x'));
    expect(template.read(spaced('\\u00e4\\n \\"'), '')).toBe('ä\n "');
    expect(template.read(spaced('x').replace('"a"', '"b"'), '')).toBeUndefined();
  });

  test('of frames with an event name reads only frames with the same name', () => {
    const template = learnt(PLAIN, json('x'), 'piece');
    expect(template.read(json('y'), 'piece')).toBe('y');
    expect(template.read(json('y'), '')).toBeUndefined();
    expect(template.run(framed(json('y'), 'piece'), 0)?.text).toBe('y');
    expect(template.run(framed(json('y'), 'error'), 0)).toBeUndefined();
    expect(template.run(framed(json('y')), 0)).toBeUndefined();
  });

  test('a number that decides what a value says is no count', () => {
    const template = learnt(COUNTING, json('x'));
    expect(template.read(json('y', '45'), '')).toBe('y');
    expect(template.read(json('y').replace('"index":0', '"index":1'), '')).toBeUndefined();
  });

  test('digits of an escape are no number', () => {
    const named = (words: string, name: string) => json(words, '3', `,"name":"${name}"`);
    const template = learnt(COUNTING, named('x', '\\u0041'));
    expect(template.read(named('y', '\\u1'), '')).toBeUndefined();
  });

  test('a string of the same key in another place is not the text', () => {
    const beside = (other: string, words: string) =>
      `{"id":{"text":"${other}"},"text":"${words}","index":0}`;
    const template = learnt(PLAIN, beside('a', 'x'));
    expect(template.read(beside('b', 'x'), '')).toBeUndefined();
  });

  test('gives the form of its frames, the same object for the same index', () => {
    for (const form of [PLAIN, COUNTING]) {
      const data = json('x').replace(',"used":3', ',"time":"10:05"');
      const template = learnt(form, data);
      const frame = template.frame(2)!;
      expect(`${frame.head}x${frame.foot}`).toBe(framed(data));
      expect(template.frame(2)).toBe(frame);
      expect(template.frame(3)).toEqual({ ...frame, index: 3 });
    }
    // Of frames by their form nobody would see the counts.
    expect(learnt(COUNTING, json('x')).frame(0)).toBeUndefined();
  });

  test('learns no text of more than one line, as the lines of a frame begin with a field', () => {
    const lines = json('x').replace(',"index"', ',\n"index"');
    expect(learnt(PLAIN, lines).run(framed(lines), 0)).toBeUndefined();
  });

  test('gives up where every text is padded in another way', () => {
    const padded = (i: number) => json('x', '3', `,"padding":"${'p'.repeat(i)}"`);
    const template = new JsonTemplate(PLAIN);
    for (let i = 0; i < 9; i++) template.learn(padded(i), '', JSON.parse(padded(i)));
    expect(template.read(padded(8), '')).toBeUndefined();
    expect(template.read(padded(4), '')).toBe('x');
  });
});
