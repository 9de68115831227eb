/** `hopgate samples sessions`: the conversations of clients, with what they took. */

import type { Config } from '../../../config/config.ts';
import { pricesOf } from '../../../samples/replay/cost.ts';
import type { SampleStore } from '../../../samples/sample.ts';
import type { SessionRow } from '../../../ui/api/api.ts';
import { sessionsOf } from '../../../ui/api/sessions/session-routes.ts';
import type { Invocation } from '../../command.ts';
import { type Columns, printTable } from '../../terminal.ts';
import { RECORDED } from './list.ts';
import { clock, percent, usd } from './units.ts';

const COLUMNS: Columns<SessionRow> = {
  LAST: ({ until }) => clock(until),
  SESSION: ({ id }) => id,
  CLIENT: ({ client }) => client,
  KEY: ({ key }) => key,
  MODELS: ({ models }) => models.join(', '),
  EXCHANGES: ({ exchanges }) => String(exchanges),
  FAILED: ({ failed }) => (failed === 0 ? '' : String(failed)),
  IN: ({ totals }) => String(totals.input_tokens),
  CACHED: ({ totals: { input_tokens: input, cached_tokens: cached } }) =>
    input === 0 ? '' : percent(cached / input),
  OUT: ({ totals }) => String(totals.output_tokens),
  COST: ({ totals: { cost } }) => (cost === null ? '' : usd(cost)),
};

const NARROWER = {
  spare: ['KEY', 'OUT', 'CLIENT', 'IN', 'FAILED', 'MODELS'],
  cut: { SESSION: 12, CLIENT: 8, MODELS: 14 },
  right: ['EXCHANGES', 'FAILED', 'IN', 'CACHED', 'OUT', 'COST'],
};

export async function runSessions(
  store: SampleStore,
  _rest: readonly string[],
  { out, err, flag, number }: Invocation,
  config?: Config,
): Promise<number> {
  const sessions = sessionsOf(store, pricesOf(config ?? { providers: {} }), undefined)
    .toSorted((a, b) => b.until - a.until)
    .slice(0, number('limit') ?? 50);
  if (flag('json')) {
    out.line(JSON.stringify({ dir: store.root, sessions }, null, 2));
    return 0;
  }
  if (sessions.length === 0) {
    const recorded = config === undefined ? '' : ` ${RECORDED[config.samples.mode]}`;
    err.line(`No exchange in ${store.root} names a session.${recorded}`);
    return 0;
  }
  printTable(out, sessions, COLUMNS, NARROWER);
  return 0;
}
