/** Filters that were saved under a name in this browser. */

import { button, h, replace } from '../kit/dom.ts';
import { FILTERS, filtersOf, type Query } from '../kit/route.ts';
import { keepSetting, setting } from '../kit/settings.ts';

export interface SavedFilters {
  readonly node: HTMLElement;
  show(query: Query): void;
}

interface Saved {
  readonly name: string;
  readonly query: Query;
}

function stored(): readonly Saved[] {
  try {
    const value: unknown = JSON.parse(setting('filters') ?? '[]');
    if (!Array.isArray(value)) return [];
    return (value as Saved[])
      .filter((one) => typeof one?.name === 'string' && typeof one.query === 'object')
      .map(({ name, query }) => ({ name, query: filtersOf(query) }));
  } catch {
    return [];
  }
}

/** @param change called with all filters; '' removes one */
export function savedFilters(change: (query: Query) => void): SavedFilters {
  let current: Query = {};
  const list = h('div', { class: 'saved' });
  const name: HTMLInputElement = h('input', {
    placeholder: 'name',
    maxlength: 40,
    'aria-label': 'Name for these filters',
    on: {
      keydown: (event) => {
        if (event.key === 'Enter') save();
      },
    },
  });
  const keep = (all: readonly Saved[]) => {
    keepSetting('filters', all.length === 0 ? undefined : JSON.stringify(all));
    draw();
  };
  const save = () => {
    const wanted = name.value.trim();
    if (wanted === '' || Object.keys(current).length === 0) return;
    keep([...stored().filter((one) => one.name !== wanted), { name: wanted, query: current }]);
    name.value = '';
  };
  const saver = h('div', { class: 'saver' }, name, button('Save these filters', save));
  const draw = () =>
    replace(
      list,
      stored().map((one) =>
        h(
          'span',
          null,
          button(
            one.name,
            () =>
              change({ ...Object.fromEntries(FILTERS.map((each) => [each, ''])), ...one.query }),
            { class: 'more' },
          ),
          button('×', () => keep(stored().filter((other) => other.name !== one.name)), {
            class: 'tiny',
            'aria-label': `Forget the filters "${one.name}"`,
          }),
        ),
      ),
    );
  draw();
  return {
    node: h('div', { class: 'saved-filters' }, h('h2', null, 'Saved filters'), list, saver),
    show(query) {
      current = filtersOf(query);
      saver.hidden = Object.keys(current).length === 0;
    },
  };
}
