/** `GET /ui/api/live`: an event stream of new, changed and removed rows. */

import { Elysia } from 'elysia';
import { GatewayError } from '../../conversation/errors.ts';
import type { Prices } from '../../samples/replay/cost.ts';
import type { SampleRow, SampleStore, SampleWatcher } from '../../samples/sample.ts';
import { PRIVATE } from './answers.ts';
import { guard, type Viewer } from './guard.ts';
import { FILTER_QUERY, type FilterQuery, filterOfQuery, fits, priced, type UiRow } from './list.ts';
import type { UiOptions } from './options.ts';

export type Live = ReturnType<typeof createLive>;

/** Most open event streams. */
const MAX = 64;
/** Of these, for one key that sees its own exchanges alone. */
const MAX_PER_KEY = 8;
/** How many of the listed rows are watched, so that the page learns of their removal. */
const SEEN = 2000;
/** Milliseconds between two polls for rows of other processes, and how many of the newest are read. */
const POLL_EVERY = 1000;
const POLLED_ROWS = 200;

/**
 * `GET /ui/api/live?…` (same filters as the list but without `limit` and `cursor`): an event stream.
 * `event:` is the type, `data:` the object. A comment (`: …`) is sent every 15 seconds. Rows that do not
 * match the filter are left out; a row that was sent and no longer matches is sent as `gone`.
 */
export type LiveEvent =
  /** The stream is open; everything before is in the list. */
  | { readonly type: 'hello'; readonly now: number }
  /** A new or changed row: it replaces the row with its id. */
  | { readonly type: 'row'; readonly row: UiRow }
  /** Removed: too old, deleted, or not kept after all. */
  | { readonly type: 'gone'; readonly ids: readonly string[] };

export const liveRoutes = (live: Live, options: UiOptions) =>
  new Elysia()
    .use(guard(options))
    .get('/live', ({ request, query, viewer }) => live.open(request, query, viewer), {
      query: FILTER_QUERY,
    });

/** What the live list reads: `store` and `prices` as they are when they are needed. */
export interface LiveSources {
  readonly options: Pick<UiOptions, 'config'>;
  /** Calls the watcher for every exchange until the returned function is called. */
  watch(watcher: SampleWatcher): () => void;
  readonly store: SampleStore;
  readonly prices: Prices;
}

export function createLive(sources: LiveSources) {
  const streams = new Map<() => void, string | undefined>();
  const rows = new Set<(row: SampleRow) => void>();
  return {
    /** @throws GatewayError invalid_request for a filter, overloaded when too many streams are open */
    open(request: Request, query: FilterQuery, viewer: Viewer): Response {
      const owned = [...streams.values()].filter((owner) => owner === viewer.owner).length;
      if (streams.size >= MAX || (viewer.owner !== undefined && owned >= MAX_PER_KEY)) {
        throw new GatewayError('overloaded', 'Too many pages follow the live list.', {
          retryAfter: 10,
        });
      }
      const filter = filterOfQuery(query, viewer);
      // Rows that the page may show: only their removal is sent.
      const shown = new Set(sources.store.list({ ...filter, limit: SEEN }).map(({ id }) => id));
      let unwatch = () => {};
      let poll: ReturnType<typeof setInterval> | undefined;
      const stream = eventStream(request.signal, () => {
        unwatch();
        clearInterval(poll);
        streams.delete(stream.end);
        rows.delete(row);
      });
      streams.set(stream.end, viewer.owner);
      const gone = (ids: readonly string[]) => {
        const known = ids.filter((id) => shown.delete(id));
        if (known.length > 0) stream.send({ type: 'gone', ids: known });
      };
      const row = (one: SampleRow) => {
        const row = priced(one, sources.prices, viewer.keys);
        if (!fits(row, filter)) return gone([one.id]);
        shown.add(one.id);
        stream.send({ type: 'row', row });
      };
      stream.send({ type: 'hello', now: Date.now() });
      unwatch = sources.watch({ row, gone });
      rows.add(row);
      if (sources.options.config().workers > 1) {
        poll = setInterval(pollOtherProcesses(sources, filter, row), POLL_EVERY);
      }
      poll?.unref();
      return stream.response;
    },
    /** Sends a row that the recorder of this process did not record. */
    show(row: SampleRow): void {
      for (const show of rows) show(row);
    },
    /** Ends all streams. */
    close(): void {
      for (const end of [...streams.keys()]) end();
    },
  };
}

/** Polls for rows that another process wrote since the last poll. */
function pollOtherProcesses(
  sources: LiveSources,
  filter: Parameters<SampleStore['list']>[0],
  row: (row: SampleRow) => void,
): () => void {
  const newest = () => {
    try {
      return sources.store.list({ ...filter, limit: POLLED_ROWS });
    } catch {
      // The index is busy: the next poll finds the same rows.
      return [];
    }
  };
  const mark = ({ id, state, bytes }: SampleRow) => `${id} ${state} ${bytes}`;
  let known = new Set(newest().map(mark));
  return () => {
    const rows = newest();
    for (const one of rows.toReversed()) if (!known.has(mark(one))) row(one);
    if (rows.length > 0) known = new Set(rows.map(mark));
  };
}

const HEARTBEAT_MS = 15_000;
/** Most bytes that wait for a page that does not read; beyond it the stream ends and the page reconnects. */
const MAX_WAITING = 8 * 2 ** 20;

/**
 * Server-sent events with heartbeats; closed when the page stops reading.
 * @param signal fires when the page disconnects @param onClose called once when the stream ends, on either side
 */
function eventStream(signal: AbortSignal, onClose: () => void) {
  const encoder = new TextEncoder();
  let controller: ReadableStreamDefaultController<Uint8Array> | undefined;
  let beat: ReturnType<typeof setInterval> | undefined;
  const close = () => {
    if (controller === undefined) return;
    const open = controller;
    controller = undefined;
    clearInterval(beat);
    signal.removeEventListener('abort', close);
    try {
      open.close();
    } catch {
      // The page has cancelled the stream.
    }
    onClose();
  };
  const write = (text: string) => {
    if (controller === undefined) return;
    if ((controller.desiredSize ?? 0) <= 0) close();
    else controller.enqueue(encoder.encode(text));
  };
  const body = new ReadableStream<Uint8Array>(
    {
      start(opened) {
        controller = opened;
      },
      cancel: close,
    },
    new ByteLengthQueuingStrategy({ highWaterMark: MAX_WAITING }),
  );
  beat = setInterval(() => write(': \n\n'), HEARTBEAT_MS);
  beat.unref();
  signal.addEventListener('abort', close);
  return {
    response: new Response(body, {
      // The last one keeps nginx and similar proxies from buffering events.
      headers: { ...PRIVATE, 'content-type': 'text/event-stream', 'x-accel-buffering': 'no' },
    }),
    // JSON holds no raw line breaks, so one data line is enough.
    send: (event: LiveEvent) => write(`event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`),
    /** Closes the stream. */
    end: close,
  };
}
