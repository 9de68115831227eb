/** The places of the page: what the navigation shows, in its order, with the keys that lead there. */

import { ADMIN_PAGES, type AdminPage, filtersOf, type Query, type Route } from './route.ts';

export interface Place {
  readonly title: string;
  /** Typed after `g`. */
  readonly key: string;
  /** Needs an admin key; these places stand apart. */
  readonly admin: boolean;
  /** Its address, with the filters that hold there too. */
  at(query: Query): Route;
  holds(route: Route): boolean;
}

const ADMIN_TITLES: Readonly<Record<AdminPage, readonly [title: string, key: string]>> = {
  keys: ['Keys', 'k'],
  budgets: ['Budgets', 'b'],
  usage: ['Usage', 'u'],
  health: ['Health', 'h'],
  audit: ['Audit', 'a'],
};

export const PLACES: readonly Place[] = [
  {
    title: 'Exchanges',
    key: 'l',
    admin: false,
    at: (query) => ({ name: 'list', query: filtersOf(query) }),
    holds: ({ name }) => name === 'list' || name === 'exchange',
  },
  {
    title: 'Sessions',
    key: 's',
    admin: false,
    at: () => ({ name: 'sessions', query: {} }),
    holds: ({ name }) => name === 'sessions' || name === 'session',
  },
  {
    title: 'Charts',
    key: 'c',
    admin: false,
    at: (query) => ({ name: 'charts', query: filtersOf(query) }),
    holds: ({ name }) => name === 'charts',
  },
  ...ADMIN_PAGES.map(
    (page): Place => ({
      title: ADMIN_TITLES[page][0],
      key: ADMIN_TITLES[page][1],
      admin: true,
      at: () => ({ name: 'admin', page, id: '', query: {} }),
      holds: (route) => route.name === 'admin' && route.page === page,
    }),
  ),
];

export const placeOf = (route: Route): Place => PLACES.find((place) => place.holds(route))!;
