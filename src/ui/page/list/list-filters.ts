/** The filters above the list: search, status, time, and further ones under "More". */

import { button, type Child, h, replace } from '../kit/dom.ts';
import type { FilterName, Query } from '../kit/route.ts';

export interface Filters {
  readonly node: HTMLElement;
  show(query: Query): void;
  /** Focuses the search field. */
  search(): void;
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

const ENTRIES = [
  ['', 'Any API'],
  ['openai-chat', 'Chat'],
  ['openai-responses', 'Responses'],
  ['anthropic-messages', 'Messages'],
  ['google-gemini', 'Gemini'],
] as const;

const FINE = [
  ['model', 'Model', 'glm* or provider/model'],
  ['error', 'Error', 'kind, such as rate_limit'],
  ['note', 'Note', 'name of a rule'],
  ['session', 'Session', 'id or its beginning'],
] as const;

/** @param change called with changed filters; '' removes one */
export function createFilters(change: (query: Query) => void): Filters {
  let timer = 0;
  const later = (name: FilterName, value: string) => {
    clearTimeout(timer);
    timer = window.setTimeout(() => change({ [name]: value.trim() }), 250);
  };
  const typed = (name: FilterName, props: Readonly<Record<string, unknown>>) =>
    h('input', {
      name,
      autocomplete: 'off',
      spellcheck: 'false',
      ...props,
      on: {
        input: (event) => later(name, (event.target as HTMLInputElement).value),
        keydown: (event) => {
          if (event.key === 'Escape') {
            // Escape empties the search field without an input event: the filter is removed here.
            event.preventDefault();
            const input = event.target as HTMLInputElement;
            clearTimeout(timer);
            if (input.value !== '') change({ [name]: '' });
            input.value = '';
            input.blur();
          }
          if (event.key !== 'Enter') return;
          clearTimeout(timer);
          change({ [name]: (event.target as HTMLInputElement).value.trim() });
        },
      },
    });
  const chosen = (
    name: FilterName,
    label: string,
    options: readonly (readonly [string, string])[],
  ) =>
    h(
      'select',
      {
        name,
        'aria-label': label,
        on: { change: (event) => change({ [name]: (event.target as HTMLSelectElement).value }) },
      },
      options.map(([value, text]) => h('option', { value }, text)),
    );

  const search = typed('q', {
    type: 'search',
    class: 'search',
    placeholder: 'Search id, model, session, error, note',
    'aria-label': 'Search',
    'aria-keyshortcuts': '/',
  });
  const statuses = h(
    'div',
    { class: 'segments', role: 'group', 'aria-label': 'Status' },
    STATUSES.map(([value, text]) =>
      button(text, () => change({ status: value }), { 'data-status': value }),
    ),
  );
  const since = chosen('since', 'Time', TIMES);
  const entry = chosen('entry', 'API of the client', ENTRIES);
  const fine = FINE.map(([name, label, placeholder]) => ({
    name,
    input: typed(name, { placeholder, 'aria-label': label }),
    label,
  }));
  const until = h('input', {
    type: 'datetime-local',
    'aria-label': 'Until',
    on: {
      change: (event) => {
        const { value } = event.target as HTMLInputElement;
        change({ until: value === '' ? '' : String(new Date(value).getTime()) });
      },
    },
  });
  const field = (label: string, control: Child) =>
    h('label', null, h('span', null, label), control);
  const summary = h('summary', null, 'More');
  const details = h(
    'details',
    { class: 'fine' },
    summary,
    h(
      'div',
      { class: 'fields' },
      fine.map(({ label, input }) => field(label, input)),
      field('API', entry),
      field('Until', until),
    ),
  );
  const chips = h('div', { class: 'chips' });
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
    details,
    chips,
  );

  const put = (input: HTMLInputElement, value: string) => {
    if (document.activeElement !== input && input.value !== value) input.value = value;
  };
  return {
    node,
    show(query) {
      put(search, query.q ?? '');
      for (const one of statuses.children) {
        const on = (one as HTMLElement).dataset.status === (query.status ?? '');
        one.setAttribute('aria-pressed', String(on));
      }
      choose(since, query.since ?? '');
      choose(entry, query.entry ?? '');
      for (const { name, input } of fine) put(input, query[name] ?? '');
      const behind = ['q', ...FINE.map(([name]) => name), 'entry', 'until'] as const;
      const active = behind.filter((name) => query[name]);
      replace(
        chips,
        active.map((name) =>
          button(
            [
              `${name === 'q' ? 'search' : name} `,
              h('b', null, chipText(name, query[name]!)),
              ' ×',
            ],
            () => {
              if (name === 'q') search.value = '';
              change({ [name]: '' });
            },
            {
              class: 'chip',
              title: `Remove the filter "${name}"`,
            },
          ),
        ),
      );
    },
    search: () => {
      search.focus();
      search.select();
    },
  };
}

const chipText = (name: FilterName, value: string): string =>
  name === 'until' && /^\d+$/.test(value) ? new Date(Number(value)).toLocaleString('sv') : value;

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
