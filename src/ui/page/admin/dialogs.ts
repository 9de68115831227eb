/** Dialogs of the admin pages: a question before something is done, with what there is to choose. */

import { button, type Child, h, replace } from '../kit/dom.ts';
import { failureText } from '../kit/fetching.ts';

export interface Question {
  readonly title: string;
  readonly body: Child;
  /** What the button says. */
  readonly does: string;
  readonly dangerous?: boolean;
  /** Rejects with what went wrong: the dialog stays and shows it. */
  readonly run: () => Promise<void>;
}

/** Shows it; it removes itself when it is closed. */
export function ask({ title, body, does, dangerous, run }: Question): void {
  const problem = h('p', { class: 'problem', role: 'alert', hidden: true });
  const confirm = h(
    'button',
    { type: 'submit', class: dangerous === true ? 'danger' : 'primary' },
    does,
  );
  const form = h(
    'form',
    {
      on: {
        submit: (event) => {
          event.preventDefault();
          confirm.disabled = true;
          run().then(
            () => dialog.close(),
            (thrown) => {
              confirm.disabled = false;
              problem.hidden = false;
              replace(problem, failureText(thrown) ?? '');
            },
          );
        },
      },
    },
    h('h2', { id: 'dialog-title' }, title),
    h('div', { class: 'dialog-body' }, body),
    problem,
    h(
      'div',
      { class: 'dialog-actions' },
      button('Cancel', () => dialog.close()),
      confirm,
    ),
  );
  const dialog: HTMLDialogElement = h(
    'dialog',
    { class: 'question', 'aria-labelledby': 'dialog-title' },
    form,
  );
  dialog.addEventListener('close', () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
}
