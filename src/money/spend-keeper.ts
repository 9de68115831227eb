/** Keeps the tables of spend: takes journals in, deletes what is old, books what machines left that are gone. */

import { PatientClock } from '../lib/loop/patient-clock.ts';
import { messageOf } from '../lib/text/thrown.ts';
import { EngineAway } from '../state/engines/engine.ts';
import { Keeper } from '../state/journal/keeper.ts';
import { fileAt, isDamage, REMOVED, setAside } from '../state/versioned-store.ts';
import type { SpendStore } from './spend-store.ts';
import { lapse, newestTime, prune } from './spend-upkeep.ts';

const RETRY_MS = 1000;
const MAX_RETRY_MS = 5000;
/** For processes that are killed, and others that share the folder. */
const LOOK_EVERY_MS = 10_000;
/** Rows of other processes of this machine are found by looking. */
const LOOK_AT_OTHERS_MS = 200;
const PRUNE_EVERY_MS = 600_000;
const PRUNED_AT_ONCE = 500;
/** Rows of a month that was made anew stay for a day. */
const SETTLED_MS = 86_400_000;
const LAPSE_EVERY_MS = 15_000;
const LOST_AFTER_MS = 60_000;
const HEARD_EVERY_MS = 10_000;
/** Another process that writes for a moment is no problem. */
const BUSY_MS = 10_000;

/** Days; 0 = for ever. */
export interface KeepDays {
  readonly rows: number;
  readonly totals: number;
}

export interface SpendKeeperOptions {
  readonly folder: string;
  /** The tables; opened again after a damage. @throws SQLiteError, or the file system's error */
  readonly open: () => SpendStore | Promise<SpendStore>;
  /** The file of the tables; left out: a database. */
  readonly path?: string;
  /** Journals of this process. */
  readonly own: ReadonlySet<string>;
  /** Other processes write to the folder. */
  readonly hasOthers: boolean;
  readonly keep: () => KeepDays;
  /** Takes in what versions before the journal have left. False: one of them still runs. */
  readonly takeEarlier?: (store: SpendStore) => Promise<boolean>;
  /** The tables cannot be written; once until they can. */
  readonly onProblem: (message: string) => void;
  readonly onRecovered: () => void;
  readonly onRefused: (message: string) => void;
  /** Tries that were booked as lost. */
  readonly onLost: (tries: number) => void;
  /** For tests. */
  readonly lookEveryMs?: number;
  readonly lapseEveryMs?: number;
  readonly lostAfterMs?: number;
  readonly at?: ConstructorParameters<typeof Keeper>[0]['at'];
}

export class SpendKeeper {
  #store: SpendStore | undefined;
  #keeper: Keeper | undefined;
  #fileId = 0;
  #clock: PatientClock | undefined;
  #running: Promise<boolean> | undefined;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #failures = 0;
  /** Since when another process writes. */
  #busy: number | undefined;
  #problem = false;
  #closed = false;
  #earlier = false;
  #pruned = Number.NEGATIVE_INFINITY;
  #heard = Number.NEGATIVE_INFINITY;
  #lapsed = performance.now();
  /** Since when the database has answered all the time. */
  #reached: number | undefined;

  constructor(private readonly options: SpendKeeperOptions) {}

  through(writer: string): number {
    return this.#keeper?.through(writer) ?? 0;
  }

  /** The tables. @throws as {@link SpendKeeperOptions.open} */
  async store(): Promise<SpendStore> {
    const { open, path, folder, own, onRefused, at } = this.options;
    if (this.#store !== undefined && path !== undefined && fileAt(path) !== this.#fileId) {
      this.#store.close();
      this.#store = undefined;
      this.#tell(`${path}: ${REMOVED}`);
    }
    if (this.#store === undefined) {
      const store = await open();
      this.#store = store;
      if (path !== undefined) this.#fileId = fileAt(path);
      this.#keeper = new Keeper({ folder, tables: store, own, onRefused, ...(at && { at }) });
      this.#earlier = false;
    }
    return this.#store;
  }

  /** Takes in all that is there, and from then on by itself. False: it could not be done. Never rejects. */
  async look(): Promise<boolean> {
    // One that is under way may have passed the newest entries.
    await this.#running;
    this.#running ??= this.#look().finally(() => {
      this.#running = undefined;
      this.#schedule();
    });
    return this.#running;
  }

  /** Takes in what is there; it waits for so long for another process that writes. */
  async close(patienceMs: number): Promise<void> {
    const latest = performance.now() + patienceMs;
    while (!(await this.look()) && this.#busy !== undefined && performance.now() < latest) {
      await Bun.sleep(20);
    }
    this.#closed = true;
    clearTimeout(this.#timer);
    await this.#running;
    this.#store?.close();
    this.#store = undefined;
  }

  #schedule(): void {
    if (this.#closed) return;
    clearTimeout(this.#timer);
    const { hasOthers, lookEveryMs = hasOthers ? LOOK_AT_OTHERS_MS : LOOK_EVERY_MS } = this.options;
    const after =
      this.#failures === 0
        ? lookEveryMs
        : Math.min(RETRY_MS * 2 ** (this.#failures - 1), MAX_RETRY_MS);
    this.#timer = setTimeout(() => void this.look(), after).unref();
  }

  async #look(): Promise<boolean> {
    try {
      const store = await this.store();
      this.#clock ??= new PatientClock(await newestTime(store));
      this.#earlier ||= (await this.options.takeEarlier?.(store)) ?? true;
      await this.#keeper!.look();
      await this.#upkeep(store);
    } catch (thrown) {
      this.#failed(thrown);
      return false;
    }
    this.#failures = 0;
    this.#busy = undefined;
    if (this.#problem) {
      this.#problem = false;
      this.options.onRecovered();
    }
    return true;
  }

  async #upkeep(store: SpendStore): Promise<void> {
    const now = performance.now();
    if (now - this.#heard >= HEARD_EVERY_MS) {
      await store.heard();
      this.#heard = now;
    }
    const { keep, lapseEveryMs = LAPSE_EVERY_MS } = this.options;
    if (now - this.#lapsed >= lapseEveryMs) {
      this.#lapsed = now;
      await this.#lapse(store, now);
    }
    if (now - this.#pruned < PRUNE_EVERY_MS) return;
    // The process that ends leaves it to the next one.
    const time = () => this.#clock!.now();
    while (!this.#closed && (await prune(store, keep(), SETTLED_MS, PRUNED_AT_ONCE, time)));
    this.#pruned = now;
  }

  /** While the database was away it heard nobody: all get the time to be heard first. */
  async #lapse(store: SpendStore, now: number): Promise<void> {
    this.#reached ??= now;
    const { lostAfterMs = LOST_AFTER_MS, onLost } = this.options;
    if (now - this.#reached < lostAfterMs) return;
    const lost = await lapse(store, lostAfterMs, PRUNED_AT_ONCE);
    if (lost > 0) onLost(lost);
  }

  #failed(thrown: unknown): void {
    this.#failures++;
    this.#reached = undefined;
    if (this.options.path !== undefined && isDamage(thrown)) this.#setAside(thrown);
    // The engine tells that it is away.
    if (thrown instanceof EngineAway) return;
    const code = String((thrown as { code?: unknown } | null)?.code);
    const now = performance.now();
    this.#busy = /BUSY|LOCKED|^55P03|^40/.test(code) ? (this.#busy ?? now) : undefined;
    if (this.#busy !== undefined && now - this.#busy < BUSY_MS) return;
    this.#tell(`${this.options.path ?? this.options.folder}: ${messageOf(thrown)}`);
  }

  #tell(message: string): void {
    if (this.#problem) return;
    this.#problem = true;
    this.options.onProblem(message);
  }

  #setAside(thrown: unknown): void {
    try {
      this.#store?.close();
      setAside(this.options.path!, this.#fileId, thrown);
    } catch {
      // Tried again with the next look.
    }
    this.#store = undefined;
  }
}
