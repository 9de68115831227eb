/** The list with its filters; also the narrow column beside an open exchange. */

import type { Info, UiRow } from '../../api/api.ts';
import { button, h, replace } from '../kit/dom.ts';
import { currentRoute, filtersOf, go, type Query, type Route } from '../kit/route.ts';
import type { View } from '../kit/view.ts';
import { createKeepLine } from './keep-line.ts';
import { createFilters } from './list-filters.ts';
import { createListView } from './list-view.ts';
import { openRows, type Rows } from './rows.ts';
import { firstRequest, recordingOff } from './welcome.ts';

/** Rows whose values are suggested. */
const SUGGESTED_FROM = 1000;

export interface ListPageEvents {
  /** The state of the live feed changed. */
  readonly feed: (state: Rows['feed']) => void;
  /** Recording was switched. */
  readonly switched: (info: Info) => void;
}

export function createListPage(start: Info, events: ListPageEvents): View {
  let info = start;
  let rows: Rows | undefined;
  let filters = '';
  const view = createListView({
    open: (id, moved) => {
      const route = currentRoute();
      if (route.name === 'list' && moved) return;
      const tab = route.name === 'exchange' ? route.tab : 'talk';
      const query = filtersOf(route.query);
      go({ name: 'exchange', id, tab, query }, moved);
    },
    filter: (changes) => refine(changes),
  });
  const refine = (changes: Query) => {
    const route = currentRoute();
    const query: Query = { ...route.query, ...changes };
    go({ ...route, query: clean(query) } as Route, true);
  };
  const bar = createFilters(refine, {
    looks: () => view.look(),
    enter: () => {
      view.focus();
      view.move(0);
    },
  });
  const keeps = createKeepLine((next) => {
    info = next;
    keeps.show(info);
    events.switched(info);
    changed([]);
  });
  keeps.show(info);
  const notice = h('div', { class: 'notice' });
  const node = h(
    'section',
    { class: 'list-page', 'aria-label': 'Exchanges' },
    h('h1', { class: 'sr' }, 'Exchanges'),
    bar.node,
    keeps.node,
    view.node,
    notice,
  );

  function changed(inserted: readonly string[]): void {
    if (rows === undefined) return;
    view.update(rows, inserted);
    bar.remark(rows.remark);
    bar.suggest(valuesOf(rows.all));
    events.feed(rows.feed);
    const none = rows.all.length === 0 && !rows.loading;
    node.dataset.none = String(none);
    if (rows.problem !== undefined && rows.all.length === 0) {
      replace(notice, h('p', { class: 'problem', role: 'alert' }, rows.problem));
    } else if (none) {
      const filtered = !/^\{(?:"sort":"[a-z:]*")?\}$/.test(filters);
      replace(
        notice,
        filtered
          ? h(
              'div',
              { class: 'blank' },
              h('h2', null, 'No exchanges match these filters'),
              button('Clear filters', () => go({ name: 'list', query: {} })),
            )
          : showsNothing(info)
            ? recordingOff()
            : firstRequest(info),
      );
    } else replace(notice);
  }

  return {
    node,
    show(route) {
      const query = filtersOf(route.query);
      bar.show(query);
      view.sorted(query.sort ?? '');
      const now = JSON.stringify(query);
      if (now !== filters || rows === undefined) {
        filters = now;
        rows?.close();
        rows = openRows(query, changed);
        changed([]);
      }
      if (route.name === 'exchange') view.select(route.id);
    },
    press(event) {
      const route = currentRoute();
      if (event.key === '/') bar.search();
      else if (event.key === 'j' || event.key === 'k') view.move(event.key === 'j' ? 1 : -1);
      else if (document.activeElement !== view.node.querySelector('.scroller')) {
        // Other keys belong to the focused element.
        if (route.name !== 'list' || event.key !== 'Enter' || onControl(event)) return false;
        openSelected(route);
      } else if (event.key === 'ArrowDown' || event.key === 'ArrowUp') {
        view.move(event.key === 'ArrowDown' ? 1 : -1);
      } else if (event.key === 'PageDown' || event.key === 'PageUp') {
        view.move(event.key === 'PageDown' ? 15 : -15);
      } else if (event.key === 'Home' || event.key === 'End') {
        view.move(event.key === 'Home' ? -1e9 : 1e9);
      } else if (event.key === 'Enter') openSelected(route);
      else return false;
      return true;
    },
    close: () => {
      rows?.close();
      view.close();
    },
  };

  function openSelected(route: Route): void {
    if (view.selected === undefined) return;
    go({ name: 'exchange', id: view.selected, tab: 'talk', query: filtersOf(route.query) });
  }
}

/** Nothing is recorded, and nothing is held in memory either. */
const showsNothing = ({ samples: { mode, by_route, recent } }: Info) =>
  mode === 'off' && !by_route && recent === null;

const onControl = (event: KeyboardEvent) =>
  event.target instanceof Element && event.target.closest('button,a,input,select,summary') !== null;

const clean = (query: Query): Query =>
  Object.fromEntries(Object.entries(query).filter(([, value]) => value !== ''));

/** What the rows have, by the names of filters. */
function valuesOf(rows: readonly UiRow[]): Readonly<Record<string, readonly string[]>> {
  const distinct = (of: (row: UiRow) => readonly string[]) =>
    [...new Set(rows.slice(0, SUGGESTED_FROM).flatMap(of))].filter((one) => one !== '').sort();
  return {
    model: distinct(({ model }) => [model]),
    target: distinct(({ target }) => [target]),
    client: distinct(({ client }) => [client]),
    key: distinct(({ owner }) => [owner]),
    session: distinct(({ session }) => [session]),
    error: distinct(({ error }) => [error]),
    note: distinct(({ notes }) => notes.split(',').map((note) => note.split('=')[0]!)),
  };
}
