/** A second request beside a slow one: when it is sent, whose answer counts, and what becomes of the other. */

import { afterEach, describe, expect, test } from 'bun:test';
import type { TryAt } from '../../src/gateway/tries/attempt-place.ts';
import { hedged } from '../../src/gateway/tries/hedge.ts';
import { Hedging } from '../../src/upstream/health/hedging.ts';
import { until } from '../support/until.ts';
import {
  type RawUpstream,
  rawUpstream,
  rawWorld,
  saying,
  type Wire,
  whole,
} from './raw-upstream.ts';

const open: RawUpstream[] = [];
afterEach(() => {
  for (const one of open.splice(0)) one.stop();
});

const words = (text: string) => saying('openai-chat', true, text);

/** Answers by the number of the request; keeps the wires of all requests. */
function vendor(answer: (wire: Wire, number: number) => unknown) {
  const wires: Wire[] = [];
  const upstream = rawUpstream((wire, number) => {
    wires.push(wire);
    return answer(wire, number);
  });
  open.push(upstream);
  return Object.assign(upstream, { wires, url: upstream.url });
}

const says = async (wire: Wire, text: string) => {
  await wire.write(words(text));
  wire.end();
};

function world(a: RawUpstream, b: RawUpstream, more = 'hedge: true', keys = '[key-of-a]') {
  return rawWorld(
    `providers:
  a: { protocol: openai-chat, base_url: "${a.url}", keys: ${keys} }
  b: { protocol: openai-chat, base_url: "${b.url}", keys: [key-of-b] }
routes: [{ to: [a/m, b/m] }]
retry: { attempts: 1, base_delay: 0, ${more} }`,
  );
}

const USUAL = 20;

/** Enough streams to know what is usual. */
async function warm(of: ReturnType<typeof world>, count = USUAL) {
  for (let i = 0; i < count; i++) await of.ask('openai-chat', true);
}

describe('a stream that takes unusually long to begin', () => {
  test('is asked of the next target, whose answer is the answer; the slow request is cancelled', async () => {
    const a = vendor((wire, number) => (number <= USUAL ? says(wire, 'From a.') : undefined));
    const b = vendor((wire) => says(wire, 'From b.'));
    const of = world(a, b);
    await warm(of);
    expect([a.asked, b.asked]).toEqual([USUAL, 0]);
    const seen = await of.ask('openai-chat', true);
    expect([seen.status, seen.reset, seen.headers.get('x-hopgate-target')]).toEqual([
      200,
      false,
      'b/m',
    ]);
    expect(seen.text).toContain('From b.');
    expect([a.asked, b.asked]).toEqual([USUAL + 1, 1]);
    while (!a.wires.at(-1)!.gone) await Bun.sleep(5);
    // The slow target is not to blame.
    expect(of.health().rests).toEqual([]);
    expect(of.summaries.at(-1)).toMatchObject({ tries: 2, status: 200 });
  });

  test('goes to another key of the same target first', async () => {
    const a = vendor((wire, number) => (number === USUAL + 1 ? undefined : says(wire, 'From a.')));
    const b = vendor((wire) => says(wire, 'From b.'));
    const of = world(a, b, 'hedge: true', '[key-1-of-a, key-2-of-a]');
    await warm(of);
    expect((await of.ask('openai-chat', true)).text).toContain('From a.');
    expect([a.asked, b.asked]).toEqual([USUAL + 2, 0]);
  });

  test('the slow one answers after all, before the second does', async () => {
    const a = vendor(async (wire, number) => {
      if (number > USUAL) while (b.asked === 0) await Bun.sleep(5);
      await says(wire, 'From a.');
    });
    const b = vendor(() => {});
    const of = world(a, b);
    await warm(of);
    const seen = await of.ask('openai-chat', true);
    expect([seen.text.includes('From a.'), b.asked]).toEqual([true, 1]);
    while (!b.wires[0]!.gone) await Bun.sleep(5);
  });

  test('a failure of one leaves the other its time', async () => {
    const a = vendor(async (wire, number) => {
      if (number > USUAL) {
        while (b.asked === 0) await Bun.sleep(5);
        await Bun.sleep(50);
      }
      await says(wire, 'From a.');
    });
    const b = vendor((wire) => wire.end());
    const of = world(a, b);
    await warm(of);
    const seen = await of.ask('openai-chat', true);
    expect([seen.status, seen.text.includes('From a.')]).toEqual([200, true]);
  });

  test('what the second refuses for good says nothing of the first', async () => {
    const a = vendor(async (wire, number) => {
      if (number > USUAL) {
        while (b.asked === 0) await Bun.sleep(5);
        await Bun.sleep(50);
      }
      await says(wire, 'From a.');
    });
    const refusal = { error: { message: 'Not with me.', type: 'invalid_request_error' } };
    const b = vendor(async (wire) => {
      await wire.write(whole(400, JSON.stringify(refusal)));
      wire.end();
    });
    const of = world(a, b);
    await warm(of);
    const seen = await of.ask('openai-chat', true);
    expect([seen.status, seen.text.includes('From a.'), b.asked]).toEqual([200, true, 1]);
  });

  test('both fail: the client gets an error, once', async () => {
    const a = vendor(async (wire, number) => {
      if (number <= USUAL) return says(wire, 'From a.');
      while (b.asked === 0) await Bun.sleep(5);
      return wire.end();
    });
    const b = vendor((wire) => wire.end());
    const of = world(a, b);
    await warm(of);
    const seen = await of.ask('openai-chat', true);
    expect([seen.status, a.asked, b.asked]).toEqual([502, USUAL + 1, 1]);
  });

  test.each([
    ['it is off', 'hedge: false', true, USUAL],
    ['too little is known', 'hedge: true', true, USUAL - 1],
    ['the answer is not streamed', 'hedge: true', false, USUAL],
  ])('is waited for when %s', async (_why, more, stream, before) => {
    let late = false;
    const a = vendor(async (wire, number) => {
      if (number > before) {
        await Bun.sleep(150);
        late = true;
      }
      await wire.write(saying('openai-chat', stream || number <= before, 'From a.'));
      wire.end();
    });
    const b = vendor((wire) => says(wire, 'From b.'));
    const of = world(a, b, more);
    await warm(of, before);
    expect((await of.ask('openai-chat', stream)).text).toContain('From a.');
    expect([late, b.asked]).toEqual([true, 0]);
  });
});

describe('what is unusual, and how often', () => {
  test('longer than 95 of 100 of the latest streams', () => {
    const hedging = new Hedging();
    for (let i = 1; i < USUAL; i++) hedging.began('m', 100 * i);
    expect(hedging.waitFor('m')).toBeUndefined();
    hedging.began('m', 2000);
    expect(hedging.waitFor('m')).toBe(1900);
    expect(hedging.waitFor('other')).toBeUndefined();
    for (let i = 0; i < 64; i++) hedging.began('m', 7);
    expect(hedging.waitFor('m')).toBe(7);
  });

  test('at most five of a hundred requests, also after a long time without any', () => {
    const hedging = new Hedging();
    let taken = 0;
    for (let request = 1; request <= 5000; request++) {
      hedging.waitFor('m');
      if (hedging.take()) taken++;
      expect(taken).toBeLessThanOrEqual(request / 20);
    }
    expect(taken).toBe(250);
    for (let i = 0; i < 5000; i++) hedging.waitFor('m');
    let burst = 0;
    while (hedging.take()) burst++;
    expect(burst).toBe(10);
  });
});

test('of two tries that begin to answer at the same moment, one is the answer and the other is given up', async () => {
  const both = Promise.withResolvers<void>();
  const at = (name: string) =>
    ({ name, upstream: { keys: { now: 0 } }, lease: { settle: () => {} } }) as unknown as TryAt;
  const names: string[] = [];
  const discarded: unknown[] = [];
  const decided = await hedged({
    first: at('first'),
    after: 1,
    second: () => at('second'),
    async run(place) {
      const { name } = place as unknown as { name: string };
      names.push(name);
      if (name === 'second') both.resolve();
      await both.promise;
      return { kind: 'answer' as const, name };
    },
    onFailed: () => {},
    discard: (answer) => discarded.push(answer.name),
  });
  expect(decided.answer).toHaveProperty('kind', 'answer');
  const answered = (decided.answer as { name: string }).name;
  await until(() => (discarded.length > 0 ? true : undefined));
  expect([answered, ...discarded].sort()).toEqual(names.sort());
});
