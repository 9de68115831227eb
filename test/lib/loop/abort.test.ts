/** Which listeners of an abort are called, how often, and through which of the two interfaces. */

import { describe, expect, test } from 'bun:test';
import { Abort, within } from '../../../src/lib/loop/abort.ts';
import { until } from '../../support/until.ts';

const listening = () => {
  const told: unknown[] = [];
  return { told, onAbort: (reason: unknown) => void told.push(reason) };
};

test('only the first reason counts, and every listener gets it once', () => {
  const abort = new Abort();
  const [a, b] = [listening(), listening()];
  abort.listen(a);
  abort.listen(b);
  abort.unlisten(b);
  abort.abort('first');
  abort.abort('second');
  expect([a.told, b.told, abort.reason]).toEqual([['first'], [], 'first']);
});

test('a late listener is called at once', () => {
  const abort = new Abort();
  abort.abort('gone');
  const late = listening();
  abort.listen(late);
  expect(late.told).toEqual(['gone']);
});

test('its signal is aborted with it, whenever it was asked for', () => {
  const [before, after] = [new Abort(), new Abort()];
  const { signal } = before;
  for (const abort of [before, after]) abort.abort('gone');
  expect([signal.reason, after.signal.reason]).toEqual(['gone', 'gone']);
});

test('it follows a signal until it is detached, and one that fired before at once', () => {
  const controller = new AbortController();
  const [follows, left, late] = [new Abort(), new Abort(), new Abort()];
  follows.follow(controller.signal);
  left.follow(controller.signal);
  left.unfollow();
  controller.abort('gone');
  late.follow(controller.signal);
  expect([follows.reason, left.aborted, late.reason]).toEqual(['gone', false, 'gone']);
});

describe('a signal that is followed soon', () => {
  const asker = (signal: AbortSignal) => {
    const read = { times: 0 };
    return {
      read,
      get signal() {
        read.times++;
        return signal;
      },
    };
  };

  test('is not even read when it is over before', async () => {
    const asked = asker(AbortSignal.abort('gone'));
    const [abort, last] = [new Abort(), new Abort()];
    abort.followLater(asked);
    abort.unfollow();
    // Those that ask later are followed later.
    last.followLater(asker(AbortSignal.abort('gone')));
    await until(() => last.aborted);
    expect([asked.read.times, abort.aborted]).toEqual([0, false]);
  });

  test('aborts when it fired meanwhile, and when it fires later', async () => {
    const controller = new AbortController();
    const [early, late] = [new Abort(), new Abort()];
    const ofLate = asker(controller.signal);
    early.followLater(asker(AbortSignal.abort('gone before')));
    late.followLater(ofLate);
    await until(() => early.aborted && ofLate.read.times > 0);
    expect([early.reason, late.aborted]).toEqual(['gone before', false]);
    controller.abort('gone');
    expect(late.reason).toBe('gone');
  });

  /** Reads the signal once, so long after the client's end; a busy machine may not have seen that end by then. */
  async function isTold(afterMs: number): Promise<boolean> {
    const read = Promise.withResolvers<void>();
    const left = Promise.withResolvers<boolean>();
    const server = Bun.serve({
      port: 0,
      hostname: '127.0.0.1',
      async fetch(request) {
        await request.arrayBuffer();
        read.resolve();
        await Bun.sleep(afterMs);
        left.resolve(request.signal.aborted);
        return new Response();
      },
    });
    const client = await Bun.connect({
      hostname: '127.0.0.1',
      port: server.port!,
      socket: { data() {} },
    });
    client.write('POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 2\r\n\r\nhi');
    await read.promise;
    client.terminate();
    const told = await left.promise;
    await server.stop(true);
    return told;
  }

  test('of a request tells of a client who left before it was read', async () => {
    const told = (await isTold(60)) || (await isTold(500)) || (await isTold(3000));
    expect(told).toBe(true);
  });
});

describe('within a time', () => {
  const early = () => Bun.sleep(1).then(() => 'work');
  const never = () => new Promise<string>(() => {});
  const failing = () => Promise.reject<string>(new Error('broken'));
  const rows: [name: string, work: () => Promise<string>, ms: number, settled: unknown][] = [
    ['work that is done is given', early, 60_000, 'work'],
    ['work that fails has failed', failing, 60_000, new Error('broken')],
    ['work that takes longer is given up', never, 1, 'late'],
  ];
  test.each(rows)('%s', async (_name, work, ms, settled) => {
    expect(await within(ms, work(), () => 'late').catch((e: unknown) => e)).toEqual(settled);
  });

  test('giving up may fail', async () => {
    const refuse = () => {
      throw new Error('too late');
    };
    expect(await within(1, never(), refuse).catch((e: unknown) => e)).toEqual(
      new Error('too late'),
    );
  });
});
