/** The live list: renders only visible rows, and keeps the scroll position when new rows arrive. */

import type { Hit, Story, UiRow } from '../../api/api.ts';
import { attribute, button, h, replace } from '../kit/dom.ts';
import { several } from '../kit/format.ts';
import { chosenLook } from './chosen-look.ts';
import { fitting, type Look, widthsOf } from './columns.ts';
import { headings } from './headings.ts';
import { rowElement } from './row-cells.ts';
import type { Rows } from './rows.ts';
import { createStoryShelf } from './stories.ts';

export interface ListView {
  readonly node: HTMLElement;
  /** Rows changed; `inserted` are new. */
  update(rows: Rows, inserted: readonly string[]): void;
  /** Selects the row of the open exchange. */
  select(id: string | undefined): void;
  /** Moves the selection by `by` rows; false at an end. */
  move(by: number): boolean;
  readonly selected: string | undefined;
  focus(): void;
  /** The order of the rows, as in the URL. */
  sorted(sort: string): void;
  /** Columns or density were chosen. */
  look(): void;
  close(): void;
}

export interface ListActions {
  /** A row was chosen by a click or Enter, or (`moved`) by the keys that move. */
  open(id: string, moved: boolean): void;
  /** A filter or the order was chosen in the list. */
  filter(changes: Readonly<Record<string, string>>): void;
}

/** Milliseconds between two updates of the elapsed time of running exchanges. */
const ELAPSED_EVERY = 500;
const WIDE = 880;
/** Pixels of a row, as in the styles. */
const ROW_HEIGHT = 48;
const COMPACT_HEIGHT = 28;
const CARD_HEIGHT = 70;
const SPARE = 8;
/** Pixels that a row may lose to the scroll bar. */
const SCROLLBAR = 16;

const names = ({ columns }: Look): string => columns.map(({ name }) => name).join();

export function createListView({ open, filter }: ListActions): ListView {
  let chosen: Look = chosenLook();
  /** The chosen one, as far as the width holds it. */
  let look: Look = chosen;
  let sort = '';
  let wide = true;
  let width = Number.POSITIVE_INFINITY;
  let rows: Rows | undefined;
  let selected: string | undefined;
  let height = ROW_HEIGHT;
  let most = 1000;
  let fresh = 0;
  /** The rows that were drawn last. */
  let drawn: readonly UiRow[] = [];
  /** The selected row is not loaded yet and must be scrolled to later. */
  let sought = false;
  const made = new Map<
    string,
    { row: UiRow; most: number; story: Story | undefined; hit: Hit | undefined; node: HTMLElement }
  >();
  const stories = createStoryShelf(() => draw());

  const space = h('div', { class: 'space', role: 'presentation' });
  const scroller = h(
    'div',
    {
      class: 'scroller',
      role: 'grid',
      tabindex: 0,
      'aria-label': 'Exchanges, newest first',
      on: {
        scroll: () => {
          if (scroller.scrollTop === 0) fresh = 0;
          draw();
        },
        click: (event) => {
          const target = event.target as Element;
          if (target.closest('a') !== null) return;
          const chosen = target.closest<HTMLElement>('[data-filter]')?.dataset;
          if (chosen?.filter !== undefined) {
            filter({ [chosen.filter]: chosen.value ?? '' });
            return;
          }
          const row = target.closest<HTMLElement>('.row');
          if (row?.dataset.id !== undefined) open(row.dataset.id, false);
        },
      },
    },
    space,
  );
  const pill = button('', () => scroller.scrollTo({ top: 0, behavior: 'auto' }), {
    class: 'pill',
    hidden: true,
  });
  const announcement = h('p', { class: 'sr', role: 'status' });
  const columns = h('div', { class: 'columns', role: 'group', 'aria-label': 'Sort by' });
  const node = h('div', { class: 'list' }, columns, scroller, pill, announcement);

  new ResizeObserver(() => {
    if (!measured()) draw();
  }).observe(node);

  /** True: the width of the list has changed, and what depends on it is arranged anew. */
  function measured(): boolean {
    const now = node.clientWidth;
    if (now === width || now === 0) return false;
    width = now;
    wide = width >= WIDE;
    arrange();
    return true;
  }

  /** Applies the width of the list, its columns and its density. */
  function arrange(): void {
    const fits = wide ? fitting(chosen, width - SCROLLBAR) : chosen;
    if (names(fits) !== names(look) || fits.compact !== look.compact) made.clear();
    look = fits;
    node.dataset.form = wide ? 'table' : 'cards';
    node.dataset.density = wide && look.compact ? 'compact' : 'comfortable';
    node.style.setProperty('--columns', widthsOf(look));
    replace(
      columns,
      headings(look, sort, (next) => filter({ sort: next })),
    );
    const before = height;
    height = !wide ? CARD_HEIGHT : look.compact ? COMPACT_HEIGHT : ROW_HEIGHT;
    if (before !== height) {
      stretch();
      scroller.scrollTop = (scroller.scrollTop / before) * height;
      show();
    }
    draw();
  }

  /** Sets the scroll height to that of all rows. */
  function stretch(): void {
    space.style.setProperty('--height', `${(rows?.all.length ?? 0) * height}px`);
  }

  function draw(): void {
    if (rows === undefined) return;
    const { all } = rows;
    drawn = all;
    const top = Math.max(0, Math.floor(scroller.scrollTop / height) - SPARE);
    const bottom = Math.min(
      all.length,
      Math.ceil((scroller.scrollTop + scroller.clientHeight) / height) + SPARE,
    );
    stretch();
    const now = Date.now();
    const onScreen = all.slice(top, bottom);
    stories.want(onScreen);
    const shown = onScreen.map((row, i) => {
      const old = made.get(row.id);
      const story = stories.of(row);
      const hit = rows!.hits.get(row.id);
      // Running exchanges are redrawn for their elapsed time.
      const current =
        old?.row === row &&
        old.most === most &&
        old.story === story &&
        old.hit === hit &&
        row.state !== 'open';
      const line = current
        ? old.node
        : redrawn(old?.node, rowElement(row, { most, now, story, hit, look }));
      if (!current) made.set(row.id, { row, most, story, hit, node: line });
      line.style.setProperty('--y', `${(top + i) * height}px`);
      attribute(line, 'aria-rowindex', top + i + 1);
      attribute(line, 'aria-selected', row.id === selected ? 'true' : 'false');
      return line;
    });
    const ids = new Set(shown.map((line) => line.dataset.id));
    for (const id of made.keys()) if (!ids.has(id)) made.delete(id);
    // Remaining rows stay in the document, so that a click between press and release is not lost.
    const there = new Set<Node>(shown);
    for (const line of [...space.childNodes]) if (!there.has(line)) line.remove();
    shown.forEach((line, i) => {
      if (space.childNodes[i] !== line) space.insertBefore(line, space.childNodes[i] ?? null);
    });
    attribute(scroller, 'aria-rowcount', rows.more ? -1 : all.length);
    attribute(scroller, 'aria-activedescendant', ids.has(selected) ? `row-${selected}` : null);
    pill.hidden = fresh === 0;
    if (fresh > 0) replace(pill, `↑ ${several(fresh, 'new exchange')}`);
    if (rows.more && bottom > all.length - 40) rows.older();
  }

  /** Scrolls to the selected row once it is loaded. */
  function show(): void {
    const index = rows?.all.findIndex((row) => row.id === selected) ?? -1;
    sought = index < 0 && selected !== undefined;
    if (index >= 0) intoView(index);
  }

  function intoView(index: number): void {
    const top = index * height;
    if (top < scroller.scrollTop) scroller.scrollTop = top;
    const end = top + height - scroller.clientHeight;
    if (end > scroller.scrollTop) scroller.scrollTop = end;
  }

  /** The row that stays where it is when others come or go above it: the selected one if it is in view, else the first. */
  function heldRow(all: readonly UiRow[]): UiRow | undefined {
    const top = Math.ceil(scroller.scrollTop / height);
    const bottom = Math.floor((scroller.scrollTop + scroller.clientHeight) / height);
    return all.slice(top, bottom).find(({ id }) => id === selected) ?? all[top];
  }

  const clock = window.setInterval(() => {
    if (!node.isConnected) return;
    if ([...made.values()].some(({ row }) => row.state === 'open')) draw();
  }, ELAPSED_EVERY);

  return {
    node,
    close: () => {
      clearInterval(clock);
      stories.close();
    },
    get selected() {
      return selected;
    },
    update(next, inserted) {
      const before = next === rows ? drawn : [];
      // Rows can come before the first layout; made for an unknown width, all of them would be made again.
      measured();
      rows = next;
      most = scaleOf(next.all);
      // A reader who has scrolled, points at a row or uses the keys keeps the position.
      const reads =
        scroller.scrollTop > 0 || scroller.matches(':hover') || scroller === document.activeElement;
      const held = reads ? heldRow(before) : undefined;
      const now = held === undefined ? -1 : next.all.findIndex(({ id }) => id === held.id);
      const moved = now < 0 ? 0 : now - before.indexOf(held!);
      stretch();
      if (moved !== 0 && next.all.length * height > scroller.clientHeight) {
        scroller.scrollTop += moved * height;
        fresh = scroller.scrollTop > 0 ? Math.max(0, fresh + moved) : 0;
      }
      if (sought) show();
      draw();
      for (const id of inserted) made.get(id)?.node.classList.add('new');
      if (inserted.length > 0) replace(announcement, several(inserted.length, 'new exchange'));
    },
    select(id) {
      if (id === selected) return;
      selected = id;
      show();
      draw();
    },
    move(by) {
      const all = rows?.all ?? [];
      if (all.length === 0) return false;
      const at = all.findIndex((row) => row.id === selected);
      const to = at < 0 ? 0 : Math.max(0, Math.min(all.length - 1, at + by));
      const id = all[to]!.id;
      if (id === selected) return false;
      selected = id;
      intoView(to);
      draw();
      open(id, true);
      return true;
    },
    sorted(next) {
      if (next === sort) return;
      sort = next;
      scroller.setAttribute(
        'aria-label',
        sort === ''
          ? 'Exchanges, newest first'
          : `Exchanges, sorted by ${sort.replace(':up', ', smallest first')}`,
      );
      arrange();
    },
    look() {
      chosen = chosenLook();
      made.clear();
      arrange();
    },
    focus: () => scroller.focus({ preventScroll: true }),
  };
}

/** The element of a row with its new content: it stays the same, so that a click on it is not lost. */
function redrawn(old: HTMLElement | undefined, next: HTMLElement): HTMLElement {
  if (old === undefined) return next;
  for (const name of ['data-tone', 'data-memory', 'aria-label']) {
    attribute(old, name, next.getAttribute(name));
  }
  old.replaceChildren(...next.childNodes);
  return old;
}

/** Milliseconds of a full bar: the 95th percentile of the loaded rows. */
function scaleOf(rows: readonly UiRow[]): number {
  const times = rows.map((row) => row.total_ms ?? 0).sort((a, b) => a - b);
  const high = times[Math.floor(times.length * 0.95)] ?? 0;
  // Rounded up in steps, so that bars do not change with every row.
  return 10 ** (Math.ceil(Math.log10(Math.max(100, high)) * 4) / 4);
}
