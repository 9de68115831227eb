/** Moves stored responses between the file of a machine and the database of all replicas. */

import type { StateMove } from '../../state/move/paged-move.ts';
import {
  type ListedRow,
  type MovedTable,
  type TableMoveOptions,
  tableMove,
} from '../../state/move/table-move.ts';
import { LOCK, ResponseTables } from './response-tables.ts';
import { columnForms, RESPONSES } from './schema.ts';
import { isUsable, type ResponseRow, resealed } from './stored-response.ts';

interface ListedResponse extends ListedRow {
  readonly began: number;
  readonly previous: string | null;
  /** When its conversation was used last, in milliseconds since 1970. */
  readonly used: number;
}

const TABLE: MovedTable<ListedResponse, ResponseRow> = {
  name: 'responses',
  item: 'response',
  schema: RESPONSES,
  file: { shrinks: true },
  table: 'responses',
  order: ['seq'],
  listed: (db) =>
    `seq, owner, id, space, began, bytes, previous, coalesce(
       (SELECT ${columnForms(db).ms('used')} FROM hopgate.response_threads t WHERE t.id = thread),
       created * 1000.0) AS used`,
  times: ['began', 'used'],
  isUsable: ({ id, previous }) => isUsable(id) && isUsable(previous ?? ''),
  removed: 'response_deletions',
  erased: 'response_erasures',
  sharedLocks: [LOCK],
  read: (db, rows) => new ResponseTables(db).rows(rows),
  resealed,
  write: (inside, rows, db) =>
    new ResponseTables(db).take(
      inside,
      rows.map(({ row, listed: { began, used } }) => ({ row: { ...row, began }, used })),
    ),
};

export const responsesMove = (options: TableMoveOptions): StateMove => tableMove(TABLE, options);
