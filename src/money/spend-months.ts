/** Months of the rows in Postgres: each is a part of its own, so that a whole month goes at once. */

import { placeholders, type SqlStatements } from '../state/sql/sql.ts';
import { ENDED } from './schema.ts';
import { monthOf } from './totals.ts';

const DAY_MS = 86_400_000;
const LOCK = 7_496_233;

/** `202701` */
const partOf = (month: number): string =>
  new Date(month).toISOString().slice(0, 7).replace('-', '');

/** Makes the parts for rows of these times; they stay until this transaction is over. */
export async function makeMonths(inside: SqlStatements, times: readonly number[]): Promise<void> {
  const starts = [...new Set(times.map(monthOf))].toSorted((a, b) => a - b);
  const there = await inside.query<{ start: number }>(
    `SELECT start FROM hopgate.spend_months WHERE start IN (${placeholders(starts.length)}) ORDER BY start FOR KEY SHARE`,
    starts,
  );
  const known = new Set(there.map(({ start }) => start));
  for (const start of starts) {
    if (known.has(start)) continue;
    const until = monthOf(start + 32 * DAY_MS);
    await inside.query('SELECT pg_advisory_xact_lock($1)', [LOCK]);
    await inside.query(
      `CREATE TABLE IF NOT EXISTS hopgate.spend_rows_${partOf(start)} PARTITION OF hopgate.spend_rows
        FOR VALUES FROM (${start}) TO (${until})`,
    );
    await inside.query(
      'INSERT INTO hopgate.spend_months VALUES ($1, $2, clock_timestamp()) ON CONFLICT (start) DO NOTHING',
      [start, until],
    );
  }
}

/**
 * Drops the oldest month that ended before this time. Rows whose true row may still come stay in `spend_kept`.
 * @param settledMs a part that was made later than so long ago stays
 * @returns false: there is none
 */
export async function dropMonth(
  inside: SqlStatements,
  time: number,
  settledMs: number,
): Promise<boolean> {
  await inside.query('SELECT pg_advisory_xact_lock($1)', [LOCK]);
  const [month] = await inside.query<{ start: number }>(
    `DELETE FROM hopgate.spend_months WHERE start = (SELECT min(start) FROM hopgate.spend_months WHERE until <= $1
      AND made < clock_timestamp() - $2 * interval '1 millisecond') RETURNING start`,
    [time, settledMs],
  );
  if (month === undefined) return false;
  const part = `hopgate.spend_rows_${partOf(month.start)}`;
  await inside.query(
    `INSERT INTO hopgate.spend_kept SELECT * FROM ${part} WHERE rev < ${ENDED} ON CONFLICT DO NOTHING`,
  );
  await inside.query(`DROP TABLE ${part}`);
  return true;
}
