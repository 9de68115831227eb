/** The time by which old data is deleted: a clock that jumps forward is believed a day later. */

// A clock that is wrong for minutes would otherwise delete what nothing brings back.

/** How far a clock may be ahead, and how long it must stay there to be believed. */
const DAY_MS = 86_400_000;

export class PatientClock {
  #wall: number;
  #since: number;
  #jumpedAt: number | undefined;

  /** @param newest the time of the newest data, in ms since 1970; undefined: there is none */
  constructor(
    newest: number | undefined,
    private readonly wall: () => number = Date.now,
    private readonly monotonic: () => number = () => performance.now(),
  ) {
    this.#wall = Math.min(newest ?? wall(), wall());
    this.#since = monotonic();
  }

  /** Milliseconds since 1970; never later than the clock of the machine. */
  now(): number {
    const wall = this.wall();
    const at = this.monotonic();
    const expected = this.#wall + (at - this.#since);
    if (wall - expected > DAY_MS) {
      this.#jumpedAt ??= at;
      if (at - this.#jumpedAt < DAY_MS) return expected;
    }
    this.#jumpedAt = undefined;
    this.#wall = wall;
    this.#since = at;
    return wall;
  }
}
