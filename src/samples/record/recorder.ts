/** The recorder: decides what is kept, writes it behind the exchanges' backs, and never stands in their way. */

import type { SampleMode } from '../../config/sections/samples.ts';
import type { RecordedExchange, Recording } from '../../features/feature.ts';
import type { Blanked } from '../mask/blank-body.ts';
import { spellings } from '../mask/body-mask.ts';
import type { SampleMeta, SampleWatcher } from '../sample.ts';
import { metaOf, metaText, rowOf } from '../store/meta.ts';
import { markCut } from '../store/reconcile.ts';
import { DEFAULT_RETENTION, type Retention } from '../store/retention.ts';
import { runName } from '../store/run-name.ts';
import { save, unsave } from '../store/save.ts';
import { Upkeep } from '../store/upkeep.ts';
import { Capture, type CaptureHooks } from './capture.ts';
import { visitQueue } from './visit-queue.ts';

export interface RecorderLimits {
  /** Bytes held in memory over all exchanges; beyond it whole samples are dropped. */
  readonly memory: number;
  /** Bytes of one body that are kept; the rest is cut, and marked. */
  readonly body: number;
  /** Milliseconds between two visits of an open exchange's files. */
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
  readonly retention?: Partial<Retention>;
  /** Content that is blanked in bodies. */
  readonly redact?: readonly Blanked[];
  /** Secrets of the configuration: masked wherever they stand, whatever they look like. */
  readonly secrets?: readonly string[];
  /** Told once per trouble. */
  readonly warn?: (message: string, cause?: unknown) => void;
  /** Milliseconds since 1970. */
  readonly now?: () => number;
}

/** What a configuration that was loaded again may change. */
export type RecorderSettings = Pick<
  RecorderOptions,
  'mode' | 'routes' | 'redact' | 'secrets' | 'retention'
>;

export interface RecorderCounters {
  /** Exchanges now on disk. */
  readonly written: number;
  /** Exchanges that there was no room or no disk for. */
  readonly dropped: number;
  /** Exchanges that nobody wanted: fine ones, in mode `errors`. */
  readonly passed: number;
  /** Bytes in memory. */
  readonly held: number;
  /** Exchanges that are open or wait to be written. */
  readonly open: number;
  /** Samples removed because of their age or number. */
  readonly purged: number;
}

export interface Recorder {
  /** Undefined: nothing of this exchange can be wanted. */
  begin(exchange: RecordedExchange): Recording | undefined;
  /** Settings of a configuration that was loaded again; open exchanges keep theirs. */
  configure(settings: RecorderSettings): void;
  /** Resolves when all that is over by now is on disk. */
  flush(): Promise<void>;
  /** Writes all there is; exchanges still open are marked as cut. */
  close(): Promise<void>;
  counters(): RecorderCounters;
  /**
   * Tells of exchanges behind their backs: when the first of one is on disk, when it is over, when it
   * goes. Call what comes back to be left alone.
   */
  watch(watcher: SampleWatcher): () => void;
  /**
   * Removes all that was recorded of a memory space, exchanges under way included; how many.
   * @throws what the file system throws
   */
  eraseSpace(space: string): Promise<number>;
}

const LIMITS: RecorderLimits = {
  memory: 64 * 2 ** 20,
  body: 64 * 2 ** 20,
  flushAfter: 100,
  writers: 4,
};

const TIDY_AFTER = 500;
/** Samples that go into the index together when there is never a moment of rest. */
const INDEX_BATCH = 100;
/** The same for their size, as a part of what may be kept at all. */
const INDEX_SHARE = 0.02;

/** Opens the recorder. Costs nothing until the first exchange. Never throws. */
export function openRecorder(options: RecorderOptions): Recorder {
  const { root, warn = () => {}, now = Date.now } = options;
  const limits = { ...LIMITS, ...options.limits };
  const run = runName();
  let { mode, routes = {}, redact = [] } = options;
  let literals = (options.secrets ?? []).flatMap((secret) => spellings(secret));
  let retention: Retention = { ...DEFAULT_RETENTION, ...options.retention };
  let held = 0;
  const count = { written: 0, dropped: 0, passed: 0, purged: 0 };
  const open = new Set<Capture>();
  const watchers = new Set<SampleWatcher>();
  let unwritten: SampleMeta[] = [];
  let tick: ReturnType<typeof setTimeout> | undefined;
  let unwrittenBytes = 0;
  let closed = false;
  let troubled = '';

  const tellGone = (ids: readonly string[]) => {
    if (ids.length > 0) for (const watcher of watchers) watcher.gone(ids);
  };
  const upkeep = new Upkeep({
    root,
    own: run,
    retention: () => retention,
    now,
    gone: (ids, purged) => {
      if (purged) count.purged += ids.length;
      tellGone(ids);
    },
    trouble: (what, cause) => trouble(what, cause),
  });
  const tellRow = (meta: () => SampleMeta) => {
    if (watchers.size === 0) return;
    const row = rowOf(meta());
    for (const watcher of watchers) watcher.row(row);
  };
  const trouble = (what: string, cause: unknown) => {
    if (troubled === what) return;
    troubled = what;
    warn(`samples: ${what} (${cause instanceof Error ? cause.message : cause})`, cause);
  };
  const free = (capture: Capture, bytes: number) => {
    held -= bytes;
    capture.held -= bytes;
  };
  const wanted = (route: string | undefined): SampleMode =>
    route !== undefined && Object.hasOwn(routes, route) ? routes[route]! : mode;
  const routeModes = () => Object.values(routes);
  const may = (which: SampleMode) => mode === which || routeModes().includes(which);
  const isIdle = () => !may('all') && !may('errors');
  let idle = isIdle();

  /** Nothing of it is to be kept; what is on disk already goes with a visit. */
  const forget = (capture: Capture) => {
    free(capture, capture.held);
    capture.drop();
    // Those without a file would wait behind those with many: more of them than there is memory for.
    if (queue.cancel(capture) && !capture.onDisk) open.delete(capture);
    else queue.add(capture, true);
  };
  const drop = (capture: Capture) => {
    count.dropped++;
    trouble('dropped: more comes than can be written', `${limits.memory} bytes wait already`);
    forget(capture);
  };

  const hooks: CaptureHooks = {
    get literals() {
      return literals;
    },
    get blank() {
      return redact;
    },
    now,
    bodyBytes: limits.body,
    took: (capture, bytes) => {
      if (held + bytes > limits.memory) {
        drop(capture);
        return false;
      }
      held += bytes;
      capture.held += bytes;
      // What might be thrown away later makes room as well, before anything has to be dropped.
      if (capture.disposition === 'undecided' && held > limits.memory / 2 && !may('off')) {
        capture.disposition = 'write';
      }
      if (capture.disposition === 'write') schedule();
      return true;
    },
    routed: (capture, route) => {
      if (route !== undefined && capture.disposition === 'undecided' && wanted(route) === 'all') {
        capture.disposition = 'write';
        schedule();
      }
    },
    ended: (capture) => {
      const which = wanted(capture.told?.route);
      const keep = which === 'all' || (which === 'errors' && failed(capture));
      if (!keep) {
        count.passed++;
        forget(capture);
        return;
      }
      capture.disposition = 'write';
      queue.add(capture, true);
    },
  };

  /** One visit: writes what a capture has, or removes it. */
  const visit = async (capture: Capture): Promise<void> => {
    // Asked for once more while its last visit was under way.
    if (!open.has(capture)) return;
    try {
      if (capture.dropped) {
        open.delete(capture);
        await unsave(capture, root);
        if (capture.announced) tellGone([capture.id]);
        return;
      }
      await upkeep.room();
      const announced = capture.announced;
      const meta = await save(capture, { root, run, free });
      if (meta === undefined) {
        if (!announced) tellRow(() => metaOf(capture, 'open', run));
        return;
      }
      tellRow(() => meta);
      open.delete(capture);
      free(capture, capture.held);
      count.written++;
      troubled = '';
      unwritten.push(meta);
      unwrittenBytes += meta.edges.reduce((sum, edge) => sum + edge.bytes, 0);
      const many = retention.maxBytes > 0 && unwrittenBytes > retention.maxBytes * INDEX_SHARE;
      if (many || unwritten.length >= INDEX_BATCH) writeIndex();
    } catch (error) {
      trouble(`cannot write to ${root}`, error);
      open.delete(capture);
      if (!capture.dropped) {
        free(capture, capture.held);
        capture.drop();
        count.dropped++;
      }
      await unsave(capture, root).catch(() => {});
    }
  };

  const queue = visitQueue(limits.writers, visit, () => writeIndex());

  const schedule = () => {
    if (tick !== undefined || closed) return;
    tick = setTimeout(() => {
      tick = undefined;
      for (const capture of open) {
        if (capture.disposition === 'write' && capture.edges.some(({ dirty }) => dirty))
          queue.add(capture, false);
      }
      queue.pump();
    }, limits.flushAfter);
    tick.unref();
  };

  const writeIndex = () => {
    if (unwritten.length === 0) return;
    const metas = unwritten;
    unwritten = [];
    unwrittenBytes = 0;
    upkeep.put(metas);
  };

  /** What earlier processes left is looked through once this one has started. */
  const tidyUp = setTimeout(() => upkeep.match(), TIDY_AFTER);
  tidyUp.unref();

  const flush = async () => {
    await queue.idle();
    writeIndex();
    await upkeep.idle();
  };

  return {
    begin(exchange) {
      if (closed || idle) return undefined;
      const capture = new Capture(exchange, hooks);
      if (capture.dropped) return undefined;
      open.add(capture);
      // With modes by route nothing is written before the route is known.
      if (mode === 'all' && routeModes().length === 0) {
        capture.disposition = 'write';
        schedule();
      }
      return capture;
    },
    configure(settings) {
      ({ mode, routes = {}, redact = [] } = settings);
      literals = (settings.secrets ?? []).flatMap((secret) => spellings(secret));
      retention = { ...DEFAULT_RETENTION, ...settings.retention };
      idle = isIdle();
    },
    flush,
    async eraseSpace(space) {
      let count = 0;
      for (const capture of open) {
        if (capture.memorySpace !== space) continue;
        forget(capture);
        count++;
      }
      await flush();
      return count + (await upkeep.eraseSpace(space)).length;
    },
    watch(watcher) {
      watchers.add(watcher);
      for (const capture of open) {
        if (capture.announced && !capture.dropped) watcher.row(rowOf(metaOf(capture, 'open', run)));
      }
      return () => watchers.delete(watcher);
    },
    async close() {
      closed = true;
      clearTimeout(tick);
      clearTimeout(tidyUp);
      for (const capture of open) if (capture.disposition === 'write') queue.add(capture, false);
      await flush();
      for (const capture of open) {
        if (!capture.announced) continue;
        capture.prepare();
        const meta = metaOf(capture, 'cut', run);
        markCut(root, metaText(meta, capture.secrets.literals).meta);
      }
      open.clear();
      await upkeep.close();
    },
    counters: () => ({ ...count, held, open: open.size }),
  };
}

/** Something went wrong, be it only a try that was made up for. */
function failed({ told, edges }: Capture): boolean {
  if (told === undefined) return false;
  const erred = edges.some(({ facts }) => facts.error !== undefined || (facts.status ?? 0) >= 400);
  return told.error !== undefined || told.status >= 400 || erred;
}
