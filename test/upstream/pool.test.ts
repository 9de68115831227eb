/** What a reload may not forget: requests that run, and keys that a vendor refused. */

import { describe, expect, test } from 'bun:test';
import type { Config } from '../../src/config/config.ts';
import { environmentFrom } from '../../src/config/environment.ts';
import { parseConfig } from '../../src/config/load.ts';
import { Secret } from '../../src/config/secret.ts';
import { Abort } from '../../src/lib/loop/abort.ts';
import { ConcurrencyLimit } from '../../src/upstream/concurrency-limit.ts';
import { UpstreamPool } from '../../src/upstream/pool.ts';
import { sameConfig } from '../../src/upstream/same-config.ts';
import type { Upstream, UpstreamCall } from '../../src/upstream/upstream.ts';

const BASE = { protocol: 'openai-chat', base_url: 'http://up.test/v1', keys: ['key-1', 'key-2'] };

function configOf(provider: object = {}, more: object = {}): Config {
  const text = JSON.stringify({ providers: { up: { ...BASE, ...provider } }, ...more });
  const loaded = parseConfig(text, 'test.yaml', environmentFrom({}, '/nowhere'));
  if (!loaded.ok) throw new Error(JSON.stringify(loaded.problems));
  return loaded.config;
}

const REFUSED = { reason: 'key_refused', status: 401 } as const;
const options = { builtIn: {}, proxied: () => false };

/** The provider before a reload and after it. */
function reloaded(before: object, after: object, more: object = {}): [Upstream, Upstream] {
  const first = configOf(before);
  const second = configOf(after, more);
  const pool = new UpstreamPool(options, first.providers);
  const old = pool.of(first.providers.up!);
  return [old, pool.next(second.providers).of(second.providers.up!)];
}

/** Takes a slot of an upstream that has one. */
function enter(upstream: Upstream): UpstreamCall {
  const call = upstream.acquire(new Abort());
  if (call instanceof Promise) throw new Error('no slot was free');
  call.answered(new Headers());
  return call;
}

const waits = (upstream: Upstream) => upstream.acquire(new Abort()) instanceof Promise;

describe('a reload', () => {
  test('that leaves a provider as it was does not let more requests at it than it takes', () => {
    const one = { concurrency: 1 };
    const [old, now] = reloaded(one, one, { keep_alive: 14 });
    enter(old);
    expect(now).toBe(old);
    expect(waits(now)).toBe(true);
  });

  test('that changes something else of a provider does not let more requests at it than it takes', async () => {
    const [old, now] = reloaded({ concurrency: 1 }, { concurrency: 1, models: ['m'] });
    expect(now).not.toBe(old);
    const running = enter(old);
    const waiting = now.acquire(new Abort());
    expect(waiting).toBeInstanceOf(Promise);
    running.release();
    (await waiting).answered(new Headers());
  });

  test('does not forget a request to a provider that was not asked before it', () => {
    const first = configOf({ concurrency: 1 });
    const second = configOf({ concurrency: 1 }, { keep_alive: 14 });
    const pool = new UpstreamPool(options, first.providers);
    const next = pool.next(second.providers);
    // An exchange that began before the reload comes to this target only now.
    enter(pool.of(first.providers.up!));
    expect(waits(next.of(second.providers.up!))).toBe(true);
  });

  test('that raises the limit lets in as many as it now takes, those who run counted', () => {
    const [old, now] = reloaded({ concurrency: 1 }, { concurrency: 2 });
    enter(old);
    enter(now);
    expect(waits(now)).toBe(true);
  });

  test.each([
    ['nothing of a provider', {}],
    ['its models', { models: ['m'] }],
    ['its other keys', { keys: ['key-3', 'key-1'] }],
  ])('that changes %s does not ask a resting key again', (_what, change) => {
    const first = configOf();
    const pool = new UpstreamPool(options, first.providers);
    const key = pool.of(first.providers.up!).keys.leaseAny();
    expect(key.text).toBe('key-1');
    key.settle(REFUSED, performance.now());
    const second = configOf(change, { keep_alive: 14 });
    const { keys } = pool.next(second.providers).of(second.providers.up!);
    expect(keys.available()).toBe(1);
    expect([keys.leaseAny().text, keys.leaseAny().text]).not.toContain('key-1');
  });

  test('does not keep a key resting for a refusal by another place or with other headers', () => {
    for (const change of [
      { base_url: 'http://other.test/v1' },
      { headers: { 'x-org': 'other' } },
      { auth: 'x-api-key' },
    ]) {
      const first = configOf();
      const pool = new UpstreamPool(options, first.providers);
      pool.of(first.providers.up!).keys.leaseAny().settle(REFUSED, performance.now());
      const second = configOf(change);
      expect(pool.next(second.providers).of(second.providers.up!).keys.available()).toBe(2);
    }
  });

  test('does not hold a provider’s requests against another place of the same name', () => {
    const [old, now] = reloaded(
      { concurrency: 1 },
      { concurrency: 1, base_url: 'http://other.test/v1' },
    );
    enter(old);
    expect(waits(now)).toBe(false);
  });

  test('that changes a key alone puts the new one in force', () => {
    const [, now] = reloaded({ keys: ['key-1'] }, { keys: ['key-9'] });
    expect(now.keys.leaseAny().text).toBe('key-9');
  });
});

describe('a limit that changes', () => {
  const asker = () => new AbortController();
  const take = (slots: ConcurrencyLimit) => slots.take(asker()) as () => void;

  test('a smaller limit admits no request before enough have left', async () => {
    const slots = new ConcurrencyLimit(2);
    const [first, second] = [take(slots), take(slots)];
    let entered = 0;
    const waiting = Promise.resolve(slots.take(asker())).then((leave) => {
      entered++;
      return leave;
    });
    slots.resize(1);
    first();
    await Bun.sleep(0);
    expect(entered).toBe(0);
    second();
    await waiting;
    expect(slots.take(asker())).toBeInstanceOf(Promise);
  });

  test.each([2, 0])('to %i lets those in who wait', async (limit) => {
    const slots = new ConcurrencyLimit(1);
    take(slots);
    const waiting = slots.take(asker());
    expect(waiting).toBeInstanceOf(Promise);
    slots.resize(limit);
    await waiting;
    expect(slots.take(asker()) instanceof Promise).toBe(limit === 2);
  });
});

describe('two parts of configurations', () => {
  test('are not the same when only a secret, a member or the order of a list differs', () => {
    const part = (secret: string, list: number[]) => ({ a: { key: new Secret(secret) }, list });
    expect(sameConfig(part('one', [1, 2]), part('one', [1, 2]))).toBe(true);
    expect(sameConfig(part('one', [1, 2]), part('two', [1, 2]))).toBe(false);
    expect(sameConfig(part('one', [1, 2]), part('one', [2, 1]))).toBe(false);
    expect(sameConfig({ key: new Secret('one') }, { key: 'one' })).toBe(false);
    expect(sameConfig({ key: 'one' }, { key: new Secret('one') })).toBe(false);
    expect(sameConfig({ a: 1 }, { a: 1, b: undefined })).toBe(false);
    expect(sameConfig({ a: 1, b: 2 }, { b: 2, a: 1 })).toBe(true);
    expect(sameConfig([], {})).toBe(false);
    expect(sameConfig(/a/, /b/)).toBe(false);
  });
});
