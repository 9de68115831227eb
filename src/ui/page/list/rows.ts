/** The rows of the list: pages from the API, kept up to date by its live feed. */

import { SAMPLE_SORTS } from '../../../samples/sample.ts';
import { comparePlaces, sortValue } from '../../../samples/store/row-order.ts';
import type { Hit, LiveEvent, SamplesPage, SamplesQuery, UiRow } from '../../api/api.ts';
import { failureText, follow, get, jsonOf, key, ROOT, send } from '../kit/fetching.ts';
import { several } from '../kit/format.ts';
import { t } from '../kit/language.ts';
import type { Query } from '../kit/route.ts';

export type Feed = 'connecting' | 'live' | 'lost';

/** Called after a change; `inserted` holds the ids of rows from the live feed. */
export type Changed = (inserted: readonly string[]) => void;

export type Rows = Readonly<ReturnType<typeof openRows>>;

/** Rows in the order in which the API lists them. */
function inOrder(rows: Iterable<UiRow>, sort = 'time'): readonly UiRow[] {
  const [name, direction] = sort.split(':');
  const order = {
    by: SAMPLE_SORTS.find((one) => one === name) ?? 'time',
    up: direction === 'up',
  };
  const places = Array.from(rows, (row) => {
    const { id, time, cost } = row;
    return { id, time, value: sortValue(row, order, cost), row };
  });
  return places.sort((a, b) => comparePlaces(a, b, order)).map(({ row }) => row);
}

const PAUSES = [500, 1000, 2000, 5000];
/** Milliseconds after which rows are asked for again: of a search while exchanges are still being read for it, of a list for what the feed has missed. */
const AGAIN = 1000;

/** Milliseconds after the first rows. */
const FEED_AFTER = 100;

const pageOf = (query: Query, cursor?: string): SamplesQuery => ({
  ...query,
  cursor,
  limit: '200',
});

/** The first rows, which came with the page or are asked for before the list is opened; undefined: that failed. */
type Ahead = SamplesPage | Promise<SamplesPage | undefined>;

let ahead: { readonly asked: string; readonly page: Ahead } | undefined;

/** The rows of a list that is opened in a moment. @param page undefined: they are asked for */
export function bringRows(query: Query, page?: SamplesPage): void {
  // Those of a search cost more, and wait for the feed.
  if (query.q) return;
  const params = pageOf(query);
  // If the key is refused, the call for the information says so.
  const asked = () =>
    jsonOf<SamplesPage>(send(`${ROOT}/samples`, key.get(), { params })).catch(() => undefined);
  ahead = { asked: JSON.stringify(params), page: page ?? asked() };
}

/** The rows that came with the page, if they are these. Taken once: later ones are asked for. */
function taken(params: SamplesQuery): Ahead | undefined {
  const early = ahead;
  ahead = undefined;
  return early?.asked === JSON.stringify(params) ? early.page : undefined;
}

/** Opens the list for one set of filters. */
export function openRows(query: Query, changed: Changed) {
  const stop = new AbortController();
  const { signal } = stop;
  const known = new Map<string, UiRow>();
  let cursor: string | undefined;
  let waiting: string[] = [];
  let timer = 0;
  let again = 0;
  let gap = 0;
  /** The first rows do not wait for the feed. Those of a search do: they cost more, and are not asked for twice. */
  let early = !query.q;

  const rows = {
    /** In the order of the list. */
    all: [] as readonly UiRow[],
    /** Older rows exist. */
    more: false,
    loading: true,
    feed: 'connecting' as Feed,
    problem: undefined as string | undefined,
    /** Where the words of a search stand, by the ids of rows. */
    hits: new Map<string, Hit>(),
    /** What the search says of itself; '' for nothing. */
    remark: '',
    /** Loads older rows, unless they are being loaded. */
    older(): void {
      if (!rows.loading && cursor !== undefined) void load(cursor);
    },
    close(): void {
      stop.abort();
      for (const one of [timer, again, gap]) clearTimeout(one);
    },
  };

  const sorted = () => {
    rows.all = inOrder(known.values(), query.sort);
  };
  // Rows that arrive at the same time are shown together.
  const soon = () => {
    if (timer !== 0) return;
    timer = window.setTimeout(() => {
      timer = 0;
      sorted();
      const inserted = waiting;
      waiting = [];
      if (!signal.aborted) changed(inserted);
    }, 60);
  };

  function show(page: SamplesPage, from?: string): void {
    for (const row of page.rows) known.set(row.id, row);
    for (const [id, hit] of Object.entries(page.hits ?? {})) rows.hits.set(id, hit);
    rows.remark = remarkOf(page);
    clearTimeout(again);
    if ((page.unread ?? 0) > 0) again = window.setTimeout(() => void load(undefined), AGAIN);
    // Reloading the first page after a lost feed does not change where older rows begin.
    if (from !== undefined || rows.all.length === 0) cursor = page.cursor;
    rows.more = cursor !== undefined;
    rows.problem = undefined;
    sorted();
  }

  async function load(from: string | undefined, early?: Ahead): Promise<void> {
    rows.loading = true;
    try {
      const come = await early;
      signal.throwIfAborted();
      show(come ?? (await get('/samples', pageOf(query, from), signal)), from);
    } catch (thrown) {
      rows.problem = failureText(thrown) ?? rows.problem;
    }
    rows.loading = false;
    if (!signal.aborted) changed([]);
  }

  async function listen(): Promise<void> {
    for (let lost = 0; !signal.aborted; lost++) {
      try {
        for await (const event of follow<LiveEvent>('/live', { params: query, signal })) {
          if (event.type === 'hello') {
            rows.feed = 'live';
            lost = 0;
            if (early) {
              // What came between the first rows and the feed is asked for once they are drawn.
              early = false;
              gap = window.setTimeout(() => void load(undefined), AGAIN);
              changed([]);
            } else await load(undefined);
          } else if (event.type === 'row') {
            if (!known.has(event.row.id)) waiting.push(event.row.id);
            known.set(event.row.id, event.row);
            soon();
          } else {
            for (const id of event.ids) known.delete(id);
            soon();
          }
        }
      } catch (thrown) {
        rows.problem = failureText(thrown);
      }
      if (signal.aborted) return;
      rows.feed = 'lost';
      rows.loading = false;
      changed([]);
      const pause = PAUSES[Math.min(lost, PAUSES.length - 1)]!;
      await new Promise((done) => setTimeout(done, pause));
    }
  }
  const first = taken(pageOf(query));
  if (first !== undefined && !(first instanceof Promise)) {
    show(first);
    rows.loading = false;
    // They are drawn before the feed is opened.
    gap = window.setTimeout(() => void listen(), FEED_AFTER);
  } else {
    if (early) void load(undefined, first);
    void listen();
  }

  return rows;
}

function remarkOf({ partial, unread = 0 }: SamplesPage): string {
  const parts = [
    partial === true ? t`Very many texts fit: only the newest ones were searched.` : '',
    unread > 0
      ? t`${several(unread, 'recorded exchange')} are still being read for the search.`
      : '',
  ];
  return parts.filter((part) => part !== '').join(' ');
}
