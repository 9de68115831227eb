/** Tables: plain ones that scroll in a box, and those that become a list of cards in a narrow window. */

import { type Child, h, type Props } from './dom.ts';

/** @param headings cells of the first line. @param rows the lines below it */
export const boxedTable = (headings: Child, rows: Child, props: Props | null = null): HTMLElement =>
  h(
    'div',
    { class: 'tablebox', tabindex: 0 },
    h('table', props, h('thead', null, h('tr', null, headings)), h('tbody', null, rows)),
  );

export interface Column<Row> {
  readonly title: string;
  /** The first column names the row. */
  readonly cell: (row: Row) => Child;
  readonly num?: boolean;
  /** Class of its cells. */
  readonly class?: string;
}

export interface TableOptions<Row> {
  /** For screen readers. */
  readonly caption: string;
  readonly columns: readonly Column<Row>[];
  readonly rows: readonly Row[];
  readonly rowProps?: (row: Row) => Readonly<Record<string, unknown>>;
}

/** Roles are written out: as cards, the elements are no table to a browser. */
export function dataTable<Row>({ caption, columns, rows, rowProps }: TableOptions<Row>) {
  const classOf = ({ num, class: own }: Column<Row>) =>
    [num === true && 'num', own].filter(Boolean).join(' ') || undefined;
  return h(
    'table',
    { class: 'data', role: 'table', 'aria-label': caption },
    h(
      'thead',
      { role: 'rowgroup' },
      h(
        'tr',
        { role: 'row' },
        columns.map((column) =>
          h('th', { scope: 'col', role: 'columnheader', class: classOf(column) }, column.title),
        ),
      ),
    ),
    h(
      'tbody',
      { role: 'rowgroup' },
      rows.map((row) => {
        const [first, ...rest] = columns;
        return h(
          'tr',
          { role: 'row', ...rowProps?.(row) },
          h('th', { scope: 'row', role: 'rowheader', class: classOf(first!) }, first!.cell(row)),
          rest.map((column) =>
            h(
              'td',
              { role: 'cell', class: classOf(column), 'data-label': column.title },
              column.cell(row),
            ),
          ),
        );
      }),
    ),
  );
}
