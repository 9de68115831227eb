/** Reads what all replicas have spent, from the shared database. */

import { GatewayError } from '../../conversation/errors.ts';
import { EngineAway, type Sql, type SqlValue } from '../../state/engines/engine.ts';
import type { RowsQuery, SpendNames, SpendReader, StoredRow } from '../schema.ts';
import { SAME } from './spool-store.ts';

const DEADLINE_MS = 10_000;
/** A question that takes longer is ended by the server, which is no sign that the server is away. */
const STATEMENT_MS = 8000;
const CANCELLED = '57014';
const ROWS_AT_ONCE = 1000;

const NAMES: SpendNames = {
  rows: 'hopgate.spend_rows',
  totals: 'hopgate.spend_totals',
  sessionTotals: 'hopgate.spend_session_totals',
  texts: 'hopgate.spend_texts',
  month: 'hopgate.spend_month_of(start)',
  names: '(SELECT jsonb_array_elements_text($names::jsonb))',
};

const COLUMNS = `s.id, ${SAME.map((name) => `s.${name}`).join(', ')}, labels.text AS labels_text,
  prices.text AS price_text, s.replica`;

/** @param ready brings the tables up to date */
export function sharedReader(database: Sql, ready: () => Promise<void>): Required<SpendReader> {
  async function all<Row>(
    sql: string,
    named: Readonly<Record<string, string | number>> = {},
  ): Promise<readonly Row[]> {
    const { text, values } = numbered(sql, named);
    try {
      await ready();
      return await database.query<Row>(text, values, DEADLINE_MS, STATEMENT_MS);
    } catch (thrown) {
      throw asUnavailable(thrown);
    }
  }
  return {
    names: NAMES,
    remote: true,
    all,
    async *scan({ from, to, filters, before, beforeTime = to, limit }: RowsQuery) {
      const conditions = Object.keys(filters).map((name) => ` AND s.${name} = $${name}`);
      const sql = `SELECT ${COLUMNS} FROM (SELECT * FROM hopgate.spend_rows s
          WHERE s.time >= $from AND s.time < $to AND (s.time, s.id) < ($time, $id)${conditions.join('')}
          ORDER BY s.time DESC, s.id DESC LIMIT $most) s
        JOIN hopgate.spend_texts labels ON labels.id = s.labels
        LEFT JOIN hopgate.spend_texts prices ON prices.id = s.price
        ORDER BY s.time DESC, s.id DESC`;
      const most = Math.min(limit, ROWS_AT_ONCE);
      for (let place = { time: beforeTime, id: before }; ; ) {
        const rows = await all<StoredRow>(sql, { ...filters, from, to, ...place, most });
        yield rows;
        if (rows.length < most) return;
        place = rows.at(-1)!;
      }
    },
  };
}

/** `$name` becomes `$1`; each name is one value. */
function numbered(sql: string, named: Readonly<Record<string, string | number>>) {
  const places = new Map<string, number>();
  const text = sql.replaceAll(/\$([a-z_]\w*)/g, (_, name: string) => {
    const place = places.get(name) ?? places.size + 1;
    places.set(name, place);
    return `$${place}`;
  });
  const values = [...places.keys()].map((name): SqlValue => named[name]!);
  return { text, values };
}

function asUnavailable(thrown: unknown): unknown {
  const slow = (thrown as { code?: unknown } | null)?.code === CANCELLED;
  if (!slow && !(thrown instanceof EngineAway)) return thrown;
  const message = slow
    ? "The database took too long for this report. Ask for a shorter time ('from', 'to')."
    : 'The database with the spend of all replicas is away.';
  return new GatewayError('overloaded', message, {
    code: slow ? 'report_too_long' : 'database_away',
    cause: thrown,
  });
}
