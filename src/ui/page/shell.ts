/** The frame of the page: header, navigation, state of the live feed, and the panes. */

import type { Info } from '../api/api.ts';
import { button, h, replace } from './kit/dom.ts';
import { placesFor, titleOf } from './kit/places.ts';
import { hashOf, type Route } from './kit/route.ts';
import { themeSwitch } from './kit/theme.ts';
import type { Feed } from './list/rows.ts';

export interface Shell {
  readonly node: HTMLElement;
  readonly list: HTMLElement;
  readonly detail: HTMLElement;
  /** Where every place but the list and its exchange is shown. */
  readonly page: HTMLElement;
  show(route: Route): void;
  feed(state: Feed): void;
  /** Shows what is recorded. */
  recording(info: Info): void;
}

const FEEDS: Readonly<Record<Feed, string>> = {
  connecting: 'connecting',
  live: 'live',
  lost: 'connection lost, trying again',
};

/**
 * @param info undefined: only the places that take an admin key can be shown
 * @param help shows the keyboard shortcuts
 */
export function createShell(info: Info | undefined, help: () => void): Shell {
  const places = h('nav', { class: 'places', 'aria-label': 'Pages' });
  const feed = h('span', { class: 'feed', role: 'status' });
  const list = h('div', { class: 'pane list-pane' });
  const detail = h('div', { class: 'pane detail-pane', tabindex: -1 });
  const page = h('div', { class: 'pane page-pane', tabindex: 0 });
  const main = h('main', { id: 'main', tabindex: -1 }, list, detail, page);
  const recording = h('span', { class: 'recording mode' });
  if (info !== undefined) replace(recording, recordingText(info));
  const skip = h(
    'a',
    {
      class: 'skip',
      href: '#main',
      on: {
        // The address is the state of the page: the link must not change it.
        click: (event) => {
          event.preventDefault();
          main.focus();
        },
      },
    },
    'Skip to the content',
  );
  const node = h(
    'div',
    { class: 'shell' },
    skip,
    h(
      'header',
      { class: 'top' },
      h('a', { class: 'brand', href: '#/' }, h('b', null, 'hop'), 'gate'),
      places,
      h('span', { class: 'space-between' }),
      recording,
      info?.sees === 'own' &&
        h(
          'span',
          { class: 'recording', title: 'Only exchanges of your own key are shown' },
          `key ${info.key}`,
        ),
      feed,
      h('a', { class: 'quiet', href: '/docs', target: '_blank', rel: 'noopener' }, 'Manual'),
      themeSwitch(),
      button('?', help, {
        class: 'quiet help',
        'aria-label': 'Keyboard shortcuts',
        'aria-keyshortcuts': '?',
      }),
    ),
    main,
    h('div', { id: 'announce', role: 'status' }),
  );
  return {
    node,
    list,
    detail,
    page,
    show(route) {
      node.dataset.place = route.name;
      replace(
        places,
        placesFor(info).map((place) =>
          h(
            'a',
            {
              href: hashOf(place.at(route.query)),
              'aria-current': place.holds(route) ? 'page' : null,
            },
            place.title,
          ),
        ),
      );
      // In a narrow window the places are a strip that scrolls.
      places
        .querySelector('[aria-current]')
        ?.scrollIntoView({ block: 'nearest', inline: 'nearest' });
      const what = route.name === 'exchange' ? route.id : titleOf(route);
      document.title = `${what} · hopgate`;
    },
    feed(state) {
      feed.dataset.state = state;
      if (feed.textContent !== FEEDS[state]) replace(feed, h('i', { class: 'dot' }), FEEDS[state]);
    },
    recording: (next) => replace(recording, recordingText(next)),
  };
}

function recordingText({ samples: { mode, by_route } }: Info): string {
  if (by_route) return 'recording: by route';
  if (mode === 'all') return '';
  return mode === 'off' ? 'recording is off' : 'recording: failures only';
}
