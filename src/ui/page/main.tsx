/** The entry of the page at `/ui`, which shows recorded exchanges and administers the gateway in the browser. */

import { manual, rich, t } from './kit/language.ts';
import './kit/safe.ts';
import { render } from 'preact';
import { useLayoutEffect, useRef, useState } from 'preact/hooks';
import type { First, Info } from '../api/api.ts';
import { AdminPage } from './admin/admin-page.tsx';
import { reportsWithoutKey } from './admin/api.ts';
import { ChartsPage } from './charts/charts-page.tsx';
import { ExchangePage } from './exchange/exchange-page.tsx';
import {
  adminKey,
  failureText,
  get,
  key,
  type Locked,
  Refused,
  whenLocked,
} from './kit/fetching.ts';
import { Dialog, KeyForm } from './kit/form.tsx';
import { pressed } from './kit/hooks.ts';
import { type PageProps, PLACES, placesFor, readerOf, titleOf } from './kit/places.ts';
import { currentRoute, filtersOf, go, hashOf } from './kit/route.ts';
import { applyTheme, LanguageSwitch, ThemeSwitch } from './kit/theme.tsx';
import { Button, Problem, Tabs } from './kit/ui.tsx';
import { ListPage } from './list/list-page.tsx';
import { bringRows, type Feed } from './list/rows.ts';
import { SessionPage, SessionsPage } from './session/session-page.tsx';

let info: Info | undefined;
/** There is no key for the exchanges: why. */
let locked: Locked | undefined;

/** Draws the page for the address; what is drawn is there when it returns, so that the next key is the new view's. */
function draw(): void {
  const route = currentRoute();
  // The admin pages have a key of their own: without one for the exchanges they are shown alone.
  if (info !== undefined || (locked !== undefined && route.name === 'admin')) {
    render(<App info={info} route={route} switched={know} />, document.body);
  } else if (locked !== undefined) render(<Lock why={locked} />, document.body);
}

function know(next: Info | undefined): void {
  info = next;
  reportsWithoutKey(info?.auth === false);
  draw();
}

whenLocked((why) => {
  const entered = key.get();
  key.set('');
  if (why === 'admin-key') {
    adminKey.set(entered);
    history.replaceState(null, '', '#/keys');
  }
  locked = why;
  know(undefined);
});

const Lock = ({ why }: { why: Locked }) => (
  <main class="locked">
    <KeyForm
      title="hopgate"
      label={t`Key of this gateway`}
      help={rich`One of auth.keys in its configuration, or one made at run time. It is kept in this tab until the tab is closed. With an admin key, open 
          ${<a href="#/keys">{t`keys, budgets and usage`}</a>}.`}
      problem={
        why === 'wrong' ? t`This key is not one of the gateway’s. Try another one.` : undefined
      }
      entered={(entered) => {
        key.set(entered);
        start();
      }}
    />
  </main>
);

function start(first?: First): void {
  const { name, query } = currentRoute();
  if (name === 'list' || name === 'exchange') {
    const filters = filtersOf(query);
    bringRows(filters, Object.keys(filters).length === 0 ? first?.page : undefined);
  }
  const info = first === undefined ? get('/info') : Promise.resolve(first.info);
  info.then(know, (thrown) => {
    // Of a missing key `whenLocked` has heard already.
    if (thrown instanceof Refused && thrown.status === 401) return;
    render(
      <main class="locked">
        <Problem text={failureText(thrown)} />
      </main>,
      document.body,
    );
  });
}

/** What came with the page. */
function came(): First | undefined {
  const box = document.querySelector<HTMLTemplateElement>('#first');
  return box === null ? undefined : JSON.parse(box.content.textContent);
}

/** `info` undefined: there is no key for the exchanges. */
type AppProps = Omit<PageProps, 'info'> & { readonly info: Info | undefined };

/** Keys that lead elsewhere begin with this one. */
let prefix = '';

function App({ info, route, switched }: AppProps) {
  const [feed, setFeed] = useState<Feed | undefined>(info && 'connecting');
  const [help, setHelp] = useState(false);
  const panes = useRef<HTMLElement>(null);
  const exchange = route.name === 'exchange' ? route.id : undefined;
  const before = useRef(exchange);
  useLayoutEffect(() => {
    document.title = `${exchange ?? titleOf(route)} · hopgate`;
  }, [hashOf({ ...route, query: {} })]);
  useLayoutEffect(() => {
    const [list, detail] = panes.current!.children as unknown as HTMLElement[];
    // In a narrow window the list is hidden and the exchange gets the keys.
    if (exchange !== undefined && list!.offsetParent === null) {
      detail!.focus({ preventScroll: true });
    }
    // After an exchange is closed, the list gets the keys again, unless its search was reached meanwhile.
    const closed = before.current !== undefined && route.name === 'list';
    if (closed && !list!.contains(document.activeElement)) {
      list!.querySelector<HTMLElement>('.scroller')?.focus({ preventScroll: true });
    }
    before.current = exchange;
  }, [exchange, route.name]);
  useLayoutEffect(() => {
    const press = (event: KeyboardEvent) => {
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      if (document.querySelector('dialog[open]') !== null) return;
      const target = event.target as Element;
      const types = target.matches(
        'input:not([type=range],[type=checkbox]),textarea,select,[contenteditable]',
      );
      if (types) return;
      const chord = prefix + event.key;
      prefix = event.key === 'g' ? 'g ' : '';
      const now = currentRoute();
      const place = PLACES.find(({ key: own }) => chord === `g ${own}`);
      if (event.key === '?') setHelp(true);
      else if (place !== undefined) go(place.at(now.query));
      else if (event.key === 'Escape' && now.name === 'exchange') {
        go({ name: 'list', query: filtersOf(now.query) });
      } else if (!pressed(event)) return;
      event.preventDefault();
    };
    addEventListener('keydown', press);
    return () => removeEventListener('keydown', press);
  }, []);
  return (
    <div class="shell" data-place={route.name}>
      <a
        class="skip"
        href="#main"
        onClick={(event) => {
          // The address is the state of the page: the link must not change it.
          event.preventDefault();
          panes.current!.focus();
        }}
      >{t`Skip to the content`}</a>
      <header class="top">
        <a class="brand" href="#/">
          <b>hop</b>gate
        </a>
        <Tabs
          class="places"
          label={t`Pages`}
          links={placesFor(info).map((place) => [
            place.title,
            hashOf(place.at(route.query)),
            place.holds(route),
          ])}
        />
        <span class="space-between" />
        {info && <span class="recording mode">{recordingText(info)}</span>}
        {info?.sees === 'own' && (
          <span class="recording" title={t`Only exchanges of your own key are shown`}>
            {t`key ${info.key}`}
          </span>
        )}
        <span class="feed" role="status" data-state={feed}>
          {feed && (
            <>
              <i class="dot" />
              {FEEDS[feed]}
            </>
          )}
        </span>
        <a class="quiet" href={manual('')} target="_blank" rel="noopener">{t`Manual`}</a>
        <LanguageSwitch />
        <ThemeSwitch />
        <Button
          class="quiet help"
          aria-label={t`Keyboard shortcuts`}
          aria-keyshortcuts="?"
          onClick={() => setHelp(true)}
        >
          ?
        </Button>
      </header>
      <main id="main" tabIndex={-1} ref={panes}>
        <div class="pane list-pane">
          {info && <ListPage info={info} route={route} feed={setFeed} switched={switched} />}
        </div>
        <div class="pane detail-pane" tabIndex={-1}>
          {info && route.name === 'exchange' && (
            <ExchangePage key={route.id} info={info} route={route} />
          )}
        </div>
        <div class="pane page-pane" tabIndex={0}>
          <Page info={info} route={route} switched={switched} />
        </div>
      </main>
      <div id="announce" role="status" />
      {help && <KeyList close={() => setHelp(false)} />}
    </div>
  );
}

const FEEDS: Readonly<Record<Feed, string>> = {
  connecting: t`connecting`,
  live: t`live`,
  lost: t`connection lost, trying again`,
};

function recordingText({ samples: { mode, by_route } }: Info): string {
  if (by_route) return t`recording: by route`;
  if (mode === 'all') return '';
  return mode === 'off' ? t`recording is off` : t`recording: failures only`;
}

/** A place that fills the whole page. */
function Page({ info, route, switched }: AppProps) {
  switch (route.name) {
    case 'admin':
      return (
        <AdminPage
          key={route.page}
          route={route}
          tabs={route.page !== 'usage' && readerOf(info) === 'admin'}
        />
      );
    case 'sessions':
      return <SessionsPage />;
    case 'session':
      return <SessionPage key={route.id} id={route.id} />;
    case 'charts':
      return info ? <ChartsPage info={info} route={route} switched={switched} /> : null;
    default:
      return null;
  }
}

const KEYS: readonly (readonly [string, readonly (readonly [string, string])[]])[] = [
  [
    t`Everywhere`,
    [
      ['/', t`search`],
      ['?', t`show these shortcuts`],
      ...PLACES.map(({ key, title }) => [`g ${key}`, title.toLowerCase()] as const),
      ['Esc', t`close, back to the list`],
    ],
  ],
  [
    t`List`,
    [
      ['j  k', t`next, previous exchange`],
      ['Enter', t`open the exchange`],
      ['Home  End', t`newest, oldest loaded`],
      ['↓', t`from the search to the exchanges`],
    ],
  ],
  [t`Sessions`, [['j  k', t`next, previous session; next, previous exchange of a session`]]],
  [
    t`Exchange`,
    [
      ['1 … 4', t`conversation, timeline, changes, raw`],
      ['e', t`raw: the events of the stream`],
      ['r  b', t`replay, bisect`],
      ['j  k', t`next, previous exchange in the same view`],
      ['v', t`changes: meaning, JSON`],
      ['[  ]', t`raw: previous, next body`],
      ['n  p', t`changes: next, previous one`],
    ],
  ],
];

const KeyList = ({ close }: { close: () => void }) => (
  <Dialog title={t`Keyboard shortcuts`} class="keys" close={close}>
    <header>
      <h2>{t`Keyboard shortcuts`}</h2>
      <Button class="tiny" aria-label={t`Close`} onClick={close}>
        ×
      </Button>
    </header>
    {KEYS.map(([title, rows]) => (
      <section key={title}>
        <h3>{title}</h3>
        <dl>
          {rows.map(([keys, description]) => (
            <div key={keys}>
              <dt>
                {keys.split('  ').map((one) => (
                  <kbd key={one}>{one}</kbd>
                ))}
              </dt>
              <dd>{description}</dd>
            </div>
          ))}
        </dl>
      </section>
    ))}
  </Dialog>
);

applyTheme();
if (location.hash === '') history.replaceState(null, '', hashOf({ name: 'list', query: {} }));
addEventListener('hashchange', draw);
start(came());
