/** The entry of the page at `/ui`, which shows recorded exchanges in the browser. */

import type { Info } from '../api/api.ts';
import { createChartsPage } from './charts/charts-page.ts';
import { createExchangePage } from './exchange/exchange-page.ts';
import { getInfo } from './kit/api-calls.ts';
import { h, replace } from './kit/dom.ts';
import { failureText, key, Refused, whenLocked } from './kit/fetching.ts';
import { keyForm } from './kit/key-form.ts';
import { createKeyList } from './kit/key-list.ts';
import { currentRoute, filtersOf, go, hashOf } from './kit/route.ts';
import type { ExchangeRoute, View } from './kit/view.ts';
import { createListPage } from './list/list-page.ts';
import { createShell, type Shell } from './shell.ts';

let running: { close(): void } | undefined;

whenLocked((wrong) => {
  running?.close();
  running = undefined;
  key.set('');
  replace(
    document.body,
    h(
      'main',
      { class: 'locked' },
      keyForm(wrong, () => void start()),
    ),
  );
});

async function start(): Promise<void> {
  try {
    running = open(await getInfo());
  } catch (thrown) {
    // The form is shown already.
    if (thrown instanceof Refused && thrown.status === 401) return;
    replace(
      document.body,
      h(
        'main',
        { class: 'locked' },
        h('p', { class: 'problem', role: 'alert' }, failureText(thrown)),
      ),
    );
  }
}

/** Builds the page and keeps it in line with the URL. */
function open(info: Info): { close(): void } {
  const keys = createKeyList();
  const shell: Shell = createShell(info, () => keys.showModal());
  replace(document.body, shell.node, keys);
  const list = createListPage(info, { feed: shell.feed, switched: shell.recording });
  shell.list.append(list.node);
  let charts: View | undefined;
  let exchange: { readonly id: string; readonly view: View<ExchangeRoute> } | undefined;

  function show(): void {
    const route = currentRoute();
    shell.show(route);
    if (route.name === 'charts') {
      if (charts === undefined) {
        charts = createChartsPage(info);
        replace(shell.charts, charts.node);
      }
      charts.show(route);
    } else {
      charts?.close();
      charts = undefined;
      list.show(route);
    }
    if (route.name !== 'exchange') {
      const was = exchange;
      was?.view.close();
      exchange = undefined;
      shell.detail.replaceChildren();
      // After an exchange is closed, the list gets the keys again.
      if (was !== undefined && route.name === 'list') {
        list.node.querySelector<HTMLElement>('.scroller')?.focus({ preventScroll: true });
      }
      return;
    }
    if (exchange?.id !== route.id) {
      exchange?.view.close();
      exchange = { id: route.id, view: createExchangePage(info, route.id) };
      replace(shell.detail, exchange.view.node);
      // In a narrow window the list is hidden and the exchange gets the keys.
      if (shell.list.offsetParent === null) shell.detail.focus({ preventScroll: true });
    }
    exchange.view.show(route);
  }

  let prefix = '';
  function press(event: KeyboardEvent): void {
    if (event.ctrlKey || event.metaKey || event.altKey || keys.open) return;
    const target = event.target as Element;
    const types = target.matches(
      'input:not([type=range],[type=checkbox]),textarea,select,[contenteditable]',
    );
    if (types) return;
    const chord = prefix + event.key;
    prefix = event.key === 'g' ? 'g ' : '';
    const route = currentRoute();
    if (event.key === '?') keys.showModal();
    else if (chord === 'g c') go({ name: 'charts', query: filtersOf(route.query) });
    else if (chord === 'g l') go({ name: 'list', query: filtersOf(route.query) });
    else if (event.key === 'Escape' && route.name === 'exchange') {
      go({ name: 'list', query: filtersOf(route.query) });
    } else if (route.name === 'charts') {
      if (charts?.press?.(event) !== true) return;
    } else if (exchange?.view.press?.(event) !== true && list.press?.(event) !== true) return;
    event.preventDefault();
  }

  addEventListener('hashchange', show);
  addEventListener('keydown', press);
  show();
  return {
    close() {
      removeEventListener('hashchange', show);
      removeEventListener('keydown', press);
      list.close();
      charts?.close();
      exchange?.view.close();
    },
  };
}

if (location.hash === '') history.replaceState(null, '', hashOf({ name: 'list', query: {} }));
void start();
