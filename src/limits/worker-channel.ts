/** Limits of several processes: the first one is to its workers what the engines are to replicas, over the channel that they have. */

import { EngineAway } from '../state/engines/engine.ts';
import type { Bank, Draw, Drawn, OwnBank, WindowKey } from './bank.ts';
import type { Answer, Counter, Take, Taken } from './counters.ts';
import { unavailable } from './limit-state.ts';
import type { ProcessLimits } from './process-limits.ts';
import { RateState, type SlotsState } from './rates.ts';

/** A question of a worker. */
export type LimitsQuestion = { readonly number: number } & (
  | { readonly draw: Draw }
  | { readonly takes: readonly Take[] }
  | { readonly window: WindowKey; readonly mark: number }
);

/** An answer of the first process, by the number of the question. */
export type LimitsAnswer = { readonly number: number } & (
  | { readonly drawn: Drawn }
  | { readonly taken: Answer }
  | { readonly isNew: boolean }
);

/** Answers the questions of workers, in the first process. */
export class FirstProcess {
  /** Slots of each worker, by the id of the limit. */
  readonly #workers = new Set<Map<string, number>>();

  /** @param bank where these limits count budgets */
  constructor(
    private readonly limits: ProcessLimits,
    private readonly bank: OwnBank,
  ) {}

  /** For one more worker. */
  worker(): WorkerLimits {
    const slots = new Map<string, number>();
    this.#workers.add(slots);
    this.bank.workers++;
    let last: { readonly draw: Draw; readonly drawn: Drawn } | undefined;
    const sessions = new Set<string>();
    return {
      answer: (question) => {
        const { number } = question;
        if ('takes' in question) return { number, taken: this.#take(slots, question.takes) };
        if ('mark' in question)
          return { number, isNew: this.bank.isNew(question.window, question.mark) };
        const { draw } = question;
        const isAgain = last?.draw.session === draw.session && last.draw.number === draw.number;
        if (!isAgain) last = { draw, drawn: this.#draw(draw) };
        sessions.add(draw.session);
        return { number, drawn: last!.drawn };
      },
      ended: () => {
        for (const session of sessions) this.bank.ended(session);
        for (const [id, held] of slots) this.limits.giveSlots(id, held);
        if (this.#workers.delete(slots)) this.bank.workers--;
      },
    };
  }

  #draw(draw: Draw): Drawn {
    // Who only looks sees what this process has used itself as spent.
    if (draw.wanted.every(({ need, ahead }) => need + ahead === 0)) this.limits.save();
    return this.bank.draw(draw);
  }

  /** As the script of the cache does. */
  #take(slots: Map<string, number>, takes: readonly Take[]): Answer {
    const now = this.limits.clock.monotonic();
    const processes = this.#workers.size + 1;
    const states = takes.map((take) => {
      const state = this.limits.stateOf(take.limit, now) as RateState | SlotsState;
      if (state instanceof RateState) tellRate(state, take, now);
      else tellSlots(state, take, slots);
      return state;
    });
    const waits = takes.map(({ need }, i) => (need === 0 ? 0 : states[i]!.wait(need, now)));
    const isRefused = waits.some((wait) => wait > 0);
    const taken = takes.map(({ limit, need, ahead }, i): Taken => {
      const state = states[i]!;
      const { remaining } = state.usage(now);
      const more = Math.min(ahead, Math.floor(((remaining - need) * 0.1) / processes));
      const granted = isRefused ? 0 : need + Math.max(0, more);
      const seen = granted === 0 ? undefined : state.take(granted, now);
      if (state instanceof RateState) state.open -= granted === 0 ? 0 : 1;
      else slots.set(limit.id, (slots.get(limit.id) ?? 0) + granted);
      const { offset = 0, refunded = 0, wraps = 0 } = seen ?? {};
      const left = state.usage(now).remaining;
      return { granted, wait: waits[i]!, offset, refunded, wraps, left };
    });
    return { processes, at: now, taken };
  }
}

/** In the first process: one worker. */
export interface WorkerLimits {
  answer(question: LimitsQuestion): LimitsAnswer;
  /** It has ended: what it held of budgets counts as used, since it was sent; its slots are free. */
  ended(): void;
}

function tellRate(state: RateState, { debt, refunds }: Take, now: number): void {
  if (debt > 0) state.owe(debt, now);
  for (const [units, used, admittedAt, offset, refunded, wraps] of refunds) {
    state.refund({ units, admittedAt, offset, refunded, wraps }, used, now);
  }
}

function tellSlots(
  state: SlotsState,
  { limit, given, held }: Take,
  slots: Map<string, number>,
): void {
  const before = slots.get(limit.id) ?? 0;
  const rest = Math.max(0, (held >= 0 ? held : before) - given);
  state.held += rest - before;
  slots.set(limit.id, rest);
}

/** A worker's connection to the first process. */
export interface LimitsChannel {
  /** False: the channel is broken. */
  send(question: LimitsQuestion): boolean;
  /** The listener gets every answer, and undefined when the channel breaks. */
  listen(listener: (answer: LimitsAnswer | undefined) => void): void;
}

/** A first process that is busy for longer is taken as lost. */
const ANSWER_MS = 5000;

/** A question without its number. */
type Asked = LimitsQuestion extends infer One
  ? One extends unknown
    ? Omit<One, 'number'>
    : never
  : never;

/** In a worker. Where the first process does not answer, nothing is admitted: it could be over a limit. */
export function limitsOfFirst(channel: LimitsChannel): {
  readonly bank: Bank;
  readonly counter: Counter;
} {
  let isBroken = false;
  let numbers = 0;
  const waiting = new Map<number, (answer: LimitsAnswer | undefined) => void>();
  channel.listen((answer) => {
    if (answer !== undefined) {
      waiting.get(answer.number)?.(answer);
      return;
    }
    isBroken = true;
    for (const settle of waiting.values()) settle(undefined);
  });
  function ask(asked: Asked): Promise<LimitsAnswer> {
    const number = ++numbers;
    const { promise, resolve, reject } = Promise.withResolvers<LimitsAnswer>();
    const timeout = setTimeout(() => settle(undefined), ANSWER_MS).unref();
    const settle = (answer: LimitsAnswer | undefined) => {
      clearTimeout(timeout);
      waiting.delete(number);
      if (answer === undefined)
        reject(new EngineAway('database', 'no answer of the first process'));
      else resolve(answer);
    };
    waiting.set(number, settle);
    if (isBroken || !channel.send({ number, ...asked } as LimitsQuestion)) settle(undefined);
    return promise;
  }
  return {
    bank: {
      distance: 'near',
      sessionMs: Number.POSITIVE_INFINITY,
      draw: async (draw) => ((await ask({ draw })) as { drawn: Drawn }).drawn,
      hasOthers: () => true,
      isNew: async (window, mark) => ((await ask({ window, mark })) as { isNew: boolean }).isNew,
    },
    counter: {
      deadlineMs: ANSWER_MS,
      flushMs: 0,
      take: async (takes) => {
        const answer = await ask({ takes }).catch(() => {
          throw unavailable('limits');
        });
        return (answer as { taken: Answer }).taken;
      },
    },
  };
}
