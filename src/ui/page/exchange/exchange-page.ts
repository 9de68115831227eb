/** The page of one exchange: header, tabs and the open tab. */

import type { Info, SampleDetail } from '../../api/api.ts';
import { createDiffTab } from '../diff/diff-tab.ts';
import { createBisectTab } from '../jobs/bisect-tab.ts';
import { createReplayTab } from '../jobs/replay-tab.ts';
import { getSample } from '../kit/api-calls.ts';
import { h, replace } from '../kit/dom.ts';
import { failureText } from '../kit/fetching.ts';
import { currentRoute, filtersOf, go, hashOf, TABS, type Tab } from '../kit/route.ts';
import type { ExchangeRoute, View } from '../kit/view.ts';
import { exchangeHeader } from './exchange-header.ts';
import { createMessagesTab } from './messages-tab.ts';
import { createStreamTab } from './stream-tab.ts';
import { createTalkTab } from './talk-tab.ts';
import { createTimelineTab } from './timeline-tab.ts';

const NAMES: Readonly<Record<Tab, string>> = {
  talk: 'Conversation',
  timeline: 'Timeline',
  messages: 'Messages',
  diff: 'Diff',
  stream: 'Stream',
  replay: 'Replay',
  bisect: 'Bisect',
};

type MakeTab = (detail: SampleDetail, info: Info) => View<ExchangeRoute>;

const MAKE: Readonly<Record<Tab, MakeTab>> = {
  talk: createTalkTab,
  timeline: createTimelineTab,
  messages: createMessagesTab,
  diff: createDiffTab,
  stream: createStreamTab,
  replay: createReplayTab,
  bisect: createBisectTab,
};

/** Tabs that show bodies: they are redrawn once when the exchange ends. */
const REDRAWN: ReadonlySet<Tab> = new Set(['talk', 'messages', 'stream', 'diff']);

/** Milliseconds between two reloads of a running exchange. */
const RELOAD_AFTER = 1000;

const wayBack = () =>
  h(
    'p',
    null,
    'It may have been removed since, or belong to another key. ',
    h('a', { href: hashOf({ name: 'list', query: {} }) }, 'Show all exchanges'),
  );

export function createExchangePage(info: Info, id: string): View<ExchangeRoute> {
  let detail: SampleDetail | undefined;
  let tab: { readonly name: Tab; readonly view: View<ExchangeRoute> } | undefined;
  let closed = false;
  /** It could not be loaded at all. */
  let failed = false;
  let timer = 0;
  const head = h('header', { class: 'exchange-head' });
  const tabs = h('nav', { class: 'tabs', 'aria-label': 'Views of this exchange' });
  const body = h('div', { class: 'tab-body', id: 'tab-body', tabindex: -1 });
  const node = h('article', { class: 'exchange', 'aria-busy': 'true' }, head, tabs, body);

  function drawTabs(route: ExchangeRoute): void {
    replace(
      tabs,
      TABS.map((name, i) => {
        const here = name === route.tab;
        // A tab's own state is dropped; only the filters of the list stay.
        const query = here ? route.query : filtersOf(route.query);
        return h(
          'a',
          {
            href: hashOf({ name: 'exchange', id, tab: name, query }),
            'aria-current': here ? 'page' : null,
            'aria-keyshortcuts': String(i + 1),
          },
          NAMES[name],
        );
      }),
    );
  }

  /** Scrolls to the current tab: a narrow window does not show all tabs. */
  const showTab = () =>
    tabs.querySelector('[aria-current]')?.scrollIntoView({ block: 'nearest', inline: 'center' });

  function draw(route: ExchangeRoute): void {
    if (detail === undefined) return;
    drawTabs(route);
    node.dataset.tab = route.tab;
    if (tab?.name !== route.tab) {
      tab?.view.close();
      tab = { name: route.tab, view: MAKE[route.tab](detail, info) };
      replace(body, tab.view.node);
      body.scrollTop = 0;
    }
    tab.view.show(route);
    showTab();
  }

  async function load(): Promise<void> {
    try {
      const next = await getSample(id);
      if (closed) return;
      const running = next.row.state === 'open';
      const ended = detail?.row.state === 'open' && !running;
      // Its answer has begun: the conversation shows it from now on.
      const begun =
        tab?.name === 'talk' &&
        detail?.client.response === undefined &&
        next.client.response !== undefined;
      const changed = running || JSON.stringify(next) !== JSON.stringify(detail);
      detail = next;
      node.removeAttribute('aria-busy');
      if (changed) {
        replace(head, exchangeHeader(next, info));
        // The timeline of a running exchange grows. The other tabs stay unchanged until the end.
        if (
          tab !== undefined &&
          (tab.name === 'timeline' || begun || (ended && REDRAWN.has(tab.name)))
        ) {
          tab.view.close();
          tab = undefined;
        }
        const route = currentRoute();
        if (route.name === 'exchange' && route.id === id) draw(route);
      }
      if (running) timer = window.setTimeout(() => void load(), RELOAD_AFTER);
    } catch (thrown) {
      node.removeAttribute('aria-busy');
      if (closed) return;
      const problem = h('p', { class: 'problem', role: 'alert' }, failureText(thrown));
      if (detail === undefined) {
        // Without an exchange no tab has anything to show.
        failed = true;
        replace(tabs);
        replace(
          body,
          h(
            'div',
            { class: 'blank missing' },
            h('h1', { class: 'sr' }, 'Not found'),
            problem,
            wayBack(),
          ),
        );
      } else replace(body, problem);
    }
  }
  void load();

  return {
    node,
    show(route) {
      if (detail !== undefined) draw(route);
      else if (!failed) drawTabs(route);
    },
    press(event) {
      if (tab?.view.press?.(event) === true) return true;
      const number = Number(event.key);
      const wanted = Number.isInteger(number) ? TABS[number - 1] : undefined;
      if (wanted === undefined) return false;
      const { query } = currentRoute();
      go({ name: 'exchange', id, tab: wanted, query: filtersOf(query) });
      return true;
    },
    close() {
      closed = true;
      clearTimeout(timer);
      tab?.view.close();
    },
  };
}
