/** The form that asks for a key, once for this tab. */

import { type Child, h } from './dom.ts';

export interface KeyFormOptions {
  readonly title: string;
  readonly label: string;
  /** What kind of key it is, and what becomes of it. */
  readonly help: Child;
  /** A key was refused: why. */
  readonly problem: string | undefined;
  /** The user entered a key. */
  readonly entered: (key: string) => void;
}

export function keyForm({ title, label, help, problem, entered }: KeyFormOptions): HTMLElement {
  const input = h('input', {
    type: 'password',
    id: 'key',
    name: 'key',
    autocomplete: 'current-password',
    required: true,
    spellcheck: 'false',
    'aria-describedby': 'key-words',
    'aria-invalid': problem === undefined ? null : 'true',
  });
  const form = h(
    'form',
    {
      class: 'keyform',
      on: {
        submit: (event) => {
          event.preventDefault();
          entered(input.value.trim());
        },
      },
    },
    h('h1', null, title),
    h('label', { for: 'key' }, label),
    input,
    problem !== undefined && h('p', { class: 'problem', role: 'alert' }, problem),
    h('p', { id: 'key-words', class: 'soft' }, help),
    h('button', { type: 'submit', class: 'primary' }, 'Open'),
  );
  queueMicrotask(() => input.focus());
  return form;
}
