/** The rows of the list: pages from the API, kept up to date by its live feed. */

import type { Hit, SamplesPage, SamplesQuery, UiRow } from '../../api/api.ts';
import { askAhead, getLive, getSamples } from '../kit/api-calls.ts';
import { failureText } from '../kit/fetching.ts';
import { several } from '../kit/format.ts';
import { t } from '../kit/language.ts';
import type { Query } from '../kit/route.ts';

export type Feed = 'connecting' | 'live' | 'lost';

export interface Rows {
  /** Newest first. */
  readonly all: readonly UiRow[];
  /** Older rows exist. */
  readonly more: boolean;
  readonly loading: boolean;
  readonly feed: Feed;
  readonly problem: string | undefined;
  /** Where the words of a search stand, by the ids of rows. */
  readonly hits: ReadonlyMap<string, Hit>;
  /** What the search says of itself; '' for nothing. */
  readonly remark: string;
  /** Loads older rows, unless they are being loaded. */
  older(): void;
  close(): void;
}

/** Called after a change; `inserted` holds the ids of rows from the live feed. */
export type Changed = (inserted: readonly string[]) => void;

const newestFirst = (a: UiRow, b: UiRow) => b.time - a.time || (a.id < b.id ? 1 : -1);

/** By the names of orders, as in the API. */
const VALUES: Readonly<Record<string, (row: UiRow) => string | number | null>> = {
  time: (row) => row.time,
  status: (row) => row.status,
  hops: (row) => row.hops,
  tokens: (row) => row.input_tokens,
  out: (row) => row.output_tokens,
  cached: (row) => row.cached_tokens,
  first: (row) => row.first_byte_ms,
  total: (row) => row.total_ms,
  bytes: (row) => row.bytes,
  cost: (row) => row.cost,
  model: (row) => row.model,
  target: (row) => row.target,
  client: (row) => row.client,
  key: (row) => row.owner,
  session: (row) => row.session,
};

/** The order of a list as the API sorts it. */
function orderBy(sort: string | undefined): (a: UiRow, b: UiRow) => number {
  const [by = '', direction] = (sort ?? '').split(':');
  const value = VALUES[by];
  if (value === undefined) return newestFirst;
  const up = direction === 'up';
  return (a, b) => {
    const [x, y] = [value(a), value(b)];
    if (x === y) return newestFirst(a, b);
    // Rows without the value come last.
    if (x === null || y === null) return x === null ? 1 : -1;
    return x < y === up ? -1 : 1;
  };
}

const PAUSES = [500, 1000, 2000, 5000];
/** Milliseconds after which rows are asked for again: of a search while exchanges are still being read for it, of a list for what the feed has missed. */
const AGAIN = 1000;

const pageOf = (query: Query, cursor?: string): SamplesQuery => ({
  ...query,
  cursor,
  limit: '200',
});

/** Asks for the first rows of a list that is opened in a moment. */
export function askFirstRows(query: Query): void {
  // Those of a search cost more, and wait for the feed.
  if (!query.q) askAhead(pageOf(query));
}

/** Opens the list for one set of filters. */
export function openRows(query: Query, changed: Changed): Rows {
  const stop = new AbortController();
  const { signal } = stop;
  const known = new Map<string, UiRow>();
  let all: readonly UiRow[] = [];
  let cursor: string | undefined;
  let loading = true;
  let feed: Feed = 'connecting';
  let problem: string | undefined;
  let waiting: string[] = [];
  let timer = 0;
  const order = orderBy(query.sort);
  const hits = new Map<string, Hit>();
  let remark = '';
  let again = 0;
  let gap = 0;
  /** The first rows do not wait for the feed. Those of a search do: they cost more, and are not asked for twice. */
  let ahead = !query.q;

  const sorted = () => {
    all = [...known.values()].sort(order);
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

  async function load(from: string | undefined): Promise<void> {
    loading = true;
    try {
      const page = await getSamples(pageOf(query, from), signal);
      for (const row of page.rows) known.set(row.id, row);
      for (const [id, hit] of Object.entries(page.hits ?? {})) hits.set(id, hit);
      remark = remarkOf(page);
      clearTimeout(again);
      if ((page.unread ?? 0) > 0) again = window.setTimeout(() => void load(undefined), AGAIN);
      // Reloading the first page after a lost feed does not change where older rows begin.
      if (from !== undefined || all.length === 0) cursor = page.cursor;
      problem = undefined;
      sorted();
    } catch (thrown) {
      problem = failureText(thrown) ?? problem;
    }
    loading = false;
    if (!signal.aborted) changed([]);
  }

  async function listen(): Promise<void> {
    for (let lost = 0; !signal.aborted; lost++) {
      try {
        for await (const event of getLive(query, signal)) {
          if (event.type === 'hello') {
            feed = 'live';
            lost = 0;
            if (ahead) {
              // What came between the first rows and the feed is asked for once they are drawn.
              ahead = false;
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
        problem = failureText(thrown);
      }
      if (signal.aborted) return;
      feed = 'lost';
      loading = false;
      changed([]);
      const pause = PAUSES[Math.min(lost, PAUSES.length - 1)]!;
      await new Promise((done) => setTimeout(done, pause));
    }
  }
  if (ahead) void load(undefined);
  void listen();

  return {
    get all() {
      return all;
    },
    get more() {
      return cursor !== undefined;
    },
    get loading() {
      return loading;
    },
    get feed() {
      return feed;
    },
    hits,
    get remark() {
      return remark;
    },
    get problem() {
      return problem;
    },
    older: () => {
      if (loading || cursor === undefined) return;
      void load(cursor);
    },
    close: () => {
      stop.abort();
      clearTimeout(timer);
      clearTimeout(again);
      clearTimeout(gap);
    },
  };
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
