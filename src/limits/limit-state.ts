/** Between admission and the kinds of limits: units that a process does not have are asked for where they are counted. */

import { GatewayError } from '../conversation/errors.ts';
import type { Clock, Hold, LimitState } from './limits.ts';

export const SYSTEM_CLOCK: Clock = {
  wall: () => Date.now(),
  monotonic: () => Math.floor(performance.now()),
};

/** The answer of `wait` where another place must be asked. */
export const ASK = -1;

/** The need of one request for units of one limit, and the answer. */
export interface Need {
  readonly state: LimitState;
  readonly amount: number;
  /** Units that must be there: at least one. */
  readonly units: number;
  granted: boolean;
  /** Where it is granted. */
  hold: Hold;
  /** Where it is not: milliseconds, or 0 where another need of the request is refused. */
  wait: number;
}

/** Where units come from that this process does not have. */
export interface Source {
  /**
   * Grants all needs of a request or none, in one trip.
   * @throws GatewayError where it cannot be asked, and the request must not go on
   */
  ask(needs: readonly Need[]): void | Promise<void>;
  /** Learns the usage of the limits. */
  look(states: readonly LimitState[]): void | Promise<void>;
}

/** Does its work after a pause, once for all who ask meanwhile; the shortest pause counts. */
export class Soon {
  #timer: ReturnType<typeof setTimeout> | undefined;
  #pauseMs = 0;
  #closed = false;

  constructor(private readonly work: () => void) {}

  in(pauseMs: number): void {
    if (this.#closed || (this.#timer !== undefined && this.#pauseMs <= pauseMs)) return;
    clearTimeout(this.#timer);
    this.#pauseMs = pauseMs;
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      this.work();
    }, pauseMs).unref();
  }

  close(): void {
    this.#closed = true;
    clearTimeout(this.#timer);
  }
}

/** @param what `budgets`, `limits` */
export const unavailable = (what: string) =>
  new GatewayError('overloaded', `The ${what} of this key cannot be checked now.`, {
    code: 'limits_unavailable',
    retryAfter: 1,
  });

/** Goes on at once where there is no promise. */
export function after<T, R>(value: T | Promise<T>, next: (value: T) => R | Promise<R>) {
  return value instanceof Promise ? value.then(next) : next(value);
}
