/** What begins a rest, how long it lasts, and how it ends: the table of signs, line by line. */

import { describe, expect, test } from 'bun:test';
import { AVAILABLE, COOLING, DUE } from '../../../src/upstream/health/cooldown.ts';
import type { Sign } from '../../../src/upstream/health/signs.ts';
import {
  OVERLOADED,
  QUOTA,
  RATE_LIMIT,
  REFUSED,
  session,
  type TestRing,
  testRing,
} from './places.ts';

const ANY = session(1);

/** One request to a model, which ends at once with this sign. */
const send = ({ ring }: TestRing, sign: Sign, model = 'm') =>
  ring.lease(model, ANY).settle(sign, ring.now);

const standing = ({ ring, now }: TestRing, model = 'm') =>
  ring.placeFor(model, ANY).availability(now);

/** Seconds until the place is due; at that moment a request gets this sign again, and so on. */
function restsOf(world: TestRing, sign: Sign, times: number): number[] {
  return Array.from({ length: times }, () => {
    send(world, sign);
    const { until } = world.ring.placeFor('m', ANY);
    const seconds = (until - world.now) / 1000;
    world.pass(until - world.now);
    return seconds;
  });
}

describe('how long something rests', () => {
  test('a rate limit: 2 s doubling to 60 s', () => {
    expect(restsOf(testRing(1), RATE_LIMIT, 8)).toEqual([2, 4, 8, 16, 32, 60, 60, 60]);
  });

  test('an overload: the same', () => {
    expect(restsOf(testRing(1), OVERLOADED, 7)).toEqual([2, 4, 8, 16, 32, 60, 60]);
  });

  test.each([
    ['refused', REFUSED],
    ['used up', QUOTA],
  ])('a key that is %s: 1 min doubling to 1 h', (_what, sign) => {
    const minutes = restsOf(testRing(1), sign, 8).map((seconds) => seconds / 60);
    expect(minutes).toEqual([1, 2, 4, 8, 16, 32, 60, 60]);
  });

  test('failures: 5 s doubling to 300 s', () => {
    const world = testRing(1);
    for (let i = 0; i < 4; i++) send(world, 'failed');
    expect(restsOf(world, 'failed', 8)).toEqual([5, 10, 20, 40, 80, 160, 300, 300]);
  });

  test('what the vendor asks for is obeyed up to 300 s, and is no step of the doubling', () => {
    const asked = (askedMs: number) => ({ ...RATE_LIMIT, askedMs });
    const world = testRing(1);
    expect(restsOf(world, asked(7000), 1)).toEqual([7]);
    expect(restsOf(world, asked(86_400_000), 1)).toEqual([300]);
    expect(restsOf(world, asked(0), 1)).toEqual([0]);
  });

  test('max_cooldown bounds every kind of rest', () => {
    const short = { askedMs: 10_000, longestMs: 10_000 };
    for (const sign of [RATE_LIMIT, OVERLOADED, REFUSED, QUOTA]) {
      expect(Math.max(...restsOf(testRing(1, short), sign, 6))).toBe(10);
    }
  });
});

describe('failures', () => {
  test('the fifth in a row begins a rest; an answer between starts the count anew', () => {
    const world = testRing(1);
    for (let i = 0; i < 4; i++) send(world, 'failed');
    send(world, 'answered');
    for (let i = 0; i < 4; i++) send(world, 'failed');
    expect(standing(world)).toBe(AVAILABLE);
    send(world, 'failed');
    expect(standing(world)).toBe(COOLING);
  });

  test('more than half of at least ten within 30 s begin a rest, exactly half do not', () => {
    const alternating = (world: TestRing, pairs: number) => {
      for (let i = 0; i < pairs; i++) {
        send(world, 'answered');
        send(world, 'failed');
        world.pass(100);
      }
    };
    const world = testRing(1);
    alternating(world, 20);
    expect(standing(world)).toBe(AVAILABLE);
    send(world, 'failed');
    expect(standing(world)).toBe(COOLING);
    // Half a minute later those before count no more.
    const later = testRing(1);
    alternating(later, 20);
    later.pass(31_000);
    send(later, 'failed');
    expect(standing(later)).toBe(AVAILABLE);
  });

  test('fewer than ten are too few to tell', () => {
    const world = testRing(1);
    send(world, 'answered');
    for (let i = 0; i < 4; i++) send(world, 'failed');
    send(world, 'answered');
    for (let i = 0; i < 3; i++) send(world, 'failed');
    // 7 of 9.
    expect(standing(world)).toBe(AVAILABLE);
    send(world, 'failed');
    // 8 of 10.
    expect(standing(world)).toBe(COOLING);
  });

  test('what says nothing counts for nothing', () => {
    const world = testRing(1);
    for (let i = 0; i < 4; i++) send(world, 'failed');
    for (let i = 0; i < 50; i++) send(world, i % 2 === 0 ? 'neither' : 'no_model');
    expect(standing(world)).toBe(AVAILABLE);
    send(world, 'failed');
    expect(standing(world)).toBe(COOLING);
  });
});

describe('what a rest is about', () => {
  const texts = (world: TestRing, model: string) =>
    new Set(
      Array.from({ length: 50 }, (_, i) => {
        const lease = world.ring.lease(model, session(i * 7919));
        lease.settle('neither', world.now);
        return lease.text;
      }),
    );

  test('a rate limit: one key with one model', () => {
    const world = testRing(2);
    const first = world.ring.lease('m', ANY);
    first.settle(RATE_LIMIT, world.now);
    expect(texts(world, 'm')).toEqual(new Set([first.text === 'a' ? 'b' : 'a']));
    expect(texts(world, 'other')).toEqual(new Set(['a', 'b']));
  });

  test('a refused key: every model, and requests without a model', () => {
    const world = testRing(2);
    const first = world.ring.lease('m', ANY);
    first.settle(REFUSED, world.now);
    const other = first.text === 'a' ? 'b' : 'a';
    expect(texts(world, 'm')).toEqual(new Set([other]));
    expect(texts(world, 'never asked')).toEqual(new Set([other]));
    expect([world.ring.leaseAny().text, world.ring.leaseAny().text]).toEqual([other, other]);
  });

  test('an overload: every key of one model', () => {
    const world = testRing(3);
    send(world, OVERLOADED);
    for (let i = 0; i < 50; i++) {
      expect(world.ring.placeFor('m', session(i)).availability(world.now)).toBe(COOLING);
    }
    expect(standing(world, 'other')).toBe(AVAILABLE);
  });

  test('a model is forgotten when clients name too many, one that rests later than others', () => {
    const world = testRing(1);
    send(world, RATE_LIMIT, 'rests');
    for (let i = 0; i < 5000; i++) send(world, 'answered', `made-up-${i}`);
    expect([...world.ring.models].length).toBe(1000);
    expect(standing(world, 'rests')).toBe(COOLING);
  });
});

describe('how a rest ends', () => {
  test('one request tries; the others do not see it as free until that one has ended', () => {
    const world = testRing(2);
    const first = world.ring.lease('m', ANY);
    first.settle(RATE_LIMIT, world.now);
    world.pass(2000);
    expect(standing(world)).toBe(DUE);
    const probe = world.ring.lease('m', ANY);
    expect(probe.text).toBe(first.text);
    for (let i = 0; i < 50; i++) {
      const other = world.ring.lease('m', session(i));
      expect(other.text).not.toBe(first.text);
      other.settle('answered', world.now);
    }
    probe.settle('answered', world.now);
    world.pass(10_000);
    expect(world.ring.lease('m', ANY).text).toBe(first.text);
  });

  test('a request that ends without saying anything leaves the trial to the next', () => {
    const world = testRing(1);
    send(world, RATE_LIMIT);
    world.pass(2000);
    send(world, 'neither');
    expect(standing(world)).toBe(DUE);
  });

  test('a failed trial: it rests twice as long, with one failure', () => {
    const world = testRing(1);
    for (let i = 0; i < 5; i++) send(world, 'failed');
    world.pass(5000);
    send(world, 'failed');
    expect(world.ring.placeFor('m', ANY).until - world.now).toBe(10_000);
  });

  test('then its share grows from nothing to all within 10 s', () => {
    const world = testRing(2);
    const sessions = Array.from({ length: 2000 }, (_, i) => session(Math.imul(i, 0x9e3779b1)));
    const users = () =>
      sessions.filter((one) => world.ring.placeFor('m', one).key.secret?.reveal() === 'a').length;
    const usual = users();
    const ofA = sessions.find((one) => world.ring.placeFor('m', one).key.secret?.reveal() === 'a')!;
    world.ring.lease('m', ofA).settle(RATE_LIMIT, world.now);
    expect(users()).toBe(0);
    world.pass(2000);
    world.ring.lease('m', ofA).settle('answered', world.now);
    const grows = Array.from({ length: 11 }, () => {
      const now = users();
      world.pass(1000);
      return now;
    });
    expect(grows[0]).toBe(0);
    expect(grows).toEqual([...grows].sort((a, b) => a - b));
    expect(grows[5]).toBeGreaterThan(usual * 0.4);
    expect(grows[10]).toBe(usual);
  });

  test('an old answer does not end it, and old refusals do not make it longer', () => {
    const world = testRing(1);
    const old = Array.from({ length: 50 }, () => world.ring.lease('m', ANY));
    send(world, RATE_LIMIT);
    for (const [i, lease] of old.entries()) {
      lease.settle(i % 2 === 0 ? RATE_LIMIT : 'answered', world.now);
    }
    expect(world.ring.placeFor('m', ANY).until - world.now).toBe(2000);
    expect(standing(world)).toBe(COOLING);
  });

  test('an old refusal that names a longer time is obeyed', () => {
    const world = testRing(1);
    const old = world.ring.lease('m', ANY);
    send(world, { ...RATE_LIMIT, askedMs: 1000 });
    old.settle({ ...RATE_LIMIT, askedMs: 9000 }, world.now);
    expect(world.ring.placeFor('m', ANY).until - world.now).toBe(9000);
  });

  test('when all rest, the one that is due first is asked, and its answer ends the rest', () => {
    const world = testRing(2);
    const first = world.ring.lease('m', ANY);
    first.settle({ ...RATE_LIMIT, askedMs: 9000 }, world.now);
    const second = world.ring.lease('m', ANY);
    second.settle({ ...RATE_LIMIT, askedMs: 3000 }, world.now);
    const forced = world.ring.lease('m', ANY);
    expect(forced.text).toBe(second.text);
    forced.settle('answered', world.now);
    expect(standing(world)).toBe(AVAILABLE);
  });
});

describe('a request that waits in line', () => {
  test('moves to another key if its own begins to rest meanwhile', () => {
    const world = testRing(2);
    const waiting = world.ring.lease('m', ANY);
    const sent = world.ring.lease('m', ANY);
    expect(sent.text).toBe(waiting.text);
    sent.settle(RATE_LIMIT, world.now);
    world.ring.renew(waiting, ANY);
    expect(waiting.text).not.toBe(sent.text);
    waiting.settle('answered', world.now);
    for (const place of [...world.ring.models][0]!.places) expect(place.load.waiting).toBe(0);
  });
});

describe('load', () => {
  /** Streams whose first content comes after this time, one after the other. */
  const streams = (world: TestRing, who: number, ms: number) => {
    const lease = world.ring.lease('m', session(who));
    world.pass(ms);
    lease.settle('answered', world.now, true);
  };
  /** Two sessions, each with a key of its own. */
  const two = (world: TestRing) => {
    const at = (hash: number) => world.ring.placeFor('m', session(hash));
    const first = at(0);
    let other = 1;
    while (at(other) === first) other++;
    return [0, other] as const;
  };

  test('a session leaves a key from twice the load of the next on, and returns below 1.5 times', () => {
    const world = testRing(2);
    const [one, other] = two(world);
    const own = world.ring.placeFor('m', session(one));
    streams(world, other, 1000);
    streams(world, one, 1900);
    expect(world.ring.placeFor('m', session(one))).toBe(own);
    streams(world, one, 2100);
    expect(world.ring.placeFor('m', session(one))).not.toBe(own);
    // The other gets slower: 1.3 times is little enough.
    streams(world, other, 1600);
    expect(world.ring.placeFor('m', session(one))).toBe(own);
  });

  test('those that wait for their first byte count, those that stream do not', () => {
    const world = testRing(2);
    const [one, other] = two(world);
    const own = world.ring.placeFor('m', session(one));
    streams(world, other, 1000);
    streams(world, one, 1000);
    const waiting = [0, 1].map(() => world.ring.lease('m', session(one)));
    expect(world.ring.placeFor('m', session(one))).not.toBe(own);
    for (const lease of waiting) lease.settle('neither', world.now);
    expect(world.ring.placeFor('m', session(one))).toBe(own);
  });

  test('a measurement of half a minute ago says nothing', () => {
    const world = testRing(2);
    const [one, other] = two(world);
    const own = world.ring.placeFor('m', session(one));
    streams(world, other, 100);
    streams(world, one, 5000);
    expect(world.ring.placeFor('m', session(one))).not.toBe(own);
    world.pass(31_000);
    streams(world, other, 100);
    expect(world.ring.placeFor('m', session(one))).toBe(own);
  });
});
