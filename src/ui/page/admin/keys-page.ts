/** The keys: all of them with what they spent, and one of them with its settings and what can be done with it. */

import { button, type Child, h, replace } from '../kit/dom.ts';
import { count } from '../kit/format.ts';
import { currentRoute, go, hashOf, type Route } from '../kit/route.ts';
import { dataTable } from '../kit/table.ts';
import type { View } from '../kit/view.ts';
import { when } from '../kit/when.ts';
import { keyDetail } from './key-detail.ts';
import { LIMITS } from './key-fields.ts';
import { type KeyView, listKeys, stateOf } from './keys-api.ts';
import { emptyState, pageFrame } from './page-frame.ts';
import { getUsage, type UsageGroup } from './usage-api.ts';
import { usd } from './usd.ts';

const ON_PAGE = 200;
/** More keys than this are not shown with what they spent. */
const MAX_SPENDERS = 2000;

const listRoute = (query: Route['query'] = {}): Route => ({
  name: 'admin',
  page: 'keys',
  id: '',
  query,
});
export const keyLink = (id: string): string =>
  hashOf({ name: 'admin', page: 'keys', id, query: {} });

export function createKeysPage(): View {
  const search = h('input', {
    type: 'search',
    placeholder: 'Search names, labels, models',
    'aria-label': 'Search keys',
    spellcheck: 'false',
  });
  const revoked = h('input', { type: 'checkbox', id: 'revoked' });
  const frame = pageFrame({
    title: 'Keys',
    about: 'Who may use this gateway, and what each key may use and spend.',
    actions: [
      search,
      h('label', { class: 'check', for: 'revoked' }, revoked, 'revoked, too'),
      h('a', { class: 'button primary', href: keyLink('new') }, 'New key'),
    ],
  });
  const node = h('div', null, frame.node);
  let keys: readonly KeyView[] = [];
  let next: string | null = null;
  let spent: ReadonlyMap<string, UsageGroup> = new Map();
  let open: { readonly id: string; readonly view: View } | undefined;
  let shown: string | undefined;
  let timer = 0;

  search.addEventListener('input', () => {
    clearTimeout(timer);
    timer = window.setTimeout(() => go(listRoute(queryNow()), true), 250);
  });
  revoked.addEventListener('change', () => go(listRoute(queryNow()), true));
  const queryNow = () => ({
    ...(search.value.trim() !== '' && { q: search.value.trim() }),
    ...(revoked.checked && { revoked: 'true' }),
  });

  const load = (query: Route['query']) =>
    frame.run(async (signal) => {
      const wanted = { search: query.q, revoked: query.revoked, limit: ON_PAGE };
      const [page, usage] = await Promise.all([
        listKeys(wanted, signal),
        getUsage({ by: 'key', from: '30d', limit: MAX_SPENDERS }, signal),
      ]);
      keys = page.data;
      next = page.next;
      spent = new Map(usage.data.map((group) => [group.name ?? '', group]));
      draw(query);
    });

  const more = (query: Route['query']) =>
    frame.run(async (signal) => {
      const wanted = { search: query.q, revoked: query.revoked, limit: ON_PAGE };
      const page = await listKeys({ ...wanted, after: next ?? undefined }, signal);
      keys = [...keys, ...page.data];
      next = page.next;
      draw(query);
    });

  function draw(query: Route['query']): void {
    const searched = query.q !== undefined;
    replace(
      frame.body,
      keys.length > 0
        ? table(keys, spent)
        : searched
          ? emptyState(
              'No key fits this search',
              button('Show all', () => go(listRoute())),
            )
          : emptyState(
              'There are no keys yet',
              h(
                'p',
                null,
                'Make one for each person, program or team that uses this gateway. Each has its own limits, budget and bill.',
              ),
              h('a', { class: 'button primary', href: keyLink('new') }, 'New key'),
            ),
      next !== null &&
        h(
          'p',
          { class: 'admin-more' },
          button('More keys', () => void more(query)),
        ),
    );
  }

  function showDetail(route: Route & { readonly name: 'admin' }): void {
    if (open?.id !== route.id) {
      open?.view.close();
      open = { id: route.id, view: keyDetail(route.id) };
      replace(node, open.view.node);
    }
    open.view.show(route);
  }

  return {
    node,
    show(route) {
      if (route.name !== 'admin') return;
      if (route.id !== '') {
        showDetail(route);
        return;
      }
      if (open !== undefined) {
        open.view.close();
        open = undefined;
        shown = undefined;
        replace(node, frame.node);
      }
      const { query } = route;
      if (document.activeElement !== search) search.value = query.q ?? '';
      revoked.checked = query.revoked === 'true';
      const asked = JSON.stringify(query);
      if (asked === shown) return;
      shown = asked;
      void load(query);
    },
    press(event) {
      if (open !== undefined) {
        if (event.key !== 'Escape') return false;
        go(listRoute());
      } else if (event.key === '/') search.focus();
      else if (event.key === 'n') go({ name: 'admin', page: 'keys', id: 'new', query: {} });
      else if (event.key === 'r') void load(currentRoute().query);
      else return false;
      return true;
    },
    close() {
      clearTimeout(timer);
      open?.view.close();
      frame.close();
    },
  };
}

const table = (keys: readonly KeyView[], spent: ReadonlyMap<string, UsageGroup>) =>
  dataTable({
    caption: 'Keys',
    rows: keys,
    rowProps: (key) => ({ 'data-off': stateOf(key)[0] === 'revoked' ? '' : undefined }),
    columns: [
      { title: 'Name', cell: nameCell, class: 'wraps' },
      { title: 'State', cell: stateCell },
      { title: 'Models', cell: ({ models }) => listCell(models, 'all'), class: 'wraps' },
      { title: 'Limits', cell: limitsCell },
      { title: 'Budget', cell: budgetCell },
      { title: '30 days', cell: (key) => spentCell(spent.get(key.id)), num: true },
      { title: 'Tries', cell: (key) => count(spent.get(key.id)?.tries ?? 0), num: true },
    ],
  });

function nameCell(key: KeyView): Child {
  const labels = Object.entries(key.labels ?? {});
  return [
    h('a', { class: 'name', href: keyLink(key.id) }, key.name),
    key.source === 'configuration' &&
      h('span', { class: 'plain-tag', title: 'It stands in the configuration' }, 'configuration'),
    labels.length > 0 &&
      h(
        'div',
        { class: 'label-line' },
        labels.map(([name, value]) => h('span', { class: 'label' }, `${name}: ${value}`)),
      ),
  ];
}

function stateCell(key: KeyView): Child {
  const [text, tone] = stateOf(key);
  return [
    h('span', { class: 'state', 'data-tone': tone }, text),
    key.expires !== undefined &&
      text !== 'revoked' &&
      h('div', { class: 'soft small' }, text === 'expired' ? '' : 'expires ', when(key.expires)),
  ];
}

function listCell(list: readonly string[] | undefined, none: string): Child {
  if (list === undefined) return h('span', { class: 'soft' }, none);
  const rest = list.length - 2;
  return [
    list.slice(0, 2).join(', '),
    rest > 0 && h('span', { class: 'soft', title: list.join(', ') }, ` and ${rest} more`),
  ];
}

function limitsCell({ limits }: KeyView): Child {
  const lines = LIMITS.flatMap(({ name, line }) => {
    const amount = limits?.[name];
    return amount === undefined ? [] : [line(amount)];
  });
  if (lines.length === 0) return h('span', { class: 'soft' }, 'none');
  return lines.map((line) => h('div', { class: 'nowrap' }, line));
}

function budgetCell({ budgets = [] }: KeyView): Child {
  if (budgets.length === 0) return h('span', { class: 'soft' }, 'none');
  return budgets.map(({ usd: amount, per }) =>
    h(
      'div',
      { class: 'nowrap' },
      per === 'total' ? `${usd(amount)} in all` : `${usd(amount)} a ${per}`,
    ),
  );
}

const spentCell = (group: UsageGroup | undefined): Child =>
  group === undefined ? h('span', { class: 'soft' }, '–') : usd(group.cost_usd);
