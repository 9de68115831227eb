/** The places of the page: what the navigation shows to whom, and the keys that lead there. */

import type { Info } from '../../api/api.ts';
import { adminKey } from './fetching.ts';
import { t } from './language.ts';
import { type AdminPage, adminRoute, filtersOf, type Query, type Route } from './route.ts';

/** What a view of the page is drawn from. */
export interface PageProps {
  readonly info: Info;
  readonly route: Route;
  /** Recording was switched. */
  readonly switched: (info: Info) => void;
}

export interface Place {
  readonly title: string;
  /** Typed after `g`. */
  readonly key: string;
  /** Its address, with the filters that hold there too. */
  at(query: Query): Route;
  holds(route: Route): boolean;
}

const adminPlace = (title: string, key: string, page: AdminPage): Place => ({
  title,
  key,
  at: () => adminRoute(page),
  holds: (route) => route.name === 'admin' && route.page === page,
});

type Open = 'list' | 'sessions' | 'charts';

/** @param inside what is opened from it */
const openPlace = (title: string, key: string, name: Open, inside?: Route['name']): Place => ({
  title,
  key,
  at: (query) => ({ name, query: name === 'sessions' ? {} : filtersOf(query) }),
  holds: (route) => route.name === name || route.name === inside,
});

const OPEN: readonly Place[] = [
  openPlace(t`Exchanges`, 'l', 'list', 'exchange'),
  openPlace(t`Sessions`, 's', 'sessions', 'session'),
  openPlace(t`Charts`, 'c', 'charts'),
];
const USAGE = adminPlace(t`Usage`, 'u', 'usage');
const HEALTH = adminPlace(t`Health`, 'h', 'health');

/** The pages of the place Admin. */
export const ADMIN_PLACES: readonly Place[] = [
  adminPlace(t`Keys and budgets`, 'k', 'keys'),
  HEALTH,
  adminPlace(t`Audit`, 'a', 'audit'),
];

const ADMIN: Place = {
  ...ADMIN_PLACES[0]!,
  title: t`Admin`,
  holds: (route) => ADMIN_PLACES.some((place) => place.holds(route)),
};

/** Everything that a key leads to. */
export const PLACES: readonly Place[] = [...OPEN, USAGE, ...ADMIN_PLACES];

/**
 * `single`: no key is needed, and usage and health are open. `admin`: an admin key is at hand or may be. `own`: a
 * key that sees its own exchanges alone.
 */
export type Reader = 'single' | 'admin' | 'own';

/** @param info undefined: only an admin key is at hand */
export function readerOf(info: Info | undefined): Reader {
  if (info?.auth === false) return 'single';
  if (info === undefined || adminKey.get() !== '') return 'admin';
  return info.admin && info.sees === 'all' ? 'admin' : 'own';
}

const SHOWN: Readonly<Record<Reader, readonly Place[]>> = {
  single: [...OPEN, USAGE, HEALTH],
  admin: [...OPEN, USAGE, ADMIN],
  own: OPEN,
};

/** What the navigation shows. */
export const placesFor = (info: Info | undefined): readonly Place[] => SHOWN[readerOf(info)];

export const titleOf = (route: Route): string =>
  PLACES.find((place) => place.holds(route))?.title ?? '';
