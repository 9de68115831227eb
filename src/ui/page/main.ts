/** The entry of the page at `/ui`, which shows recorded exchanges and administers the gateway in the browser. */

import './kit/safe.ts';
import type { Info } from '../api/api.ts';
import { getInfo } from './kit/api-calls.ts';
import { h, replace } from './kit/dom.ts';
import { adminKey, failureText, key, type Locked, Refused, whenLocked } from './kit/fetching.ts';
import { keyForm } from './kit/key-form.ts';
import { createKeyList } from './kit/key-list.ts';
import { PLACES } from './kit/places.ts';
import {
  currentRoute,
  type ExchangeRoute,
  filtersOf,
  go,
  hashOf,
  type Route,
} from './kit/route.ts';
import { applyTheme } from './kit/theme.ts';
import type { View } from './kit/view.ts';
import { createListPage } from './list/list-page.ts';
import { askFirstRows } from './list/rows.ts';
import { createExchangePage, createPage, pageName } from './pages.tsx';
import { createShell, type Shell } from './shell.ts';

let running: { close(): void } | undefined;

function close(): void {
  running?.close();
  running = undefined;
}

whenLocked((why) => {
  close();
  const entered = key.get();
  key.set('');
  if (why === 'admin-key') {
    adminKey.set(entered);
    location.hash = '#/keys';
  }
  // The admin pages have a key of their own: without one for the exchanges they are shown alone.
  if (currentRoute().name === 'admin') running = open(undefined);
  else lock(why);
});

function lock(why: Locked): void {
  const left = () => {
    if (currentRoute().name === 'admin') start();
  };
  const form = keyForm({
    title: 'hopgate',
    label: 'Key of this gateway',
    help: [
      'One of auth.keys in its configuration, or one made at run time. It is kept in this tab until the tab is closed. ',
      'With an admin key, open ',
      h('a', { href: '#/keys' }, 'keys, budgets and usage'),
      '.',
    ],
    problem: why === 'wrong' ? 'This key is not one of the gateway’s. Try another one.' : undefined,
    entered(entered) {
      key.set(entered);
      start();
    },
  });
  replace(document.body, h('main', { class: 'locked' }, form));
  addEventListener('hashchange', left);
  running = { close: () => removeEventListener('hashchange', left) };
}

function start(): void {
  close();
  const route = currentRoute();
  if (pageName(route) === undefined) askFirstRows(filtersOf(route.query));
  void getInfo().then(
    (info) => {
      running = open(info);
    },
    (thrown) => {
      // Of a missing key `whenLocked` has heard already.
      if (thrown instanceof Refused && thrown.status === 401) return;
      const problem = h('p', { class: 'problem', role: 'alert' }, failureText(thrown));
      replace(document.body, h('main', { class: 'locked' }, problem));
    },
  );
}

/** A place that fills the whole page. */
interface OpenPage {
  readonly name: string;
  readonly view: View;
}

/**
 * Builds the page and keeps it in line with the URL.
 * @param info undefined: there is no key for the exchanges, and only the admin pages are shown
 */
function open(info: Info | undefined): { close(): void } {
  const keys = createKeyList();
  const shell: Shell = createShell(info, () => keys.showModal());
  replace(document.body, shell.node, keys);
  const list =
    info && createListPage(info, { feed: shell.feed, switched: (next) => shell.recording(next) });
  if (list !== undefined) shell.list.append(list.node);
  let page: OpenPage | undefined;
  let exchange: { readonly id: string; readonly view: View<ExchangeRoute> } | undefined;

  function showPage(route: Route): void {
    const name = pageName(route);
    if (page?.name !== name) {
      page?.view.close();
      page = undefined;
      shell.page.replaceChildren();
      const view = name === undefined ? undefined : createPage(route, info);
      if (name !== undefined && view !== undefined) {
        page = { name, view };
        replace(shell.page, view.node);
      }
    }
    page?.view.show(route);
  }

  function show(): void {
    const route = currentRoute();
    if (info === undefined && route.name !== 'admin') {
      start();
      return;
    }
    shell.show(route);
    showPage(route);
    if (page === undefined) list?.show(route);
    if (route.name !== 'exchange') {
      const was = exchange;
      was?.view.close();
      exchange = undefined;
      shell.detail.replaceChildren();
      // After an exchange is closed, the list gets the keys again, unless its search was reached meanwhile.
      const inList = list?.node.contains(document.activeElement) === true;
      if (was !== undefined && route.name === 'list' && !inList) {
        list?.node.querySelector<HTMLElement>('.scroller')?.focus({ preventScroll: true });
      }
      return;
    }
    if (exchange?.id !== route.id) {
      exchange?.view.close();
      exchange = { id: route.id, view: createExchangePage(info!) };
      replace(shell.detail, exchange.view.node);
      // In a narrow window the list is hidden and the exchange gets the keys.
      if (shell.list.offsetParent === null) shell.detail.focus({ preventScroll: true });
    }
    exchange.view.show(route);
  }

  let prefix = '';
  function press(event: KeyboardEvent): void {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (document.querySelector('dialog[open]') !== null) return;
    const target = event.target as Element;
    const types = target.matches(
      'input:not([type=range],[type=checkbox]),textarea,select,[contenteditable]',
    );
    if (types) return;
    const chord = prefix + event.key;
    prefix = event.key === 'g' ? 'g ' : '';
    const route = currentRoute();
    const place = PLACES.find(({ key }) => chord === `g ${key}`);
    if (event.key === '?') keys.showModal();
    else if (place !== undefined) go(place.at(route.query));
    else if (event.key === 'Escape' && route.name === 'exchange') {
      go({ name: 'list', query: filtersOf(route.query) });
    } else if (page !== undefined) {
      if (page.view.press?.(event) !== true) return;
    } else if (exchange?.view.press?.(event) !== true && list?.press?.(event) !== true) return;
    event.preventDefault();
  }

  addEventListener('hashchange', show);
  addEventListener('keydown', press);
  show();
  return {
    close() {
      removeEventListener('hashchange', show);
      removeEventListener('keydown', press);
      list?.close();
      page?.view.close();
      exchange?.view.close();
    },
  };
}

applyTheme();
if (location.hash === '') history.replaceState(null, '', hashOf({ name: 'list', query: {} }));
start();
