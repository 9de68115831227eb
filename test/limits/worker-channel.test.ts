/** Limits of several processes: one truth, whatever the workers ask at once, and nothing without an answer. */

import { describe, expect, test } from 'bun:test';
import { LocalLimits } from '../../src/limits/engine/local-limits.ts';
import type { Admission, Charge, Law } from '../../src/limits/limits.ts';
import {
  type LimitsAnswer,
  type LimitsQuestion,
  RemoteLimits,
  WorkerLimits,
} from '../../src/limits/worker-channel.ts';

/** A channel as between processes: copies arrive a moment later. */
class TestChannel {
  messages = 0;
  open = true;
  answers = true;
  readonly first: WorkerLimits;
  #listener: (answer: LimitsAnswer | undefined) => void = () => {};

  constructor(limits: LocalLimits) {
    this.first = new WorkerLimits(limits);
  }

  send(question: LimitsQuestion): boolean {
    if (!this.open) return false;
    this.messages++;
    const copy = JSON.parse(JSON.stringify(question)) as LimitsQuestion;
    setTimeout(() => {
      const answer = this.first.answer(copy);
      if (answer !== undefined && this.answers) {
        this.#listener(JSON.parse(JSON.stringify(answer)) as LimitsAnswer);
      }
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
const law = (amount: number): Law => ({
  kind: 'window',
  id: 'w',
  unit: 'nano_usd',
  amount,
  per: 'day',
  timeZone: 'UTC',
});
const rate: Law = { kind: 'rate', id: 'r', unit: 'requests', amount: 1000, periodMs: 60_000 };

function processes(count: number) {
  const local = new LocalLimits({ clock });
  const channels = Array.from({ length: count }, () => new TestChannel(local));
  return { local, channels, workers: channels.map((channel) => new RemoteLimits(channel)) };
}

describe('limits asked for over a channel', () => {
  test('a hundred at once from two workers and the first process: exactly ten', async () => {
    const { local, workers, channels } = processes(2);
    const charges = (): Charge[] => [
      { law: rate, amount: 1 },
      { law: law(100), amount: 10 },
    ];
    const asks = Array.from({ length: 100 }, (_, i) => (workers[i % 3] ?? local).admit(charges()));
    const all: Admission[] = await Promise.all(asks);
    expect(all.filter(({ admitted }) => admitted)).toHaveLength(10);
    const refused = all.find((one) => !one.admitted)!;
    expect(refused).toMatchObject({ asked: 10, standing: { used: 100, held: 100, remaining: 0 } });
    expect((refused as { law: Law }).law.id).toBe('w');
    expect(refused.standings()).toMatchObject([
      { law: { id: 'r' }, used: 10, remaining: 990 },
      { law: { id: 'w' }, used: 100, remaining: 0 },
    ]);
    // One turn of the event loop is one message.
    expect(channels.map(({ messages }) => messages)).toEqual([1, 1]);
    expect(local.standing([rate])[0]!.used).toBe(10);
  });

  test('tickets settle and are abandoned in the first process', async () => {
    const { local, workers } = processes(1);
    const [worker] = workers;
    const one = await worker!.admit([{ law: law(100), amount: 60 }]);
    const two = await worker!.admit([{ law: law(100), amount: 40 }]);
    if (!one.admitted || !two.admitted) throw new Error('refused');
    expect(two.standings()[0]).toMatchObject({ used: 100, remaining: 0 });
    one.settle([25]);
    one.settle([99]);
    two.abandon();
    expect(await worker!.standing([law(100)])).toMatchObject([{ used: 25, held: 0 }]);
    expect(local.standing([law(100)])[0]!.used).toBe(25);
    const odd = await worker!.admit([{ law: law(100), amount: 10 }]);
    if (odd.admitted) odd.settle([Number.NaN]);
    expect(await worker!.standing([law(100)])).toMatchObject([{ used: 35 }]);
  });

  test('soft charges stay soft', async () => {
    const { workers } = processes(1);
    const admission = await workers[0]!.admit([{ law: law(1), amount: 50, soft: true }]);
    expect(admission.admitted).toBe(true);
  });

  test('a worker that dies: what it had reserved counts as used, its streams are free', async () => {
    const { local, workers, channels } = processes(1);
    const stream: Law = { kind: 'slots', id: 's', unit: 'exchanges', amount: 1 };
    await workers[0]!.admit([
      { law: law(100), amount: 60 },
      { law: stream, amount: 1 },
    ]);
    channels[0]!.first.ended();
    expect(local.standing([law(100), stream])).toMatchObject([{ used: 60, held: 0 }, { used: 0 }]);
  });

  test('a channel that breaks refuses those that wait and those that come', async () => {
    const { workers, channels } = processes(1);
    const waiting = workers[0]!.admit([{ law: law(100), amount: 1 }]);
    channels[0]!.break();
    const coming = workers[0]!.admit([{ law: law(100), amount: 1 }]);
    for (const one of [waiting, coming, workers[0]!.standing([rate])]) {
      const thrown = await Promise.resolve(one).catch((error: unknown) => error);
      expect(thrown).toMatchObject({ kind: 'overloaded', code: 'limits_unavailable' });
    }
  });

  test('laws are sent once', async () => {
    const local = new LocalLimits({ clock });
    const channel = new TestChannel(local);
    let sent = 0;
    const send = channel.send.bind(channel);
    channel.send = (question) => {
      sent += question.laws.length;
      return send(question);
    };
    const worker = new RemoteLimits(channel);
    const own = law(1000);
    for (let i = 0; i < 5; i++) await worker.admit([{ law: own, amount: 1 }]);
    expect(sent).toBe(1);
    expect(local.standing([own])[0]!.used).toBe(5);
  });
});
