/** The accounts of a process: prices of the active configuration, the journal on disk, and the metrics and log lines of both. */

import { hostname } from 'node:os';
import type { Config } from '../../config/config.ts';
import type { Payer, TryAccount, TryStart } from '../../conversation/account/payer.ts';
import type { AccountStart, Accounts } from '../../gateway/account.ts';
import type { Exchange } from '../../gateway/types.ts';
import { WITHOUT_KEY } from '../../keys/principal.ts';
import { requestId } from '../../lib/text/ids.ts';
import { type AccountsOptions, SpendAccounts } from '../../money/accounts.ts';
import { OutputEstimate } from '../../money/estimate.ts';
import { FreeSearches } from '../../money/free-searches.ts';
import { openSpend } from '../../money/open-spend.ts';
import { PriceBook } from '../../money/price.ts';
import type { Sql } from '../../state/engines/engine.ts';
import { clientName } from '../../telemetry/client-name.ts';
import type { GatewayMetrics } from '../../telemetry/gateway-metrics.ts';
import { event, type Log } from '../../telemetry/log.ts';

export interface AccountServicesOptions {
  /** The database file. */
  readonly path: string;
  readonly log: Log;
  readonly metrics: GatewayMetrics;
  readonly guard: AccountsOptions['guard'];
  /** Of all replicas; undefined: spend stays in the file. */
  readonly database: Sql | undefined;
  /** The first process takes in what this one writes. */
  readonly isWorker: boolean;
}

export function accountServices(
  { path, log, metrics, guard, database, isWorker }: AccountServicesOptions,
  initial: Config,
) {
  let config = initial;
  let prices = new PriceBook(config);
  const estimate = new OutputEstimate();
  const freeSearches = new FreeSearches();
  const journal = openSpend({
    path,
    database,
    replica: hostname(),
    isWorker,
    hasWorkers: initial.workers > 1,
    estimate,
    keep: () => ({ rows: config.spend.keepDays, totals: config.spend.keepTotalsDays }),
    onProblem: (message, waiting) => event(log, 'spend.problem', { message, waiting }, 'error'),
    onRecovered: (lost) => event(log, 'spend.recovered', { lost }, 'warn'),
    onRefused: (message) => event(log, 'spend.refused', { message }, 'error'),
    onLost: (tries) => event(log, 'spend.lost', { tries }, 'warn'),
  });
  const accounts = new SpendAccounts({
    journal,
    prices: () => prices,
    unpriced: () => config.unpriced,
    estimate,
    freeSearches,
    guard,
    onCost: (target, nanoUsd) => metrics.cost.add(nanoUsd / 1e9, target),
  });
  return {
    accounts,
    /** For reports: of all replicas, where they share a database. */
    spend: journal,
    /** Opens the file, in the background. */
    open() {
      journal.open();
      freeSearches.follow(journal, () => prices);
    },
    async close() {
      freeSearches.close();
      accounts.close();
      await journal.close();
    },
    /** Pays for what no request asks for. */
    own: new OwnPayer(accounts),
    /** Takes over another configuration. Tries that run keep the prices with which they began. */
    configure(next: Config) {
      config = next;
      prices = new PriceBook(next);
    },
  };
}

/** Each try is an account of its own, of no key. */
class OwnPayer implements Payer {
  constructor(private readonly accounts: Accounts) {}

  async beginTry(start: TryStart): Promise<TryAccount> {
    const account = await this.accounts.open({
      principal: WITHOUT_KEY,
      request: requestId(),
      model: start.model,
      session: undefined,
      client: 'hopgate',
      stream: false,
      trace: undefined,
    });
    return account.beginTry(start);
  }
}

const startOf = (
  { id, principal, protocol, headers, trace }: Exchange,
  costs: boolean,
): AccountStart => ({
  principal,
  request: id,
  model: undefined,
  session: undefined,
  client: clientName(headers.get('user-agent') ?? undefined, protocol.name),
  stream: false,
  trace: trace?.traceId,
  costs,
});

/**
 * A handler beside the answers of models whose exchange is under the limits of its key, and pays for what it asks
 * of models.
 * @param costs false: nothing is paid for the request itself, so a budget that is used up does not refuse it
 */
export const paying =
  <T extends Exchange, R extends Response>(
    accounts: Accounts,
    costs: boolean,
    handle: (exchange: T, payer: Payer) => R | Promise<R>,
  ): ((exchange: T) => Promise<R>) =>
  async (exchange) => {
    const account = await accounts.open(startOf(exchange, costs));
    try {
      return await handle(exchange, account);
    } finally {
      account.end('cut');
    }
  };
