/** The menu of the list's look: columns, and compact or comfortable rows. */

import { type Child, h } from '../kit/dom.ts';
import { chooseColumn, chooseDensity, chosenLook } from './chosen-look.ts';
import { COLUMNS } from './columns.ts';

/** @param changed called after a choice */
export function viewMenu(changed: () => void): Child {
  const look = chosenLook();
  const check = (
    text: string,
    on: boolean,
    type: 'checkbox' | 'radio',
    choose: (on: boolean) => void,
  ) => {
    const input: HTMLInputElement = h('input', {
      type,
      ...(type === 'radio' && { name: 'density' }),
      on: {
        change: () => {
          choose(input.checked);
          changed();
        },
      },
    });
    input.checked = on;
    return h('label', { class: 'check' }, input, text);
  };
  return [
    h(
      'fieldset',
      null,
      h('legend', null, 'Rows'),
      check('Comfortable', !look.compact, 'radio', () => chooseDensity(false)),
      check('Compact', look.compact, 'radio', () => chooseDensity(true)),
    ),
    h(
      'fieldset',
      null,
      h('legend', null, 'Columns'),
      COLUMNS.filter(({ fixed }) => fixed !== true).map(({ name, title }) =>
        check(
          title === 'out' ? 'Tokens out' : title,
          look.columns.some((column) => column.name === name),
          'checkbox',
          (on) => chooseColumn(name, on),
        ),
      ),
    ),
  ];
}
