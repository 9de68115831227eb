/** The recorder: decides which exchanges are kept and writes them in the background, without delaying any of them. */

import type { SampleMode } from '../../config/sections/samples.ts';
import { memberOf } from '../../lib/json/json-members.ts';
import { messageOf } from '../../lib/text/thrown.ts';
import type { BlankedContent } from '../mask/blank-body.ts';
import { knownLiterals } from '../mask/body-mask.ts';
import type { RecordedExchange, Recording } from '../recording.ts';
import { clientLeft, type SampleMeta, type SampleWatcher } from '../sample.ts';
import { type MaintenanceOptions, StoreMaintenance } from '../store/maintenance.ts';
import { metaOf, rowOf, shownMeta } from '../store/meta.ts';
import { runName } from '../store/read-meta.ts';
import { markCut } from '../store/reconcile.ts';
import { DEFAULT_RETENTION, type Retention } from '../store/retention.ts';
import { removeSaved, save } from '../store/save.ts';
import { Capture, type CaptureHooks, isOfSpace, type SpaceName } from './capture.ts';
import { RecentExchanges, type RecentLimits } from './recent.ts';
import { RunningExchanges } from './running.ts';
import { type WriteQueue, writeQueue } from './write-queue.ts';

export interface RecorderLimits {
  /** Most bytes held in memory over all exchanges; beyond it whole samples are dropped. */
  readonly memory: number;
  /** Most bytes of one body that are kept; a longer body is cut and marked. */
  readonly body: number;
  /** Milliseconds between two writes of an open exchange. */
  readonly flushAfter: number;
  /** Exchanges written at the same time. */
  readonly writers: number;
}

export interface RecorderOptions {
  /** Folder of the samples. */
  readonly root: string;
  readonly mode: SampleMode;
  /** Modes of single routes, by their names. */
  readonly routes?: Readonly<Record<string, SampleMode>>;
  readonly limits?: Partial<RecorderLimits>;
  /** The last exchanges that are not recorded stay in memory; left out: none do. */
  readonly recent?: Partial<RecentLimits>;
  readonly retention?: Partial<Retention>;
  /** Content that is blanked in bodies. */
  readonly redact?: readonly BlankedContent[];
  /** Secrets of the configuration: masked wherever they occur, whatever they look like. */
  readonly secrets?: readonly string[];
  /** Called with ids of samples that were removed because of a limit. */
  readonly onPurged?: (ids: readonly string[]) => void;
  /** Called once for each new problem. */
  readonly warn?: (message: string, cause?: unknown) => void;
  /** Milliseconds since 1970. */
  readonly now?: () => number;
  /** For tests. */
  readonly statfs?: MaintenanceOptions['statfs'];
}

/** What a reload of the configuration may change. */
export type RecorderSettings = Pick<
  RecorderOptions,
  'mode' | 'routes' | 'redact' | 'secrets' | 'retention'
>;

export interface RecorderCounters {
  /** Exchanges now on disk. */
  readonly written: number;
  /** Exchanges that were lost because memory or the disk was full. */
  readonly dropped: number;
  /** Exchanges that were not wanted: successful ones in mode `errors`. */
  readonly passed: number;
  /** Bytes in memory. */
  readonly held: number;
  /** Exchanges that run or wait to be written. */
  readonly open: number;
  /** Samples removed because of their age or number. */
  readonly purged: number;
}

const LIMITS: RecorderLimits = {
  memory: 64 * 2 ** 20,
  body: 64 * 2 ** 20,
  flushAfter: 100,
  writers: 4,
};

/** Bytes that a stream must have for a write while it runs: what recording costs is writes (decision 40). */
const MIN = 8192;
/** Milliseconds that a reader waits for such a write. */
const LOOK_MS = 250;

const RECONCILE_AFTER_MS = 500;
/** Samples that are indexed together while writes never pause. */
const INDEX_BATCH = 100;
/** The same for their size, as a share of `maxBytes`. */
const INDEX_SHARE = 0.02;

/** What is kept: the mode of all exchanges, and those of single routes. */
class Modes {
  readonly inForce: ReadonlySet<SampleMode>;
  /** Nothing is recorded, whatever the route. */
  readonly isIdle: boolean;

  constructor(
    readonly mode: SampleMode,
    readonly routes: Readonly<Record<string, SampleMode>> = {},
  ) {
    this.inForce = new Set([mode, ...Object.values(routes)]);
    this.isIdle = !this.inForce.has('all') && !this.inForce.has('errors');
  }

  of(route: string | undefined): SampleMode {
    return this.#own(route) ?? this.mode;
  }

  /** A route that says "off" by itself is not looked at. */
  mayBeSeen(route: string | undefined): boolean {
    return this.#own(route) !== 'off';
  }

  #own(route: string | undefined): SampleMode | undefined {
    return route === undefined ? undefined : memberOf(this.routes, route);
  }
}

/** It costs nothing until the first exchange. */
export class Recorder {
  /** The last exchanges that are not recorded; undefined: they are not held. */
  readonly recent: RecentExchanges | undefined;

  readonly #options: RecorderOptions;
  readonly #limits: RecorderLimits;
  readonly #run = runName();
  readonly #watchers = new Set<SampleWatcher>();
  /** Exchanges that run here and are not among {@link recent}. */
  readonly running = new RunningExchanges(this.#run, this.#watchers);
  #modes: Modes;
  #redact: readonly BlankedContent[];
  #literals: () => readonly string[];
  #retention: Retention;

  readonly #maintenance: StoreMaintenance;
  readonly #hooks: CaptureHooks;
  readonly #queue: WriteQueue<Capture>;
  readonly #count = { written: 0, dropped: 0, passed: 0, purged: 0 };
  #held = 0;
  #unindexed: SampleMeta[] = [];
  #unindexedBytes = 0;
  #flushTimer: ReturnType<typeof setTimeout> | undefined;
  readonly #reconcileTimer: ReturnType<typeof setTimeout>;
  #closed = false;
  #lastProblem = '';

  constructor(options: RecorderOptions) {
    const { root, mode, routes, redact = [], secrets, now = Date.now, statfs } = options;
    this.#options = options;
    this.#limits = { ...LIMITS, ...options.limits };
    this.#modes = new Modes(mode, routes);
    this.#redact = redact;
    this.#literals = knownLiterals(secrets);
    this.#retention = { ...DEFAULT_RETENTION, ...options.retention };
    this.#maintenance = new StoreMaintenance({
      root,
      own: this.#run,
      retention: () => this.#retention,
      now,
      statfs,
      onRemoved: (ids, purged) => this.#onRemoved(ids, purged),
      onProblem: (what, cause) => this.#reportProblem(what, cause),
    });
    this.#hooks = {
      literals: () => this.#literals(),
      blank: () => this.#redact,
      now,
      bodyBytes: this.#limits.body,
      hold: (capture, bytes) => this.#hold(capture, bytes),
      onRoute: (capture, route) => this.#onRoute(capture, route),
      onEnd: (capture) => this.#onEnd(capture),
    };
    this.recent =
      options.recent &&
      new RecentExchanges({
        limits: options.recent,
        hooks: this.#hooks,
        run: this.#run,
        watchers: this.#watchers,
        holds: (route) => this.#modes.mayBeSeen(route),
      });
    this.#queue = writeQueue(
      this.#limits.writers,
      (capture) => this.#write(capture),
      () => this.#writeIndex(),
    );
    // The index is compared with files of earlier processes once this one has started.
    this.#reconcileTimer = setTimeout(
      () => this.#maintenance.reconcile(),
      RECONCILE_AFTER_MS,
    ).unref();
  }

  /** Undefined: no mode keeps this exchange, and it is not held in memory either. */
  begin(exchange: RecordedExchange): Recording | undefined {
    if (this.#closed) return undefined;
    if (this.#modes.isIdle) return this.recent?.begin(exchange);
    const capture = new Capture(exchange, this.#hooks);
    if (capture.dropped) return undefined;
    this.running.open.add(capture);
    capture.listed = true;
    // Where routes have modes of their own, nothing is written before the route is known.
    if (this.mode === 'all' && Object.keys(this.#modes.routes).length === 0) {
      capture.disposition = 'write';
      this.#schedule();
    }
    return capture;
  }

  /** The mode in force for exchanges without a route that has its own. */
  get mode(): SampleMode {
    return this.#modes.mode;
  }

  /** Changes the mode until {@link configure} is called; open exchanges keep theirs. */
  switchMode(mode: SampleMode): void {
    this.#modes = new Modes(mode, this.#modes.routes);
  }

  /** Applies the settings of a reload; open exchanges keep theirs. */
  configure({ mode, routes, redact = [], secrets, retention }: RecorderSettings): void {
    this.#modes = new Modes(mode, routes);
    this.#redact = redact;
    this.#literals = knownLiterals(secrets);
    this.#retention = { ...DEFAULT_RETENTION, ...retention };
  }

  /**
   * To be called before the bodies of an exchange that runs here are read. Resolves when its files hold all of it that
   * is masked, or after 250 ms; of one that is not written, when {@link running} has its bodies. It waits for no other
   * exchange.
   */
  async look(id: string): Promise<void> {
    for (const capture of this.running.open.all()) {
      if (capture.id !== id) continue;
      if (capture.outcome !== undefined) return;
      if (capture.disposition === 'undecided') return this.running.read(capture);
      if (capture.disposition !== 'write') return;
      await new Promise<void>((resolve) => {
        setTimeout(resolve, LOOK_MS).unref();
        capture.addReader(resolve);
        this.#queue.add(capture, false);
        this.#queue.pump();
      });
      return;
    }
  }

  /** Resolves when every exchange that is over by now is on disk. */
  async flush(): Promise<void> {
    await this.#queue.idle();
    this.#writeIndex();
    await this.#maintenance.idle();
  }

  /**
   * Removes all samples of a memory space, running exchanges included, and returns their number.
   * @param until those that began later stay, in ms since 1970; left out: none do
   * @throws what the file system throws
   */
  async eraseSpace(space: SpaceName, until?: number): Promise<number> {
    let count = this.recent?.eraseSpace(space, until) ?? 0;
    for (const capture of this.running.open.all()) {
      if (!isOfSpace(capture, space, until)) continue;
      this.#discard(capture);
      count++;
    }
    await this.flush();
    return count + (await this.#maintenance.eraseSpace(space, until)).length;
  }

  /**
   * Notifies the watcher when an exchange first reaches the disk, when it ends and when it is removed,
   * until the returned function is called.
   */
  watch(watcher: SampleWatcher): () => void {
    const { open } = this.running;
    this.#watchers.add(watcher);
    for (const capture of open.all()) {
      if (!capture.announced || capture.dropped) continue;
      watcher.row(rowOf(metaOf(capture, 'open', this.#run)));
    }
    for (const row of this.recent?.rows() ?? []) if (row.state === 'open') watcher.row(row);
    for (const capture of open.all()) capture.told = false;
    this.running.tellSoon();
    return () => this.#watchers.delete(watcher);
  }

  /** Writes everything; exchanges still open are marked as cut. */
  async close(): Promise<void> {
    const { open } = this.running;
    this.#closed = true;
    this.recent?.clear();
    this.running.close();
    clearTimeout(this.#flushTimer);
    clearTimeout(this.#reconcileTimer);
    for (const capture of open.all()) {
      if (capture.disposition === 'write') this.#queue.add(capture, false);
    }
    await this.flush();
    for (const capture of open.all()) {
      if (capture.announced) markCut(this.#options.root, shownMeta(capture, 'cut', this.#run));
    }
    for (const capture of open.all()) this.#leave(capture);
    await this.#maintenance.close();
  }

  counters(): RecorderCounters {
    return { ...this.#count, held: this.#held, open: this.running.open.size };
  }

  #hold(capture: Capture, bytes: number): boolean {
    const { memory } = this.#limits;
    if (this.#held + bytes > memory) {
      this.#count.dropped++;
      this.#reportProblem(
        'dropped: exchanges come faster than they can be written',
        `${memory} bytes wait already`,
      );
      this.#discard(capture);
      return false;
    }
    this.#held += bytes;
    capture.held += bytes;
    // Writing undecided exchanges early frees memory before anything has to be dropped.
    const isUndecided = capture.disposition === 'undecided';
    if (isUndecided && this.#held > memory / 2 && !this.#modes.inForce.has('off')) {
      capture.disposition = 'write';
    }
    if (capture.disposition === 'write') this.#schedule();
    return true;
  }

  #onRoute(capture: Capture, route: string | undefined): void {
    capture.hidden = !this.#modes.mayBeSeen(route);
    this.running.tellSoon();
    const isUndecided = route !== undefined && capture.disposition === 'undecided';
    if (!isUndecided || this.#modes.of(route) !== 'all') return;
    capture.disposition = 'write';
    this.#schedule();
  }

  #onEnd(capture: Capture): void {
    const mode = this.#modes.of(capture.outcome?.route);
    if (mode === 'all' || (mode === 'errors' && failed(capture))) {
      capture.disposition = 'write';
      this.#queue.add(capture, true);
      return;
    }
    this.#count.passed++;
    this.#passOn(capture);
  }

  /** An exchange that is not kept stays in memory for a while, unless parts of it are on disk. */
  #passOn(capture: Capture): void {
    if (this.recent === undefined || capture.disposition !== 'undecided') {
      this.#discard(capture);
      return;
    }
    this.#release(capture, capture.held);
    if (this.recent.take(capture)) this.#leave(capture);
    else this.#discard(capture);
  }

  #discard(capture: Capture): void {
    // Of one with files, the end of their removal is told.
    if (capture.told && !capture.announced && !capture.dropped) this.#notifyRemoved([capture.id]);
    this.#release(capture, capture.held);
    capture.drop();
    // A capture without files does not wait in the queue: more of them could come than memory holds.
    if (this.#queue.cancel(capture) && !capture.onDisk) this.#leave(capture);
    else this.#queue.add(capture, true);
  }

  #leave(capture: Capture): void {
    if (capture.listed) this.running.open.remove(capture);
    capture.listed = false;
    for (const go of capture.takeReaders()) go();
  }

  #release(capture: Capture, bytes: number): void {
    this.#held -= bytes;
    capture.held -= bytes;
  }

  #schedule(): void {
    if (this.#flushTimer !== undefined || this.#closed) return;
    this.#flushTimer = setTimeout(() => {
      this.#flushTimer = undefined;
      for (const capture of this.running.open.all()) {
        if (capture.disposition === 'write' && capture.stages.some(({ dirty }) => dirty))
          this.#queue.add(capture, false);
      }
      this.#queue.pump();
    }, this.#limits.flushAfter).unref();
  }

  async #write(capture: Capture): Promise<void> {
    const readers = capture.takeReaders();
    await this.#writeHeld(capture, this.#closed || readers.length > 0 ? 0 : MIN);
    for (const go of readers) go();
  }

  async #writeHeld(capture: Capture, least: number): Promise<void> {
    const { root } = this.#options;
    // It was queued again while its last write was under way.
    if (!capture.listed) return;
    try {
      if (capture.dropped) {
        this.#leave(capture);
        await removeSaved(capture, root);
        if (capture.announced) this.#notifyRemoved([capture.id]);
        return;
      }
      await this.#maintenance.waitForRoom();
      const { announced } = capture;
      const release = (of: Capture, bytes: number) => this.#release(of, bytes);
      const meta = await save(capture, { root, run: this.#run, release, least });
      if (meta !== undefined) this.#onWritten(capture, meta);
      else if (!announced) this.#notifyChanged(() => metaOf(capture, 'open', this.#run));
    } catch (error) {
      this.#reportProblem(`cannot write to ${root}`, error);
      this.#leave(capture);
      if (!capture.dropped) {
        this.#release(capture, capture.held);
        capture.drop();
        this.#count.dropped++;
      }
      await removeSaved(capture, root).catch(() => {});
    }
  }

  /** Its files hold all of it. */
  #onWritten(capture: Capture, meta: SampleMeta): void {
    this.#notifyChanged(() => meta);
    this.#leave(capture);
    this.#release(capture, capture.held);
    this.#count.written++;
    this.#lastProblem = '';
    this.#unindexed.push(meta);
    this.#unindexedBytes += meta.edges.reduce((sum, body) => sum + body.bytes, 0);
    const { maxBytes } = this.#retention;
    const many = maxBytes > 0 && this.#unindexedBytes > maxBytes * INDEX_SHARE;
    if (many || this.#unindexed.length >= INDEX_BATCH) this.#writeIndex();
  }

  #writeIndex(): void {
    if (this.#unindexed.length === 0) return;
    const metas = this.#unindexed;
    this.#unindexed = [];
    this.#unindexedBytes = 0;
    this.#maintenance.put(metas);
  }

  #onRemoved(ids: readonly string[], purged: boolean): void {
    if (purged) {
      this.#count.purged += ids.length;
      this.#options.onPurged?.(ids);
    }
    this.#notifyRemoved(ids);
  }

  #notifyRemoved(ids: readonly string[]): void {
    if (ids.length > 0) for (const watcher of this.#watchers) watcher.gone(ids);
  }

  #notifyChanged(meta: () => SampleMeta): void {
    if (this.#watchers.size === 0) return;
    const row = rowOf(meta());
    for (const watcher of this.#watchers) watcher.row(row);
  }

  #reportProblem(what: string, cause: unknown): void {
    if (this.#lastProblem === what) return;
    this.#lastProblem = what;
    this.#options.warn?.(`samples: ${what} (${messageOf(cause)})`, cause);
  }
}

/** Something failed, even if only a try that a later one made good. */
function failed({ outcome, stages }: Capture): boolean {
  if (outcome === undefined) return false;
  const failures = [outcome, ...stages.map(({ facts }) => facts)];
  return failures.some(
    ({ error, status = 0 }) =>
      (error !== undefined || status >= 400) && !clientLeft(error?.status ?? status, error),
  );
}
