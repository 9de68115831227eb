/** The form that asks for the gateway's key, once for this tab. */

import { h } from './dom.ts';
import { key } from './fetching.ts';

/** @param wrong a key was refused; `unlocked`: called when the user entered another one */
export function keyForm(wrong: boolean, unlocked: () => void): HTMLElement {
  const input = h('input', {
    type: 'password',
    id: 'key',
    name: 'key',
    autocomplete: 'current-password',
    required: true,
    spellcheck: 'false',
    'aria-describedby': 'key-words',
    'aria-invalid': wrong ? 'true' : null,
  });
  const form = h(
    'form',
    {
      class: 'keyform',
      on: {
        submit: (event) => {
          event.preventDefault();
          key.set(input.value.trim());
          unlocked();
        },
      },
    },
    h('h1', null, 'hopgate'),
    h('label', { for: 'key' }, 'Key of this gateway'),
    input,
    h(
      'p',
      { id: 'key-words', class: wrong ? 'problem' : 'soft', role: wrong ? 'alert' : null },
      wrong
        ? 'This key is not one of the gateway’s. Try another one.'
        : 'One of auth.keys in its configuration. It is kept in this tab until the tab is closed.',
    ),
    h('button', { type: 'submit', class: 'primary' }, 'Open'),
  );
  queueMicrotask(() => input.focus());
  return form;
}
