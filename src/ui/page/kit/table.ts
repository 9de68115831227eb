/** A table that scrolls in a box, as an element. */

import { type Child, h, type Props } from './dom.ts';

/** @param headings cells of the first line. @param rows the lines below it */
export const boxedTable = (headings: Child, rows: Child, props: Props | null = null): HTMLElement =>
  h(
    'div',
    { class: 'tablebox', tabindex: 0 },
    h('table', props, h('thead', null, h('tr', null, headings)), h('tbody', null, rows)),
  );
