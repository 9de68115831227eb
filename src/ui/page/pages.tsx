/** The places that fill the whole page: the view behind each of them. */

import type { Info } from '../api/api.ts';
import { AdminPage } from './admin/admin-page.tsx';
import { reportsWithoutKey } from './admin/api.ts';
import { ChartsPage } from './charts/charts-page.tsx';
import { ExchangePage } from './exchange/exchange-page.tsx';
import { viewOf } from './kit/mount.ts';
import { readerOf } from './kit/places.ts';
import type { ExchangeRoute, Route } from './kit/route.ts';
import type { View } from './kit/view.ts';
import { SessionPage } from './session/session-page.tsx';
import { SessionsPage } from './session/sessions-page.tsx';

/** The name of a place with a view of its own; undefined for the list and its exchange. */
export function pageName(route: Route): string | undefined {
  if (route.name === 'list' || route.name === 'exchange') return undefined;
  if (route.name === 'session') return `session ${route.id}`;
  return route.name === 'admin' ? route.page : route.name;
}

/** @param info undefined: there is no key for the exchanges, and only the admin pages are shown */
export function createPage(route: Route, info: Info | undefined): View | undefined {
  if (route.name === 'admin') {
    reportsWithoutKey(info?.auth === false);
    return viewOf((now) => (
      <AdminPage
        route={now.name === 'admin' ? now : route}
        tabs={route.page !== 'usage' && readerOf(info) === 'admin'}
      />
    ));
  }
  if (info === undefined) return undefined;
  if (route.name === 'sessions') return viewOf(() => <SessionsPage />);
  if (route.name === 'session') return viewOf(() => <SessionPage id={route.id} />);
  return viewOf((now) => <ChartsPage info={info} route={now} />);
}

export const createExchangePage = (info: Info): View<ExchangeRoute> =>
  viewOf((route: ExchangeRoute) => <ExchangePage info={info} route={route} />);
