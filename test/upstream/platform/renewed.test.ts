/** Credentials that run out: fetched once for all, renewed ahead, and kept through failures while they hold. */

import { describe, expect, test } from 'bun:test';
import { type Lease, Renewed } from '../../../src/upstream/platform/renewed.ts';
import { until } from '../../support/until.ts';

const HOUR = 3_600_000;

class Source {
  now = 1_000_000;
  fetched = 0;
  ended = 0;
  fails = false;
  readonly renewed = new Renewed<string>(
    () => this.#fetch(),
    () => this.now,
  );

  async #fetch(): Promise<Lease<string>> {
    this.fetched++;
    await Bun.sleep(1);
    this.ended++;
    if (this.fails) throw new Error('no');
    return { value: `token ${this.fetched}`, until: this.now + HOUR };
  }
}

describe('renewed credentials', () => {
  test('are fetched once for all that wait, and then given at once', async () => {
    const source = new Source();
    const all = await Promise.all([1, 2, 3].map(() => source.renewed.get()));
    expect(all).toEqual(['token 1', 'token 1', 'token 1']);
    expect(source.renewed.get()).toBe('token 1');
    expect(source.fetched).toBe(1);
  });

  test('are renewed before they end, behind the requests', async () => {
    const source = new Source();
    await source.renewed.get();
    source.now += HOUR - 200_000;
    expect(source.renewed.get()).toBe('token 1');
    expect(source.renewed.get()).toBe('token 1');
    await until(() => source.renewed.get() === 'token 2');
    expect(source.fetched).toBe(2);
  });

  test('a failed renewal does no harm while the old ones hold, and is tried again after a pause', async () => {
    const source = new Source();
    await source.renewed.get();
    source.fails = true;
    source.now += HOUR - 200_000;
    for (let i = 0; i < 5; i++) {
      expect(source.renewed.get()).toBe('token 1');
      await Bun.sleep(3);
    }
    expect(source.fetched).toBe(2);
    source.now += 16_000;
    expect(source.renewed.get()).toBe('token 1');
    await until(() => source.ended === 3);
    expect(source.fetched).toBe(3);
    // In the last seconds a request waits for new ones, and takes the old ones where there are none.
    source.now = 1_000_000 + HOUR - 5000;
    expect(await source.renewed.get()).toBe('token 1');
    source.now += 6000;
    await expect(source.renewed.get()).rejects.toThrow('no');
    source.fails = false;
    expect(await source.renewed.get()).toBe('token 6');
  });

  test('refused ones are replaced, once', async () => {
    const source = new Source();
    const first = await source.renewed.get();
    source.renewed.discard(first);
    expect(await source.renewed.get()).toBe('token 2');
    source.renewed.discard(first);
    expect(source.renewed.get()).toBe('token 2');
  });
});
