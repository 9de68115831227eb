/** Whether an engine answers: a deadline for every call, no calls while it is away, a ping until it is back. */

import { EngineAway, type EngineName, type EngineState } from './engine.ts';

export interface WatchOptions {
  readonly name: EngineName;
  /** Rejects if the engine does not answer. Its deadline is that of the watch. */
  readonly ping: () => Promise<unknown>;
  /** Whether an error says that the engine is away, and not that the call was wrong. */
  readonly isAway: (thrown: unknown) => boolean;
  /** What is wrong with the connection now, where the client knows it. */
  readonly trouble?: () => Error | undefined;
  /** It is away, or back. Of an engine that is soon away again, only that it is away. */
  readonly onChange: (state: EngineState) => void;
  /** Milliseconds between two pings. */
  readonly pingMs?: number;
  /** Milliseconds that a ping may take. */
  readonly pingDeadlineMs?: number;
  /** Milliseconds after which an engine that is back counts as well. */
  readonly steadyMs?: number;
}

const PING_MS = 500;
/** A server that only restarts is back sooner; each ping of the first ones waits twice as long as the one before. */
const FIRST_PING_MS = 50;
const MAX_PING_MS = 4000;
const STEADY_MS = 10_000;
const PING_DEADLINE_MS = 1000;
/** The first call also connects; its deadline is no shorter. */
const FIRST_MS = 2000;

export class EngineWatch {
  #status: EngineState['status'] = 'connecting';
  #since = Date.now();
  /** The same by the clock that does not jump. */
  #changedAt = performance.now();
  #message: string | undefined;
  #trips = 0;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #closed = false;
  /** How often in a row it was away again soon after a ping: it answers pings, and serves no calls. */
  #relapses = 0;
  #wasDown = false;
  /** Since it is away. */
  #pings = 0;
  #told: EngineState['status'] = 'connecting';

  constructor(private readonly options: WatchOptions) {}

  get state(): EngineState {
    return {
      name: this.options.name,
      status: this.#status,
      since: this.#since,
      ...(this.#wasDown &&
        this.#status === 'up' && { backMs: performance.now() - this.#changedAt }),
      ...(this.#message !== undefined && { message: this.#message }),
      trips: this.#trips,
    };
  }

  get #steadyMs(): number {
    return this.options.steadyMs ?? STEADY_MS;
  }

  /** @throws EngineAway at the deadline, or at once while the engine is away; else what `work` throws */
  async use<T>(deadlineMs: number, work: () => Promise<T>): Promise<T> {
    const { name, isAway } = this.options;
    if (this.#closed) throw new EngineAway(name, `the ${name} is closed`);
    if (this.#status === 'down') throw new EngineAway(name, this.#message!);
    this.#trips++;
    let result: T;
    try {
      const patience = this.#status === 'connecting' ? Math.max(deadlineMs, FIRST_MS) : deadlineMs;
      result = await this.#within(patience, work());
    } catch (thrown) {
      if (!isAway(thrown) && !(thrown instanceof EngineAway)) {
        this.#up();
        throw thrown;
      }
      const message = messageOf(thrown);
      this.#down(message);
      throw thrown instanceof EngineAway
        ? thrown
        : new EngineAway(name, message, { cause: thrown });
    }
    this.#up();
    return result;
  }

  /** Connects now, and not with the first call. Never rejects. */
  async open(): Promise<void> {
    await this.use(FIRST_MS, this.options.ping).catch(() => {});
  }

  close(): void {
    this.#closed = true;
    clearTimeout(this.#timer);
  }

  async #within<T>(deadlineMs: number, work: Promise<T>): Promise<T> {
    const { promise, reject } = Promise.withResolvers<never>();
    const late = () => {
      const trouble = this.options.trouble?.();
      const why = trouble === undefined ? '' : `: ${messageOf(trouble)}`;
      reject(new EngineAway(this.options.name, `no answer within ${deadlineMs} ms${why}`));
    };
    const timer = afterAnswers(late, deadlineMs);
    try {
      return await Promise.race([work, promise]);
    } finally {
      clearTimeout(timer);
    }
  }

  #up(): void {
    // A late answer says nothing about now: only the ping ends a time away.
    if (this.#status !== 'connecting') return;
    this.#change('up', undefined);
    this.#tell();
  }

  #down(message: string): void {
    if (this.#closed || this.#status === 'down') return;
    clearTimeout(this.#timer);
    const isRelapse = this.#wasDown && performance.now() - this.#changedAt < this.#steadyMs;
    this.#relapses = isRelapse ? this.#relapses + 1 : 0;
    this.#wasDown = true;
    this.#pings = 0;
    this.#change('down', message);
    this.#tell();
    this.#schedule();
  }

  #change(status: EngineState['status'], message: string | undefined): void {
    this.#status = status;
    this.#since = Date.now();
    this.#changedAt = performance.now();
    this.#message = message;
  }

  #tell(): void {
    if (this.#told === this.#status) return;
    this.#told = this.#status;
    this.options.onChange(this.state);
  }

  #schedule(): void {
    const usual = this.options.pingMs ?? PING_MS;
    const wait =
      this.#relapses === 0
        ? Math.min(usual, FIRST_PING_MS * 2 ** this.#pings++)
        : Math.max(usual, Math.min(MAX_PING_MS, usual * 2 ** this.#relapses));
    this.#timer = setTimeout(() => void this.#ping(), wait).unref();
  }

  async #ping(): Promise<void> {
    try {
      await this.#within(this.options.pingDeadlineMs ?? PING_DEADLINE_MS, this.options.ping());
    } catch (thrown) {
      this.#message = messageOf(thrown);
      if (!this.#closed) this.#schedule();
      return;
    }
    if (this.#closed) return;
    this.#change('up', undefined);
    if (this.#relapses === 0) return this.#tell();
    // It came back once before and still refused calls, so its return is reported only after it has stayed.
    this.#timer = setTimeout(() => this.#tell(), this.#steadyMs).unref();
  }
}

/** A busy process sees its timers before the answers that have arrived meanwhile: those are read first. */
export const afterAnswers = (late: () => void, ms: number) =>
  setTimeout(() => setImmediate(() => setImmediate(late)), ms);

/** Several addresses that were tried make an error without a message. */
function messageOf(thrown: unknown): string {
  if (thrown instanceof AggregateError && thrown.message === '') return messageOf(thrown.errors[0]);
  if (!(thrown instanceof Error)) return String(thrown);
  const { code } = thrown as { code?: unknown };
  return thrown.message !== '' ? thrown.message : String(code ?? thrown.name);
}
