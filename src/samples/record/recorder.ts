/** The recorder: decides which exchanges are kept and writes them in the background, without delaying any of them. */

import type { SampleMode } from '../../config/sections/samples.ts';
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
import { RecentExchanges, type RecentLimits, type RecentSamples } from './recent.ts';
import { RunningExchanges } from './running.ts';
import { writeQueue } from './write-queue.ts';

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

export interface Recorder {
  /** Undefined: no mode keeps this exchange, and it is not held in memory either. */
  begin(exchange: RecordedExchange): Recording | undefined;
  /** The mode in force for exchanges without a route that has its own. */
  readonly mode: SampleMode;
  /** Changes the mode until {@link configure} is called; open exchanges keep theirs. */
  switchMode(mode: SampleMode): void;
  /** The last exchanges that are not recorded; undefined: they are not held. */
  readonly recent: RecentSamples | undefined;
  /** Exchanges that run here and are not among {@link recent}. */
  readonly running: Pick<RunningExchanges, 'rows' | 'find' | 'body'>;
  /** Applies the settings of a reload; open exchanges keep theirs. */
  configure(settings: RecorderSettings): void;
  /**
   * To be called before the bodies of an exchange that runs here are read. Resolves when its files hold all of it that
   * is masked, or after 250 ms; of one that is not written, when {@link running} has its bodies. It waits for no other
   * exchange.
   */
  look(id: string): Promise<void>;
  /** Resolves when every exchange that is over by now is on disk. */
  flush(): Promise<void>;
  /** Writes everything; exchanges still open are marked as cut. */
  close(): Promise<void>;
  counters(): RecorderCounters;
  /**
   * Notifies the watcher when an exchange first reaches the disk, when it ends and when it is removed,
   * until the returned function is called.
   */
  watch(watcher: SampleWatcher): () => void;
  /**
   * Removes all samples of a memory space, running exchanges included, and returns their number.
   * @param until those that began later stay, in ms since 1970; left out: none do
   * @throws what the file system throws
   */
  eraseSpace(space: SpaceName, until?: number): Promise<number>;
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

/** Opens the recorder. It costs nothing until the first exchange. Never throws. */
export function openRecorder(options: RecorderOptions): Recorder {
  const { root, warn = () => {}, now = Date.now } = options;
  const limits = { ...LIMITS, ...options.limits };
  const run = runName();
  let { mode, routes = {}, redact = [] } = options;
  let literals = knownLiterals(options.secrets);
  let retention: Retention = { ...DEFAULT_RETENTION, ...options.retention };
  let held = 0;
  const count = { written: 0, dropped: 0, passed: 0, purged: 0 };
  const watchers = new Set<SampleWatcher>();
  const running = new RunningExchanges(run, watchers);
  const { open } = running;
  let unindexed: SampleMeta[] = [];
  let flushTimer: ReturnType<typeof setTimeout> | undefined;
  let unindexedBytes = 0;
  let closed = false;
  let lastProblem = '';

  const notifyRemoved = (ids: readonly string[]) => {
    if (ids.length > 0) for (const watcher of watchers) watcher.gone(ids);
  };
  const maintenance = new StoreMaintenance({
    root,
    own: run,
    retention: () => retention,
    now,
    statfs: options.statfs,
    onRemoved: (ids, purged) => {
      if (purged) {
        count.purged += ids.length;
        options.onPurged?.(ids);
      }
      notifyRemoved(ids);
    },
    onProblem: (what, cause) => reportProblem(what, cause),
  });
  const notifyChanged = (meta: () => SampleMeta) => {
    if (watchers.size === 0) return;
    const row = rowOf(meta());
    for (const watcher of watchers) watcher.row(row);
  };
  const reportProblem = (what: string, cause: unknown) => {
    if (lastProblem === what) return;
    lastProblem = what;
    warn(`samples: ${what} (${cause instanceof Error ? cause.message : cause})`, cause);
  };
  const leave = (capture: Capture) => {
    if (capture.listed) open.remove(capture);
    capture.listed = false;
    for (const go of capture.takeReaders()) go();
  };
  const release = (capture: Capture, bytes: number) => {
    held -= bytes;
    capture.held -= bytes;
  };
  const modeOf = (route: string | undefined): SampleMode =>
    route !== undefined && Object.hasOwn(routes, route) ? routes[route]! : mode;
  const routeModes = () => Object.values(routes);
  /** A route that says "off" by itself is not looked at. */
  const mayBeSeen = (route: string | undefined) =>
    route === undefined || !Object.hasOwn(routes, route) || routes[route] !== 'off';
  const anyRouteIs = (which: SampleMode) => mode === which || routeModes().includes(which);
  const isIdle = () => !anyRouteIs('all') && !anyRouteIs('errors');
  let idle = isIdle();

  const discard = (capture: Capture) => {
    // Of one with files, the end of their removal is told.
    if (capture.told && !capture.announced && !capture.dropped) notifyRemoved([capture.id]);
    release(capture, capture.held);
    capture.drop();
    // A capture without files does not wait in the queue: more of them could come than memory holds.
    if (queue.cancel(capture) && !capture.onDisk) leave(capture);
    else queue.add(capture, true);
  };
  /** An exchange that is not kept stays in memory for a while, unless parts of it are on disk. */
  const passOn = (capture: Capture) => {
    if (recent === undefined || capture.disposition !== 'undecided') return discard(capture);
    release(capture, capture.held);
    if (recent.take(capture)) leave(capture);
    else discard(capture);
  };
  const drop = (capture: Capture) => {
    count.dropped++;
    reportProblem(
      'dropped: exchanges come faster than they can be written',
      `${limits.memory} bytes wait already`,
    );
    discard(capture);
  };

  const hooks: CaptureHooks = {
    literals: () => literals(),
    blank: () => redact,
    now,
    bodyBytes: limits.body,
    hold: (capture, bytes) => {
      if (held + bytes > limits.memory) {
        drop(capture);
        return false;
      }
      held += bytes;
      capture.held += bytes;
      // Writing undecided exchanges early frees memory before anything has to be dropped.
      if (capture.disposition === 'undecided' && held > limits.memory / 2 && !anyRouteIs('off')) {
        capture.disposition = 'write';
      }
      if (capture.disposition === 'write') schedule();
      return true;
    },
    onRoute: (capture, route) => {
      capture.hidden = !mayBeSeen(route);
      running.tellSoon();
      if (route !== undefined && capture.disposition === 'undecided' && modeOf(route) === 'all') {
        capture.disposition = 'write';
        schedule();
      }
    },
    onEnd: (capture) => {
      const which = modeOf(capture.outcome?.route);
      const keep = which === 'all' || (which === 'errors' && failed(capture));
      if (!keep) {
        count.passed++;
        passOn(capture);
        return;
      }
      capture.disposition = 'write';
      queue.add(capture, true);
    },
  };

  const recent =
    options.recent &&
    new RecentExchanges({
      limits: options.recent,
      hooks,
      run,
      watchers,
      holds: mayBeSeen,
    });

  const writeCapture = async (capture: Capture): Promise<void> => {
    const readers = capture.takeReaders();
    await writeHeld(capture, closed || readers.length > 0 ? 0 : MIN);
    for (const go of readers) go();
  };

  const writeHeld = async (capture: Capture, least: number): Promise<void> => {
    // It was queued again while its last write was under way.
    if (!capture.listed) return;
    try {
      if (capture.dropped) {
        leave(capture);
        await removeSaved(capture, root);
        if (capture.announced) notifyRemoved([capture.id]);
        return;
      }
      await maintenance.waitForRoom();
      const announced = capture.announced;
      const meta = await save(capture, { root, run, release, least });
      if (meta === undefined) {
        if (!announced) notifyChanged(() => metaOf(capture, 'open', run));
        return;
      }
      notifyChanged(() => meta);
      leave(capture);
      release(capture, capture.held);
      count.written++;
      lastProblem = '';
      unindexed.push(meta);
      unindexedBytes += meta.edges.reduce((sum, body) => sum + body.bytes, 0);
      const many = retention.maxBytes > 0 && unindexedBytes > retention.maxBytes * INDEX_SHARE;
      if (many || unindexed.length >= INDEX_BATCH) writeIndex();
    } catch (error) {
      reportProblem(`cannot write to ${root}`, error);
      leave(capture);
      if (!capture.dropped) {
        release(capture, capture.held);
        capture.drop();
        count.dropped++;
      }
      await removeSaved(capture, root).catch(() => {});
    }
  };

  const queue = writeQueue(limits.writers, writeCapture, () => writeIndex());

  const schedule = () => {
    if (flushTimer !== undefined || closed) return;
    flushTimer = setTimeout(() => {
      flushTimer = undefined;
      for (const capture of open.all()) {
        if (capture.disposition === 'write' && capture.stages.some(({ dirty }) => dirty))
          queue.add(capture, false);
      }
      queue.pump();
    }, limits.flushAfter).unref();
  };

  const writeIndex = () => {
    if (unindexed.length === 0) return;
    const metas = unindexed;
    unindexed = [];
    unindexedBytes = 0;
    maintenance.put(metas);
  };

  /** The index is compared with files of earlier processes once this one has started. */
  const reconcileTimer = setTimeout(() => maintenance.reconcile(), RECONCILE_AFTER_MS).unref();

  const flush = async () => {
    await queue.idle();
    writeIndex();
    await maintenance.idle();
  };

  return {
    begin(exchange) {
      if (closed) return undefined;
      if (idle) return recent?.begin(exchange);
      const capture = new Capture(exchange, hooks);
      if (capture.dropped) return undefined;
      open.add(capture);
      capture.listed = true;
      // Where routes have modes of their own, nothing is written before the route is known.
      if (mode === 'all' && routeModes().length === 0) {
        capture.disposition = 'write';
        schedule();
      }
      return capture;
    },
    get mode() {
      return mode;
    },
    switchMode(next) {
      mode = next;
      idle = isIdle();
    },
    recent,
    running,
    configure(settings) {
      ({ mode, routes = {}, redact = [] } = settings);
      literals = knownLiterals(settings.secrets);
      retention = { ...DEFAULT_RETENTION, ...settings.retention };
      idle = isIdle();
    },
    async look(id) {
      for (const capture of open.all()) {
        if (capture.id !== id) continue;
        if (capture.outcome !== undefined) return;
        if (capture.disposition === 'undecided') return running.read(capture);
        if (capture.disposition !== 'write') return;
        await new Promise<void>((resolve) => {
          setTimeout(resolve, LOOK_MS).unref();
          capture.addReader(resolve);
          queue.add(capture, false);
          queue.pump();
        });
        return;
      }
    },
    flush,
    async eraseSpace(space, until) {
      let count = recent?.eraseSpace(space, until) ?? 0;
      for (const capture of open.all()) {
        if (!isOfSpace(capture, space, until)) continue;
        discard(capture);
        count++;
      }
      await flush();
      return count + (await maintenance.eraseSpace(space, until)).length;
    },
    watch(watcher) {
      watchers.add(watcher);
      for (const capture of open.all()) {
        if (capture.announced && !capture.dropped) watcher.row(rowOf(metaOf(capture, 'open', run)));
      }
      for (const row of recent?.rows() ?? []) if (row.state === 'open') watcher.row(row);
      for (const capture of open.all()) capture.told = false;
      running.tellSoon();
      return () => watchers.delete(watcher);
    },
    async close() {
      closed = true;
      recent?.clear();
      running.close();
      clearTimeout(flushTimer);
      clearTimeout(reconcileTimer);
      for (const capture of open.all())
        if (capture.disposition === 'write') queue.add(capture, false);
      await flush();
      for (const capture of open.all()) {
        if (capture.announced) markCut(root, shownMeta(capture, 'cut', run));
      }
      for (const capture of open.all()) leave(capture);
      await maintenance.close();
    },
    counters: () => ({ ...count, held, open: open.size }),
  };
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
