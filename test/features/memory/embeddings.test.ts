/** Vectors beside word search: what they find, how they are added later, and that their failure costs nothing. */

import { describe, expect, test } from 'bun:test';
import fc from 'fast-check';
import { GatewayError } from '../../../src/conversation/errors.ts';
import { embedder } from '../../../src/features/memory/store/embedder.ts';
import {
  cosine,
  fewestDifferences,
  normalized,
  quantized,
  signs,
} from '../../../src/features/memory/store/vector-math.ts';
import type { Json, JsonObject } from '../../../src/lib/json/json.ts';
import { until } from '../../support/until.ts';
import { FORMS, inList, memories } from './support.ts';

/** Meanings by words; a text's vector is the sum of the meanings in it. */
const MEANINGS: readonly (readonly string[])[] = [
  ['pills', 'medicine', 'doctor'],
  ['shrimp', 'shellfish', 'food', 'eat'],
  ['Portuguese', 'language', 'Finnish'],
  ['car', 'Kia', 'vehicle'],
];
const vectorOf = (text: string) => [
  ...MEANINGS.map((messages) => (messages.some((word) => text.includes(word)) ? 1 : -0.1)),
  0.01,
];

function endpoint(answer: (body: JsonObject) => Json = answerOf) {
  const sent: JsonObject[] = [];
  const failures: string[] = [];
  let now = 0;
  const made = embedder({
    name: 'p/m',
    model: 'm',
    timeoutMs: 200,
    post: async (body) => {
      sent.push(body);
      return answer(body);
    },
    onFailure: (thrown) => void failures.push(String(thrown)),
    now: () => now,
  });
  return { embedder: made, sent, failures, later: (ms: number) => (now += ms) };
}
const inputs = ({ input }: JsonObject) => input as readonly string[];
const answerOf = (body: JsonObject): Json => ({
  data: inputs(body)
    .map((text, index) => ({ index, embedding: vectorOf(text) }))
    .toReversed(),
});
const fails = (status: number) => () => {
  throw new GatewayError('upstream', `answered ${status}`, { status });
};

const EVENTS = [
  { text: 'one of these every morning: blood pressure pills', source: 'Tom' },
  { text: 'no shrimp for me at the party', source: 'Maya' },
  { text: 'homework for my Portuguese teacher', source: 'Maya' },
  { text: 'ordered a used Kia', source: 'Tom' },
  { text: 'the lawn is mowed', source: 'Tom' },
];

describe.each(FORMS)('hybrid recall, %s', (form) => {
  const files = memories(form);
  /** Waits until so many events have their vectors. */
  const filled = (path: string, count: number) =>
    until(async () => (await files.vectors(path)) === count);

  test('finds events of the same meaning without a shared word, after those that share words', async () => {
    const path = files.path();
    const plain = files.open({ path });
    await plain.book.add('s', EVENTS, inList);
    expect(await plain.recalled('s', 'Which medicine does he take?')).toEqual([]);
    await plain.memory.close();
    // Events from before embeddings were configured get their vectors now.
    const { memory, recalled, watch } = files.open({ path, embedder: endpoint().embedder });
    await memory.recall('s', { query: 'wake' });
    await filled(path, EVENTS.length);
    expect((await recalled('s', 'Which medicine does he take?'))[0]).toContain('pills');
    expect((await recalled('s', 'What language is it?'))[0]).toContain('Portuguese');
    expect((await recalled('s', 'lawn'))[0]).toContain('lawn');
    expect(new Set(watch.kinds)).toEqual(new Set(['hybrid']));
  });

  test('what the model said is found with vectors as well as without', async () => {
    const path = files.path();
    const { memory, book, recalled } = files.open({ path, embedder: endpoint().embedder });
    const noise = Array.from({ length: 40 }, (_, at) => ({
      text: `a vehicle of the year ${at}`,
      source: 'user',
    }));
    await book.add(
      's',
      [...noise, { text: 'I suggest the Kia as your next vehicle.', source: 'assistant' }],
      inList,
    );
    await memory.recall('s', { query: 'wake' });
    await filled(path, 41);
    expect((await recalled('s', 'Which vehicle did you suggest?'))[0]).toContain('Kia');
    expect(await recalled('s', 'suggest a Kia', 8)).toContain(
      'I suggest the Kia as your next vehicle.',
    );
  });

  test('while no event has its vector, words alone decide, with their cut-off', async () => {
    const path = files.path();
    const plain = files.open({ path });
    const texts = ['the boat of Tom is called Albatross', 'Albatross', 'of Tom'];
    await plain.book.add(
      's',
      [...texts, ...Array.from({ length: 60 }, (_, at) => `Tom said ${at}`)].map((text) => ({
        text,
      })),
      inList,
    );
    const found = await plain.recalled('s', 'boat Albatross Tom', 50);
    await plain.memory.close();
    const { embedder: slow } = endpoint((body) =>
      inputs(body).length > 1 ? fails(500)() : answerOf(body),
    );
    const { recalled, watch } = files.open({ path, embedder: slow });
    expect(await recalled('s', 'boat Albatross Tom', 50)).toEqual(found);
    expect(watch.kinds).toEqual(['hybrid']);
  });

  test('captured events get vectors in the background, in batches', async () => {
    const path = files.path();
    const { sent, ...end } = endpoint();
    const { memory, recalled } = files.open({ path, embedder: end.embedder });
    await memory.capture(
      's',
      Array.from({ length: 70 }, (_, at) => ({ text: `a vehicle ${at}` })),
    );
    expect(sent).toEqual([]);
    await recalled('s', 'x');
    await filled(path, 70);
    expect(sent.map((body) => inputs(body).length)).toEqual([1, 32, 32, 6]);
    expect(sent[1]).toMatchObject({ model: 'm', encoding_format: 'float' });
  });

  test('a failing endpoint is logged and skipped for a while, and terms decide', async () => {
    const { sent, failures, later, embedder: broken } = endpoint(fails(500));
    const { book, recalled, watch } = files.open({ path: files.path(), embedder: broken });
    await book.add('s', EVENTS, inList);
    expect((await recalled('s', 'shrimp party'))[0]).toContain('shrimp');
    expect((await recalled('s', 'Kia'))[0]).toContain('Kia');
    expect([watch.kinds, failures.length]).toEqual([['fallback', 'fallback'], 1]);
    const requestCount = sent.length;
    later(30_001);
    await recalled('s', 'Kia');
    expect([failures.length, sent.length - requestCount]).toEqual([2, 1]);
  });

  test('a recall waits for the endpoint no longer than configured', async () => {
    const never = embedder({
      name: 'p/m',
      model: 'm',
      timeoutMs: 50,
      post: (_body, signal) =>
        new Promise((_resolve, reject) => {
          signal.addEventListener('abort', () => reject(signal.reason));
        }),
      onFailure: () => {},
    });
    const { book, recalled } = files.open({ path: files.path(), embedder: never });
    await book.add('s', EVENTS, inList);
    expect((await recalled('s', 'Kia'))[0]).toContain('Kia');
  });

  test.each<[string, Json]>([
    ['no list', { object: 'list' }],
    ['too few', { data: [] }],
    ['no object', 'nope'],
  ])('an invalid answer (%s) counts as a failure', async (_name, answer) => {
    const { embedder: odd, failures } = endpoint(() => answer);
    expect(await odd.embedQuery('x')).toBeUndefined();
    expect(failures).toHaveLength(1);
  });

  test('vectors may be numbers or base64; one of length 0 is not used', async () => {
    const floats = Buffer.from(new Float32Array([3, 4]).buffer).toString('base64');
    const answers: Json[] = [
      { data: [{ embedding: [3, 4] }] },
      { data: [{ embedding: floats }] },
      { data: [{ embedding: [0, 0] }] },
      { data: [{ embedding: ['3', 4] }] },
      { data: [{ embedding: 'abc' }] },
    ];
    const { embedder: own } = endpoint(() => answers.shift()!);
    const got = [];
    for (let i = 0; i < 5; i++) got.push(await own.embedQuery('x'));
    const fraction = new Float32Array([0.6, 0.8]);
    expect(got).toEqual([fraction, fraction, undefined, undefined, undefined]);
  });

  test('a refused text does not keep the others from their vectors', async () => {
    const path = files.path();
    const { embedder: picky } = endpoint((body) =>
      inputs(body).some((text) => text.includes('lawn')) ? fails(400)() : answerOf(body),
    );
    const { memory, book, recalled } = files.open({ path, embedder: picky });
    await book.add('s', EVENTS, inList);
    await filled(path, EVENTS.length);
    expect((await recalled('s', 'Which medicine?'))[0]).toContain('pills');
    expect(await recalled('s', 'lawn')).toContain('the lawn is mowed');
    await memory.close();
  });

  test('how many events wait for vectors, how many were refused, and why it stands still', async () => {
    const one = files.open({ path: files.path(), embedder: endpoint(fails(503)).embedder });
    await one.book.add('s', EVENTS, inList);
    await until(() => one.memory.vectors!()!.failure !== null);
    expect(await one.book.spaces('', 10)).toEqual([{ space: 's', events: 5, waiting: 5 }]);
    expect(one.memory.vectors!()).toMatchObject({
      refused: 0,
      failure: { message: expect.stringContaining('503') },
    });
    const path = files.path();
    const { embedder: picky } = endpoint((body) =>
      inputs(body).some((text) => text.includes('lawn')) ? fails(400)() : answerOf(body),
    );
    const two = files.open({ path, embedder: picky });
    await two.book.add('s', EVENTS, inList);
    await filled(path, EVENTS.length);
    expect(await two.book.spaces('', 10)).toEqual([{ space: 's', events: 5, waiting: 0 }]);
    expect(two.memory.vectors!()).toEqual({ refused: 1, failure: null });
    await two.memory.close();
    // Vectors of another model count for nothing.
    const other = { ...picky, name: 'p/other', embed: fails(503) as never };
    const three = files.open({ path, embedder: other });
    expect(await three.book.spaces('', 10)).toEqual([{ space: 's', events: 5, waiting: 5 }]);
  });

  test('another model gets its own vectors, which are never compared with old ones', async () => {
    const path = files.path();
    const one = files.open({ path, embedder: endpoint().embedder });
    await one.book.add('s', EVENTS, inList);
    await filled(path, EVENTS.length);
    await one.memory.close();
    const sent: number[] = [];
    const longer = embedder({
      name: 'p/longer',
      model: 'longer',
      timeoutMs: 200,
      post: async (body) => {
        sent.push(inputs(body).length);
        return { data: inputs(body).map((text) => ({ embedding: [...vectorOf(text), 0, 0, 0] })) };
      },
      onFailure: () => {},
    });
    const two = files.open({ path, embedder: longer });
    await until(async () => (await two.recalled('s', 'medicine'))[0]?.includes('pills') === true);
    expect(sent.filter((texts) => texts > 1)).toEqual([EVENTS.length]);
  });

  test('vectors are removed with their event and their space', async () => {
    const path = files.path();
    const { memory, book } = files.open({ path, embedder: endpoint().embedder });
    await book.add('s', EVENTS, inList);
    await book.add('t', EVENTS.slice(0, 2), inList);
    await filled(path, 7);
    await book.remove('s', (await book.list('s', { limit: 1, order: 'asc' })).events[0]!.id);
    await filled(path, 6);
    await memory.erase('s');
    await filled(path, 2);
  });
});

describe('vector distance', () => {
  test('quantized vectors keep the order of angles', () => {
    fc.assert(
      fc.property(
        fc.array(
          fc.array(fc.integer({ min: -1000, max: 1000 }), { minLength: 48, maxLength: 48 }),
          { minLength: 3, maxLength: 8 },
        ),
        (rows) => {
          const units = rows.map(normalized);
          if (units.includes(undefined)) return;
          const [wanted, ...others] = units as Float32Array[];
          for (const other of others) {
            const exact = other.reduce((sum, value, at) => sum + value * wanted![at]!, 0);
            expect(Math.abs(cosine(quantized(other), wanted!) - exact)).toBeLessThan(0.02);
          }
        },
      ),
    );
  });

  test('the coarse comparison finds the nearest sign patterns', () => {
    const all = [
      [1, 1, 1, 1],
      [1, 1, -1, -1],
      [-1, -1, -1, -1],
    ].map((row) => signs(Float32Array.from(row)));
    const joined = new Uint32Array(all.flatMap((one) => [...one]));
    const wanted = signs(Float32Array.from([1, 1, 1, -1]));
    expect(fewestDifferences(joined, 3, wanted, 1)).toEqual([0, 1]);
    expect(fewestDifferences(joined, 3, wanted, 3)).toEqual([0, 1, 2]);
    expect(fewestDifferences(joined, 0, wanted, 3)).toEqual([]);
  });
});
