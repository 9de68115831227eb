/** `/ui/api/sessions…`: the sessions of the last exchanges, and one session as its conversations. */

import { Type } from '@sinclair/typebox';
import { Elysia } from 'elysia';
import type { Prices } from '../../../samples/replay/cost.ts';
import { CLIENT_LEFT, type SampleStore } from '../../../samples/sample.ts';
import { json } from '../answers.ts';
import type { UiRow } from '../api.ts';
import type { ApiContext } from '../context.ts';
import { guard } from '../guard.ts';
import { priced } from '../list.ts';
import type { SessionRow } from './api-sessions.ts';
import { sessionView, totalsOf } from './session-view.ts';

/** The newest exchanges whose sessions are listed. */
const MAX_ROWS = 5000;

export const sessionRoutes = (context: ApiContext) =>
  new Elysia()
    .use(guard(context.options))
    .get('/sessions', ({ viewer }) =>
      json({ sessions: sessionsOf(context.store, context.prices, viewer.owner) }),
    )
    .get(
      '/sessions/:id',
      async ({ params, viewer }) => json(await sessionView(params.id, viewer, context)),
      { params: Type.Object({ id: Type.String() }) },
    );

/** The sessions of the newest exchanges. @param owner only those of this key */
export function sessionsOf(
  store: SampleStore,
  prices: Prices,
  owner: string | undefined,
): readonly SessionRow[] {
  const rows = store.list({ ...(owner !== undefined && { owner }), limit: MAX_ROWS });
  const groups = Map.groupBy(
    rows.filter(({ session }) => session !== '').map((row) => priced(row, prices)),
    ({ session }) => session,
  );
  return [...groups].map(([id, own]) => sessionRow(id, own));
}

const wentWrong = ({ state, status, error }: UiRow): boolean =>
  state === 'cut' || (status >= 400 && status !== CLIENT_LEFT) || error !== '';

/** Exchanges at the beginning of a session, of which one begins its conversation. */
const MAX_BEGINNING = 5;

/** The first exchange of the conversation: agents ask for a title, or check their quota, with small requests before it. */
function beginningOf(rows: readonly UiRow[]): UiRow {
  const begin = rows.slice(-MAX_BEGINNING).toReversed();
  const largest = Math.max(...begin.map(({ bytes }) => bytes));
  return begin.find(({ bytes }) => bytes * 2 >= largest)!;
}

/** @param rows newest first */
function sessionRow(id: string, rows: readonly UiRow[]): SessionRow {
  const first = beginningOf(rows);
  return {
    id,
    client: first.client,
    key: first.owner,
    models: [...new Set(rows.map(({ model }) => model))].filter((model) => model !== ''),
    first: first.id,
    from: rows.at(-1)!.time,
    until: Math.max(...rows.map(({ time, total_ms }) => time + (total_ms ?? 0))),
    exchanges: rows.length,
    failed: rows.filter(wentWrong).length,
    retried: rows.filter((row) => row.failed && !wentWrong(row)).length,
    totals: totalsOf(rows),
  };
}
