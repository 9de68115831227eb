/** The dialog that lists the keyboard shortcuts. */

import { Dialog } from './form.tsx';
import { PLACES } from './places.ts';
import { Button } from './ui.tsx';

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

export const KeyList = ({ close }: { close: () => void }) => (
  <Dialog title="Keyboard shortcuts" class="keys" close={close}>
    <header>
      <h2>Keyboard shortcuts</h2>
      <Button class="tiny" aria-label="Close" onClick={close}>
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
