/** The dialog that lists the keyboard shortcuts. */

import { Dialog } from './form.tsx';
import { t } from './language.ts';
import { PLACES } from './places.ts';
import { Button } from './ui.tsx';

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

export const KeyList = ({ close }: { close: () => void }) => (
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
