/** The live list: only visible rows are drawn, and the scroll position stays when new rows arrive. */

import { useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks';
import type { UiRow } from '../../api/api.ts';
import { several } from '../kit/format.ts';
import { useKeys, useLater, useRedraw } from '../kit/hooks.ts';
import { t } from '../kit/language.ts';
import { useCheap } from '../kit/notes.tsx';
import type { Query } from '../kit/route.ts';
import { Button } from '../kit/ui.tsx';
import { COLUMNS, type Column, fitting, widthsOf } from './columns.ts';
import { type RowContext, rowCells, rowLabel } from './row-cells.tsx';
import type { Rows } from './rows.ts';
import { toneOf } from './status.ts';
import { useStories } from './stories.ts';

const ELAPSED_EVERY_MS = 500;
const WIDE = 880;
/** Pixels of a row, as in the styles. */
const ROW_HEIGHT = 48;
const CARD_HEIGHT = 70;
/** Rows that are drawn above and below those in view. */
const SPARE = 8;
/** Pixels that a row may lose to the scroll bar. */
const SCROLLBAR = 16;

export interface ListHandle {
  /** The reader goes from the search to the rows. */
  enter(): void;
}

/** Rows by which keys move the selection. */
const STEPS: Readonly<Record<string, number>> = {
  ArrowDown: 1,
  ArrowUp: -1,
  PageDown: 15,
  PageUp: -15,
  Home: -1e9,
  End: 1e9,
};

interface ExchangeListProps {
  readonly rows: Rows;
  readonly inserted: readonly string[];
  /** The list is shown, and takes keys. */
  readonly isHere: boolean;
  readonly open: string | undefined;
  /** The order of the rows, as in the URL. */
  readonly sort: string;
  /** A row was chosen by a click, or (`moved`) by the keys that move. */
  readonly choose: (id: string, moved: boolean) => void;
  /** A filter or the order was chosen in the list. */
  readonly filter: (changes: Query) => void;
  readonly handle: { current: ListHandle | null };
}

export function ExchangeList(props: ExchangeListProps) {
  const { rows, inserted, isHere, open, sort, choose, filter, handle } = props;
  const redraw = useRedraw();
  const box = useRef<HTMLDivElement>(null);
  const scroller = useRef<HTMLDivElement>(null);
  // Alone on the screen, the list is as wide as the window, so its rows are drawn before it is measured.
  const [width, setWidth] = useState(isHere && open === undefined ? innerWidth : 0);
  const selected = useRef<string>(undefined);
  /** The selected row is not loaded yet and must be scrolled to later. */
  const sought = useRef(false);
  const fresh = useRef(0);
  // The first rows are drawn without what can wait: they are there sooner.
  const later = useLater(rows.all.length > 0);
  const spare = later ? SPARE : 0;
  const { all } = rows;
  const before = useRef({ rows, all, height: 0 });
  const stories = useStories();
  const isCheap = useCheap(later);
  const most = useMemo(() => scaleOf(all), [all]);

  const wide = width >= WIDE;
  const columns = useMemo(() => (wide ? fitting(width - SCROLLBAR) : COLUMNS), [wide && width]);
  const height = wide ? ROW_HEIGHT : CARD_HEIGHT;

  const intoView = (index: number) => {
    const { scrollTop, clientHeight } = scroller.current!;
    const top = index * height;
    const end = top + height - clientHeight;
    if (top < scrollTop) scroller.current!.scrollTop = top;
    else if (end > scrollTop) scroller.current!.scrollTop = end;
  };
  const show = () => {
    const index = all.findIndex((row) => row.id === selected.current);
    sought.current = index < 0 && selected.current !== undefined;
    if (index >= 0) intoView(index);
  };

  // A hidden list has no width, and keeps the one that it had.
  useLayoutEffect(() => {
    const measure = () => {
      if (box.current!.clientWidth > 0) setWidth(box.current!.clientWidth);
    };
    const observer = new ResizeObserver(() => {
      measure();
      redraw();
    });
    observer.observe(box.current!);
    measure();
    return () => observer.disconnect();
  }, []);

  useLayoutEffect(() => {
    if (open === undefined || open === selected.current) return;
    selected.current = open;
    show();
    redraw();
  }, [open]);

  const { scrollTop = 0, clientHeight = innerHeight } = scroller.current ?? {};
  // Rows came or went, or have another height: what the reader looks at stays where it is.
  useLayoutEffect(() => {
    const old = before.current;
    before.current = { rows, all, height };
    const list = scroller.current!;
    if (old.height !== height && old.height > 0) {
      list.scrollTop = (list.scrollTop / old.height) * height;
      show();
    } else if (old.rows === rows && old.all !== all) {
      // A reader who has scrolled, points at a row or uses the keys keeps the position.
      const reads = list.scrollTop > 0 || list.matches(':hover') || list === document.activeElement;
      const top = Math.ceil(list.scrollTop / height);
      const bottom = Math.floor((list.scrollTop + list.clientHeight) / height);
      // The selected row if it is in view, else the first.
      const held =
        old.all.slice(top, bottom).find(({ id }) => id === selected.current) ?? old.all[top];
      const now = reads && held ? all.findIndex(({ id }) => id === held.id) : -1;
      const moved = now < 0 ? 0 : now - old.all.indexOf(held!);
      if (moved !== 0 && all.length * height > list.clientHeight) {
        list.scrollTop += moved * height;
        fresh.current = list.scrollTop > 0 ? Math.max(0, fresh.current + moved) : 0;
      }
    }
    if (sought.current) show();
    if (list.scrollTop !== scrollTop) redraw();
  }, [rows, all, height]);

  const top = Math.max(0, Math.floor(scrollTop / height) - spare);
  const bottom = Math.min(all.length, Math.ceil((scrollTop + clientHeight) / height) + spare);
  const shown = width === 0 ? [] : all.slice(top, bottom);
  const running = shown.some(({ state }) => state === 'open');
  useLayoutEffect(() => {
    if (!running) return;
    const clock = setInterval(redraw, ELAPSED_EVERY_MS);
    return () => clearInterval(clock);
  }, [running]);
  useLayoutEffect(() => {
    stories.want(shown);
    if (rows.more && bottom > all.length - 40) rows.older();
  });

  const move = (by: number) => {
    if (all.length === 0) return;
    const at = all.findIndex((row) => row.id === selected.current);
    const to = at < 0 ? 0 : Math.max(0, Math.min(all.length - 1, at + by));
    const { id } = all[to]!;
    if (id === selected.current) return;
    selected.current = id;
    intoView(to);
    redraw();
    choose(id, true);
  };
  handle.current = {
    enter() {
      scroller.current!.focus({ preventScroll: true });
      move(0);
    },
  };
  useKeys(({ key, target }) => {
    if (!isHere) return false;
    const hasFocus = document.activeElement === scroller.current;
    const onControl =
      target instanceof Element && target.closest('button,a,input,select,summary') !== null;
    if (key === 'j' || key === 'k') move(key === 'j' ? 1 : -1);
    else if (key === 'Enter' && (hasFocus || (open === undefined && !onControl))) {
      if (selected.current !== undefined) choose(selected.current, false);
    } else if (hasFocus && STEPS[key] !== undefined) move(STEPS[key]);
    // Other keys belong to the focused element.
    else return false;
    return true;
  });

  const lines = shown.map((row, i) => {
    const story = stories.of(row);
    const parts = { row, story, hit: rows.hits.get(row.id), columns, most, isCheap };
    return (
      <div
        key={row.id}
        class={inserted.includes(row.id) ? 'row new' : 'row'}
        role="row"
        id={`row-${row.id}`}
        tabIndex={-1}
        data-id={row.id}
        data-tone={toneOf(row)}
        data-memory={row.in_memory ? '' : undefined}
        data-made={row.made_by || undefined}
        aria-label={rowLabel(row, story)}
        aria-rowindex={top + i + 1}
        aria-selected={row.id === selected.current}
        style={{ '--y': `${(top + i) * height}px` }}
      >
        <RowContent {...parts} />
      </div>
    );
  });

  const press = (event: MouseEvent) => {
    const target = event.target as Element;
    if (target.closest('a') !== null) return;
    const value = target.closest<HTMLElement>('[data-filter]')?.dataset;
    const id = target.closest<HTMLElement>('.row')?.dataset.id;
    if (value?.filter !== undefined) filter({ [value.filter]: value.value ?? '' });
    else if (id !== undefined) choose(id, false);
  };
  return (
    <div
      class="list"
      ref={box}
      data-form={wide ? 'table' : 'cards'}
      style={{ '--columns': widthsOf(columns) }}
    >
      <Headings columns={columns} sort={sort} choose={(to) => filter({ sort: to })} />
      <div
        class="scroller"
        ref={scroller}
        role="grid"
        tabIndex={0}
        aria-label={
          sort === '' ? t`Exchanges, newest first` : t`Exchanges, sorted by ${orderName(sort)}`
        }
        aria-rowcount={rows.more ? -1 : all.length}
        aria-activedescendant={
          shown.some(({ id }) => id === selected.current) ? `row-${selected.current}` : undefined
        }
        onScroll={({ currentTarget }) => {
          if (currentTarget.scrollTop === 0) fresh.current = 0;
          redraw();
        }}
        onClick={press}
      >
        <div class="space" role="presentation" style={{ '--height': `${all.length * height}px` }}>
          {lines}
        </div>
      </div>
      {fresh.current > 0 && (
        <Button class="pill" onClick={() => scroller.current!.scrollTo({ top: 0 })}>
          {`↑ ${several(fresh.current, 'new exchange')}`}
        </Button>
      )}
      <p class="sr" role="status">
        {inserted.length > 0 && several(inserted.length, 'new exchange')}
      </p>
    </div>
  );
}

/** Drawn again when something of it has changed; while the exchange runs, for its elapsed time. */
function RowContent(parts: Omit<RowContext, 'now'>) {
  const now = Date.now();
  const elapsed = parts.row.state === 'open' ? now : undefined;
  return useMemo(() => rowCells({ ...parts, now }), [...Object.values(parts), elapsed]);
}

/** `Cost, smallest first`. @param sort as in the URL */
function orderName(sort: string): string {
  const [by, direction] = sort.split(':');
  const title = COLUMNS.find((column) => column.sort === by)?.title ?? by!;
  return direction === 'up' ? t`${title}, smallest first` : t`${title}, largest first`;
}

interface HeadingsProps {
  readonly columns: readonly Column[];
  /** As in the URL: `cost`, `cost:up`; '' for the newest first. */
  readonly sort: string;
  readonly choose: (sort: string) => void;
}

/** The headings of the list: a click on one sorts by it. */
function Headings({ columns, sort, choose }: HeadingsProps) {
  const [by, direction] = sort === '' ? ['time', undefined] : sort.split(':');
  const up = direction === 'up';
  const heading = ({ sort: own, title }: Column) => {
    if (own === undefined) return title;
    const here = own === by;
    const press = () => {
      if (!here) choose(own === 'time' ? '' : own);
      else choose(up ? '' : `${own}:up`);
    };
    return (
      <Button
        aria-pressed={here}
        aria-label={t`Sort by ${here ? orderName(sort || 'time') : title}`}
        onClick={press}
      >
        {`${title}${here ? (up ? ' ↑' : ' ↓') : ''}`}
      </Button>
    );
  };
  return (
    <div class="columns" role="group" aria-label={t`Sort by`}>
      {columns.map((column) => (
        <span key={column.name} class={`cell ${column.name}`}>
          {heading(column)}
        </span>
      ))}
    </div>
  );
}

/** Milliseconds of a full bar: the 95th percentile of the loaded rows. */
function scaleOf(rows: readonly UiRow[]): number {
  const times = rows.map((row) => row.total_ms ?? 0).sort((a, b) => a - b);
  const high = times[Math.floor(times.length * 0.95)] ?? 0;
  // Rounded up in steps, so that bars do not change with every row.
  return 10 ** (Math.ceil(Math.log10(Math.max(100, high)) * 4) / 4);
}
