/** The table of the page: one that scrolls in a box, or one that becomes a list of cards in a narrow window. */

import type { Child } from './ui.tsx';

export interface Column<Row> {
  readonly title: Child;
  /** The first column names the row. */
  readonly cell: (row: Row, index: number) => Child;
  readonly num?: boolean;
  /** Class of its cells. */
  readonly class?: string;
  readonly tone?: (row: Row) => string | undefined;
}

interface TableProps<Row> {
  /** For screen readers. */
  readonly label?: string;
  /** What is false is left out. */
  readonly columns: readonly (Column<Row> | false)[];
  readonly rows: readonly Row[];
  readonly rowProps?: (row: Row) => object;
  /** Cards in a narrow window instead of a box that scrolls. */
  readonly cards?: boolean;
  readonly class?: string;
}

/** Roles are written out: as cards, the elements are no table to a browser. */
export function Table<Row>({ label, columns, rows, rowProps, cards, class: cls }: TableProps<Row>) {
  const shown = columns.filter((column) => column !== false);
  const classOf = ({ num, class: own }: Column<Row>) =>
    [num && 'num', own].filter(Boolean).join(' ') || undefined;
  const role = (name: 'table' | 'rowgroup' | 'row' | 'columnheader' | 'rowheader' | 'cell') =>
    cards ? { role: name } : {};
  const table = (
    <table class={cards ? 'data' : cls} aria-label={label} {...role('table')}>
      <thead {...role('rowgroup')}>
        <tr {...role('row')}>
          {shown.map((column) => (
            <th scope="col" class={classOf(column)} {...role('columnheader')}>
              {column.title}
            </th>
          ))}
        </tr>
      </thead>
      <tbody {...role('rowgroup')}>
        {rows.map((row, index) => (
          <tr {...role('row')} {...rowProps?.(row)}>
            {shown.map((column, i) =>
              i === 0 ? (
                <th scope="row" class={classOf(column)} {...role('rowheader')}>
                  {column.cell(row, index)}
                </th>
              ) : (
                <td
                  class={classOf(column)}
                  data-label={cards ? column.title : undefined}
                  data-tone={column.tone?.(row)}
                  {...role('cell')}
                >
                  {column.cell(row, index)}
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
