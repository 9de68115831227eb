/** The state of the page in its URL, so that every state can be linked to, reloaded and reached with "back". */

import { t } from './language.ts';

/** The views of an exchange that have a tab. */
export const TABS = [
  ['talk', t`Conversation`],
  ['timeline', t`Timeline`],
  ['diff', t`Changes`],
  ['messages', t`Raw`],
] as const;
/** Further views, which are actions. */
const FURTHER = ['replay', 'bisect'] as const;
export type Tab = (typeof TABS)[number][0] | (typeof FURTHER)[number];

/** Pages for those who administer the gateway; usage and health are there for a single user, too. */
export const ADMIN_PAGES = ['keys', 'usage', 'health', 'audit'] as const;
export type AdminPage = (typeof ADMIN_PAGES)[number];

/** The query part of the URL; filters of the list stay in it while an exchange is open. */
export type Query = Readonly<Record<string, string>>;

export type Route =
  | { readonly name: 'list' | 'charts' | 'sessions'; readonly query: Query }
  | {
      readonly name: 'admin';
      readonly page: AdminPage;
      /** What is open on the page: a key's id, or `new`; '' for nothing. */
      readonly id: string;
      readonly query: Query;
    }
  | { readonly name: 'session'; readonly id: string; readonly query: Query }
  | { readonly name: 'exchange'; readonly id: string; readonly tab: Tab; readonly query: Query };

export type AdminRoute = Route & { readonly name: 'admin' };
export type ExchangeRoute = Route & { readonly name: 'exchange' };

/** Names of the list's filters in the URL. */
export const FILTERS = [
  'q',
  'status',
  'model',
  'error',
  'note',
  'session',
  'entry',
  'key',
  'client',
  'target',
  'made',
  'slower',
  'cost',
  'since',
  'until',
  'sort',
] as const;
export type FilterName = (typeof FILTERS)[number];

/** Reads `#/x/req_1_abc/diff?a=client-request`; anything unknown means the list. */
export function readRoute(hash: string): Route {
  const [path = '', search = ''] = hash.replace(/^#/, '').split(/\?(.*)/s);
  const query = Object.fromEntries(new URLSearchParams(search));
  const [, first, last = '', tab] = path.split('/');
  const id = decoded(last);
  if (first === 'charts' || first === 'sessions') return { name: first, query };
  if (first === 's' && id !== '') return { name: 'session', id, query };
  if (first === 'budgets') return { name: 'admin', page: 'keys', id: '', query: { at: 'budgets' } };
  const page = ADMIN_PAGES.find((one) => one === first);
  if (page !== undefined) return { name: 'admin', page, id, query };
  if (first !== 'x' || id === '') return { name: 'list', query };
  const known = [...TABS.map(([name]) => name), ...FURTHER].find((one) => one === tab);
  return { name: 'exchange', id, tab: known ?? 'talk', query };
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

export function hashOf(route: Route): string {
  const path = pathOf(route);
  const entries = Object.entries(route.query).filter(([, value]) => value !== '');
  return entries.length === 0 ? path : `${path}?${new URLSearchParams(entries)}`;
}

function pathOf(route: Route): string {
  const id = 'id' in route ? encodeURIComponent(route.id) : '';
  switch (route.name) {
    case 'list':
      return '#/';
    case 'session':
      return `#/s/${id}`;
    case 'admin':
      return `#/${route.page}${id && `/${id}`}`;
    case 'exchange':
      return `#/x/${id}${route.tab === 'talk' ? '' : `/${route.tab}`}`;
    default:
      return `#/${route.name}`;
  }
}

/** A page for administrators. @param id what is open on it */
export const adminRoute = (page: AdminPage, id = '', query: Query = {}): Route => ({
  name: 'admin',
  page,
  id,
  query,
});

export const sessionLink = (id: string): string => hashOf({ name: 'session', id, query: {} });

/** The address of a view of an exchange; the filters of the list stay. */
export function exchangeLink(id: string, tab: Tab, more: Query = {}): string {
  const query = { ...filtersOf(currentRoute().query), ...more };
  return hashOf({ name: 'exchange', id, tab, query });
}

export function filtersOf(query: Query): Query {
  return Object.fromEntries(
    FILTERS.filter((name) => query[name]).map((name) => [name, query[name]!]),
  );
}

/** The query with some values changed; '' removes one. */
export function withQuery<R extends Route>(route: R, changes: Query): R {
  const query = Object.fromEntries(
    Object.entries({ ...route.query, ...changes }).filter(([, value]) => value !== ''),
  );
  return { ...route, query };
}

export const currentRoute = (): Route => readRoute(location.hash);

/** Changes values of the address's query; '' removes one. */
export const refine = (changes: Query): void => go(withQuery(currentRoute(), changes), true);

/** Goes to a state, at once: the next key is the new view's. `quiet`: replaces the current history entry, so that "back" skips it. */
export function go(route: Route, quiet = false): void {
  const hash = hashOf(route);
  if (hash === location.hash) return;
  if (quiet) history.replaceState(null, '', hash);
  else history.pushState(null, '', hash);
  // Neither fires an event; views need the same one as after a click.
  dispatchEvent(new HashChangeEvent('hashchange'));
}
