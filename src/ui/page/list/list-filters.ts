/** The filters above the list: search, status, time, chips for what is in force, further ones, and the look of the list. */

import { copyButton } from '../kit/copy-dom.ts';
import { button, type Child, h, replace } from '../kit/dom.ts';
import type { FilterName, Query } from '../kit/route.ts';
import { filterFields } from './filter-fields.ts';
import { savedFilters } from './saved-filters.ts';
import { viewMenu } from './view-menu.ts';

export interface Filters {
  readonly node: HTMLElement;
  show(query: Query): void;
  /** Focuses the search field. */
  search(): void;
  /** Values that the loaded rows have, as suggestions. */
  suggest(values: Readonly<Record<string, readonly string[]>>): void;
  /** What the search says of itself; '' for nothing. */
  remark(text: string): void;
}

const STATUSES = [
  ['', 'All'],
  ['ok', 'OK'],
  ['failed', 'Failed'],
  ['4xx', '4xx'],
  ['5xx', '5xx'],
  ['open', 'Running'],
] as const;

const TIMES = [
  ['', 'Any time'],
  ['15m', 'Last 15 min'],
  ['1h', 'Last hour'],
  ['6h', 'Last 6 h'],
  ['24h', 'Last 24 h'],
  ['7d', 'Last 7 days'],
] as const;

/** Names of filters on their chips. */
const NAMES: Readonly<Partial<Record<FilterName, string>>> = {
  q: 'search',
  since: 'from',
  until: 'to',
  entry: 'API',
  made: 'made by',
  slower: 'at least',
  cost: 'at least',
};

/** The list below the filters. */
export interface FilteredList {
  /** Columns or density were chosen. */
  looks(): void;
  /** The reader goes from the search to the rows. */
  enter(): void;
}

/**
 * @param change called with changed filters; '' removes one
 * @param list left out: there is none
 */
export function createFilters(change: (query: Query) => void, list?: FilteredList): Filters {
  let timer = 0;
  const put = (name: FilterName, value: string) => {
    clearTimeout(timer);
    change({ [name]: value.trim() });
  };
  const search = h('input', {
    name: 'q',
    type: 'search',
    class: 'search',
    autocomplete: 'off',
    spellcheck: 'false',
    placeholder: 'Search what was said, ids, models, notes',
    'aria-label': 'Search',
    'aria-keyshortcuts': '/',
    on: {
      input: () => {
        clearTimeout(timer);
        timer = window.setTimeout(() => put('q', search.value), 200);
      },
      keydown: (event) => {
        if (event.key === 'Enter') put('q', search.value);
        if (event.key === 'ArrowDown' && list !== undefined) {
          event.preventDefault();
          // Not a move in the list as well.
          event.stopPropagation();
          put('q', search.value);
          list.enter();
        }
        if (event.key !== 'Escape') return;
        // Escape empties the search field without an input event: the filter is removed here.
        event.preventDefault();
        if (search.value !== '') put('q', '');
        search.value = '';
        search.blur();
      },
    },
  });
  const statuses = h(
    'div',
    { class: 'segments', role: 'group', 'aria-label': 'Status' },
    STATUSES.map(([value, text]) =>
      button(text, () => change({ status: value }), { 'data-status': value }),
    ),
  );
  const since = h(
    'select',
    {
      name: 'since',
      'aria-label': 'Time',
      on: { change: () => change({ since: since.value, until: '' }) },
    },
    TIMES.map(([value, text]) => h('option', { value }, text)),
  );
  const fields = filterFields(change);
  const saved = savedFilters(change);
  const fine = menu(
    'Filter',
    'More filters',
    h('div', { class: 'fields' }, fields.node),
    saved.node,
  );
  const view = list && menu('View', 'Columns and density', viewMenu(list.looks));
  const chips = h('div', { class: 'chips' });
  const remark = h('p', { class: 'remark', role: 'status' });
  const node = h(
    'form',
    {
      class: 'filters',
      role: 'search',
      'aria-label': 'Filter the exchanges',
      on: { submit: (event) => event.preventDefault() },
    },
    search,
    statuses,
    since,
    fine,
    view,
    chips,
    remark,
  );

  return {
    node,
    show(query) {
      const value = query.q ?? '';
      if (document.activeElement !== search && search.value !== value) search.value = value;
      for (const one of statuses.children) {
        const on = (one as HTMLElement).dataset.status === (query.status ?? '');
        one.setAttribute('aria-pressed', String(on));
      }
      choose(since, query.since ?? '');
      fields.show(query);
      saved.show(query);
      const active = Object.keys(query).filter((name) => query[name] && name !== 'sort');
      const remove = (name: string) => {
        if (name === 'q') search.value = '';
        change({ [name]: '' });
      };
      replace(
        chips,
        active.map((name) =>
          button(
            [
              h(
                'span',
                { class: 'chip-text' },
                `${NAMES[name as FilterName] ?? name} `,
                h('b', null, chipText(name, query[name]!)),
              ),
              h('span', { class: 'x', 'aria-hidden': 'true' }, ' ×'),
            ],
            () => remove(name),
            {
              class: 'chip',
              title: `Remove the filter "${NAMES[name as FilterName] ?? name} ${chipText(name, query[name]!)}"`,
            },
          ),
        ),
        active.length > 1 &&
          button(
            'Clear all',
            () => {
              search.value = '';
              change(Object.fromEntries(active.map((name) => [name, ''])));
            },
            { class: 'more' },
          ),
        active.length > 0 &&
          copyButton('Copy link', () => location.href, {
            class: 'more',
            title: 'A link to these filters',
          }),
      );
    },
    search: () => {
      search.focus();
      search.select();
    },
    suggest: (values) => fields.suggest(values),
    remark(text) {
      if (remark.textContent !== text) replace(remark, text);
    },
  };
}

/** A button that opens a panel; Escape and a click elsewhere close it. */
function menu(text: string, label: string, ...content: Child[]): HTMLElement {
  const summary = h('summary', { class: 'button', 'aria-label': label }, text);
  const panel = h('div', { class: 'panel' }, ...content);
  const node: HTMLDetailsElement = h(
    'details',
    {
      class: `fine ${text.toLowerCase()}-menu`,
      on: {
        keydown: (event) => {
          if (event.key !== 'Escape' || !node.open) return;
          event.stopPropagation();
          node.open = false;
          summary.focus();
        },
        focusout: (event) => {
          const to = (event as FocusEvent).relatedTarget;
          if (to instanceof Node && !node.contains(to)) node.open = false;
        },
      },
    },
    summary,
    panel,
  );
  return node;
}

/** The value of a filter with its unit; a time as a date. */
function chipText(name: string, value: string): string {
  if (name === 'slower') return `${value} ms`;
  if (name === 'cost') return `$${value}`;
  return /^\d{10,}$/.test(value) ? new Date(Number(value)).toLocaleString('sv') : value;
}

/** Selects a value; one from the URL that is not an option becomes one. */
function choose(select: HTMLSelectElement, value: string): void {
  if (select.value === value) return;
  if (![...select.options].some((option) => option.value === value)) {
    const text = /^\d{10,}$/.test(value)
      ? `Since ${new Date(Number(value)).toLocaleString('sv')}`
      : value;
    select.append(h('option', { value }, text));
  }
  select.value = value;
}
