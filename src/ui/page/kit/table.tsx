/** The table of the page: one that scrolls in a box, or one that becomes a list of cards in a narrow window. */

import type { Child } from './ui.tsx';

/** A title, what is below it, and the class of its cells (`num`: numbers). What is false is left out. */
export type Column<Row> =
  | readonly [title: Child, cell: (row: Row, index: number) => Child, cls?: string]
  | false;

interface TableProps<Row> {
  /** For screen readers. */
  readonly label?: string;
  /** The first one names the row. */
  readonly columns: readonly Column<Row>[];
  readonly rows: readonly Row[];
  readonly rowProps?: (row: Row) => object;
  /** Cards in a narrow window instead of a box that scrolls. */
  readonly cards?: boolean;
  readonly class?: string;
}

/** Roles are written out: as cards, the elements are no table to a browser. */
export function Table<Row>({ label, columns, rows, rowProps, cards, class: cls }: TableProps<Row>) {
  const shown = columns.filter((column) => column !== false);
  const role = (name: 'table' | 'rowgroup' | 'row' | 'columnheader' | 'rowheader' | 'cell') =>
    cards ? { role: name } : {};
  const table = (
    <table class={cards ? 'data' : cls} aria-label={label} {...role('table')}>
      <thead {...role('rowgroup')}>
        <tr {...role('row')}>
          {shown.map(([title, , own]) => (
            <th scope="col" class={own} {...role('columnheader')}>
              {title}
            </th>
          ))}
        </tr>
      </thead>
      <tbody {...role('rowgroup')}>
        {rows.map((row, index) => (
          <tr {...role('row')} {...rowProps?.(row)}>
            {shown.map(([title, cell, own], i) =>
              i === 0 ? (
                <th scope="row" class={own} {...role('rowheader')}>
                  {cell(row, index)}
                </th>
              ) : (
                <td class={own} data-label={cards ? title : undefined} {...role('cell')}>
                  {cell(row, index)}
                </td>
              ),
            )}
          </tr>
        ))}
      </tbody>
    </table>
  );
  // A box that scrolls is reached by keyboard.
  return cards ? (
    table
  ) : (
    <div class="tablebox" tabIndex={0}>
      {table}
    </div>
  );
}
