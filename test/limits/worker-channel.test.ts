/** Limits of several processes: one truth, whatever the workers ask at once, and nothing without an answer. */

import { describe, expect, test } from 'bun:test';
import { OwnBank } from '../../src/limits/bank.ts';
import type { Admission, Charge, Limit, Ticket } from '../../src/limits/limits.ts';
import { ProcessLimits } from '../../src/limits/process-limits.ts';
import {
  FirstProcess,
  type LimitsAnswer,
  type LimitsQuestion,
  limitsOfFirst,
  type WorkerLimits,
} from '../../src/limits/worker-channel.ts';
import { LocalLimits } from '../support/local-limits.ts';
import { until } from '../support/until.ts';

/** A channel as between processes: copies arrive a moment later. */
class TestChannel {
  messages = 0;
  open = true;
  answers = true;
  readonly first: WorkerLimits;
  #listener: (answer: LimitsAnswer | undefined) => void = () => {};

  constructor(first: WorkerLimits) {
    this.first = first;
  }

  send(question: LimitsQuestion): boolean {
    if (!this.open) return false;
    this.messages++;
    const copy = JSON.parse(JSON.stringify(question)) as LimitsQuestion;
    setTimeout(() => {
      const answer = this.first.answer(copy);
      if (this.answers) this.#listener(JSON.parse(JSON.stringify(answer)) as LimitsAnswer);
    });
    return true;
  }

  listen(listener: (answer: LimitsAnswer | undefined) => void): void {
    this.#listener = listener;
  }

  break(): void {
    this.open = false;
    this.#listener(undefined);
  }
}

const clock = { wall: () => 1_780_000_000_000, monotonic: () => 5000 };
const limit = (amount: number): Limit => ({
  kind: 'window',
  id: 'w',
  unit: 'nano_usd',
  amount,
  per: 'day',
  timeZone: 'UTC',
});
const rate: Limit = { kind: 'rate', id: 'r', unit: 'requests', amount: 1000, periodMs: 60_000 };

function processes(count: number) {
  const bank = new OwnBank();
  const local = new LocalLimits({ clock, bank });
  const first = new FirstProcess(local, bank);
  const channels = Array.from({ length: count }, () => new TestChannel(first.worker()));
  const workers = channels.map((channel, i) => {
    const places = limitsOfFirst(channel);
    const counter = { counter: places.counter, onError: 'closed' } as const;
    return new ProcessLimits({ clock, process: `worker-${i}`, bank: places.bank, counter });
  });
  return { local, channels, workers };
}
const ticketOf = (admission: Admission): Ticket => {
  if (!admission.admitted) throw new Error('refused');
  return admission;
};

describe('limits asked for over a channel', () => {
  test('a hundred at once from two workers and the first process: exactly ten', async () => {
    const { local, workers } = processes(2);
    const charges = (): Charge[] => [
      { limit: rate, amount: 1 },
      { limit: limit(100), amount: 10 },
    ];
    const asks = Array.from({ length: 100 }, (_, i) => (workers[i % 3] ?? local).admit(charges()));
    const all: Admission[] = await Promise.all(asks);
    expect(all.filter(({ admitted }) => admitted)).toHaveLength(10);
    const refused = all.find((one) => !one.admitted)!;
    expect(refused).toMatchObject({ asked: 10, usage: { used: 100, held: 100, remaining: 0 } });
    expect((refused as { limit: Limit }).limit.id).toBe('w');
    expect(refused.usages()).toMatchObject([
      { limit: { id: 'r' } },
      { limit: { id: 'w' }, used: 100, remaining: 0 },
    ]);
    // What was refused takes nothing: all that workers have taken ahead of use comes back.
    for (const worker of workers) await worker.close();
    expect(local.usage([rate])[0]!.used).toBe(10);
  });

  test('tickets settle and are abandoned in the first process', async () => {
    const { local, workers } = processes(1);
    const [worker] = workers;
    const one = await worker!.admit([{ limit: limit(100), amount: 60 }]);
    const two = await worker!.admit([{ limit: limit(100), amount: 40 }]);
    if (!one.admitted || !two.admitted) throw new Error('refused');
    expect(two.usages()[0]).toMatchObject({ used: 100, remaining: 0 });
    one.settle([25]);
    one.settle([99]);
    two.abandon();
    expect(await worker!.usage([limit(100)])).toMatchObject([{ used: 25, held: 0 }]);
    expect(local.usage([limit(100)])[0]!.used).toBe(25);
    const odd = await worker!.admit([{ limit: limit(100), amount: 10 }]);
    if (odd.admitted) odd.settle([Number.NaN]);
    expect(await worker!.usage([limit(100)])).toMatchObject([{ used: 35 }]);
  });

  test('soft charges stay soft', async () => {
    const { workers } = processes(1);
    const admission = await workers[0]!.admit([{ limit: limit(1), amount: 50, soft: true }]);
    expect(admission.admitted).toBe(true);
  });

  test('a worker that dies: what it had reserved counts as used, its streams are free', async () => {
    const { local, workers, channels } = processes(1);
    const stream: Limit = { kind: 'slots', id: 's', unit: 'exchanges', amount: 1 };
    await workers[0]!.admit([
      { limit: limit(100), amount: 60 },
      { limit: stream, amount: 1 },
    ]);
    channels[0]!.first.ended();
    expect(local.usage([limit(100), stream])).toMatchObject([{ used: 60, held: 0 }, { used: 0 }]);
  });

  test('a channel that breaks refuses those that wait and those that come', async () => {
    const { workers, channels } = processes(1);
    const waiting = workers[0]!.admit([{ limit: limit(100), amount: 1 }]);
    channels[0]!.break();
    const coming = workers[0]!.admit([{ limit: limit(100), amount: 1 }]);
    for (const one of [waiting, coming, workers[0]!.usage([rate])]) {
      const thrown = await Promise.resolve(one).catch((error: unknown) => error);
      expect(thrown).toMatchObject({ kind: 'overloaded', code: 'limits_unavailable' });
    }
  });

  test('where there is plenty, a worker asks nothing: messages follow time, not requests', async () => {
    const { local, workers, channels } = processes(1);
    const charges: Charge[] = [
      { limit: { ...rate, amount: 1_000_000 }, amount: 1 },
      { limit: limit(1e12), amount: 1000 },
    ];
    for (let i = 0; i < 200; i++) ticketOf(await workers[0]!.admit(charges)).settle([1, 900]);
    await until(() => !(workers[0]!.admit(charges) instanceof Promise));
    const { messages } = channels[0]!;
    for (let i = 0; i < 2000; i++) {
      ticketOf(await workers[0]!.admit(charges)).settle([1, 900]);
      if (i % 100 === 0) await Bun.sleep(0);
    }
    expect(channels[0]!.messages - messages).toBeLessThan(200);
    await workers[0]!.close();
    expect(local.usage([charges[1]!.limit])[0]!.used).toBeGreaterThanOrEqual(2200 * 900);
  });

  test('an answer that is lost changes nothing: the draw is answered again, and counts once', async () => {
    const { local, workers, channels } = processes(1);
    const ticket = ticketOf(await workers[0]!.admit([{ limit: limit(1000), amount: 10 }]));
    const [channel] = channels;
    channel!.answers = false;
    ticket.settle([10]);
    const { messages } = channel!;
    await until(() => channel!.messages > messages);
    await Bun.sleep(1);
    channel!.answers = true;
    await until(() => channel!.messages > messages + 1);
    await workers[0]!.close();
    expect(local.usage([limit(1000)])).toMatchObject([{ used: 10, held: 0 }]);
  });
});
