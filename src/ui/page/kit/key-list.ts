/** The dialog that lists the keyboard shortcuts. */

import { button, h } from './dom.ts';
import { PLACES } from './places.ts';

const KEYS: readonly (readonly [string, readonly (readonly [string, string])[]])[] = [
  [
    'Everywhere',
    [
      ['/', 'search'],
      ['?', 'show these shortcuts'],
      ...PLACES.map(({ key, title }) => [`g ${key}`, title.toLowerCase()] as const),
      ['Esc', 'close, back to the list'],
    ],
  ],
  [
    'List',
    [
      ['j  k', 'next, previous exchange'],
      ['Enter', 'open the exchange'],
      ['Home  End', 'newest, oldest loaded'],
      ['↓', 'from the search to the exchanges'],
    ],
  ],
  ['Sessions', [['j  k', 'next, previous session; next, previous exchange of a session']]],
  [
    'Exchange',
    [
      ['1 … 4', 'conversation, timeline, changes, raw'],
      ['e', 'raw: the events of the stream, the bodies'],
      ['r  b', 'replay, bisect'],
      ['j  k', 'next, previous exchange in the same view'],
      ['v', 'conversation: as the client sent it, as the vendor got it; changes: meaning, JSON'],
      ['[  ]', 'raw: previous, next body'],
      ['n  p', 'changes: next, previous one'],
      ['←  →', 'events: one event (with Shift ten)'],
      ['Space', 'events: play, stop'],
    ],
  ],
];

export function createKeyList(): HTMLDialogElement {
  const dialog: HTMLDialogElement = h(
    'dialog',
    { class: 'keys', 'aria-label': 'Keyboard shortcuts' },
    h(
      'header',
      null,
      h('h2', null, 'Keyboard shortcuts'),
      button('×', () => dialog.close(), { 'aria-label': 'Close', class: 'tiny' }),
    ),
    KEYS.map(([title, rows]) =>
      h(
        'section',
        null,
        h('h3', null, title),
        h(
          'dl',
          null,
          rows.map(([keys, description]) =>
            h(
              'div',
              null,
              h(
                'dt',
                null,
                keys.split('  ').map((one) => h('kbd', null, one)),
              ),
              h('dd', null, description),
            ),
          ),
        ),
      ),
    ),
  );
  dialog.addEventListener('click', (event) => event.target === dialog && dialog.close());
  return dialog;
}
