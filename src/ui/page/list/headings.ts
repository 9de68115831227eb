/** The headings of the list: a click on one sorts by it. */

import { type Child, h } from '../kit/dom.ts';
import type { Look } from './columns.ts';

/** The headings. @param sort as in the URL: `cost`, `cost:up`; '' for the newest first */
export function headings(
  { columns, compact }: Look,
  sort: string,
  choose: (sort: string) => void,
): Child {
  const [by, direction] = sort === '' ? ['time', undefined] : sort.split(':');
  return columns.map((column) => {
    const here = column.sort === by;
    const mark = here ? (direction === 'up' ? ' ↑' : ' ↓') : '';
    const cls = `cell ${column.name}`;
    const heading =
      column.sort === undefined
        ? h('span', { class: cls }, column.title)
        : h(
            'span',
            { class: cls },
            h(
              'button',
              {
                type: 'button',
                'aria-pressed': String(here),
                'aria-label': `Sort by ${column.title}${here ? (direction === 'up' ? ', smallest first' : ', largest first') : ''}`,
                on: {
                  click: () => {
                    if (!here) choose(column.sort === 'time' ? '' : column.sort!);
                    else if (direction === 'up') choose('');
                    else choose(`${column.sort}:up`);
                  },
                },
              },
              column.title + mark,
            ),
          );
    return compact && column.name === 'route'
      ? [heading, h('span', { class: 'cell about' }, 'Asked')]
      : heading;
  });
}
