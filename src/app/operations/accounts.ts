/** The accounts of a process: prices of the active configuration, the journal on disk, and the metrics and log lines of both. */

import type { Config } from '../../config/config.ts';
import type { Payer, TryAccount, TryStart } from '../../conversation/account/payer.ts';
import type { Account, AccountStart, Accounts } from '../../gateway/account.ts';
import type { Exchange } from '../../gateway/types.ts';
import { WITHOUT_KEY } from '../../keys/principal.ts';
import { requestId } from '../../lib/text/ids.ts';
import { type AccountsOptions, SpendAccounts } from '../../money/accounts.ts';
import { OutputEstimate } from '../../money/estimate.ts';
import { SpendJournal } from '../../money/journal.ts';
import { PriceBook } from '../../money/price.ts';
import { clientName } from '../../telemetry/client-name.ts';
import type { GatewayMetrics } from '../../telemetry/gateway-metrics.ts';
import { event, type Log } from '../../telemetry/log.ts';

export interface AccountServicesOptions {
  /** The database file. */
  readonly path: string;
  readonly log: Log;
  readonly metrics: GatewayMetrics;
  readonly guard: AccountsOptions['guard'];
}

export interface AccountServices {
  readonly accounts: Accounts;
  readonly journal: SpendJournal;
  /** Pays for what no request asks for. */
  readonly own: Payer;
  /** Takes over another configuration. Tries that run keep the prices with which they began. */
  configure(config: Config): void;
}

export function accountServices(
  { path, log, metrics, guard }: AccountServicesOptions,
  initial: Config,
): AccountServices {
  let config = initial;
  let prices = new PriceBook(config);
  const estimate = new OutputEstimate();
  const journal = new SpendJournal({
    path,
    estimate,
    keepDays: () => config.spend.keepDays,
    onProblem: (message, waiting) => event(log, 'spend.problem', { message, waiting }, 'error'),
    onRecovered: (lost) => event(log, 'spend.recovered', { lost }, 'warn'),
  });
  const accounts = new SpendAccounts({
    journal,
    prices: () => prices,
    unpriced: () => config.unpriced,
    estimate,
    guard,
    onCost: (target, nanoUsd) => metrics.cost.add(nanoUsd / 1e9, target),
  });
  return {
    accounts,
    journal,
    own: new OwnPayer(accounts),
    configure(next) {
      config = next;
      prices = new PriceBook(next);
    },
  };
}

/** Each try is an account of its own, of no key. */
class OwnPayer implements Payer {
  readonly #accounts: Accounts;

  constructor(accounts: Accounts) {
    this.#accounts = accounts;
  }

  async beginTry(start: TryStart): Promise<TryAccount> {
    const account = await this.#accounts.open({
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

/**
 * The account of a request that asks a model only now and then (a search, a recall): it is opened with the first
 * try, and ended by `end`.
 */
export class LateAccount implements Payer {
  readonly #accounts: Accounts;
  readonly #start: AccountStart;
  #opened: Account | Promise<Account> | undefined;

  constructor(accounts: Accounts, { id, principal, protocol, headers, trace }: Exchange) {
    this.#accounts = accounts;
    this.#start = {
      principal,
      request: id,
      model: undefined,
      session: undefined,
      client: clientName(headers.get('user-agent') ?? undefined, protocol.name),
      stream: false,
      trace: trace?.traceId,
    };
  }

  async beginTry(start: TryStart): Promise<TryAccount> {
    this.#opened ??= this.#accounts.open(this.#start);
    return (await this.#opened).beginTry(start);
  }

  async end(): Promise<void> {
    (await this.#opened)?.end('cut');
  }
}

/** A handler whose exchange pays for what it asks of models. */
export const paying =
  <T extends Exchange>(
    accounts: Accounts,
    handle: (exchange: T, payer: Payer) => Promise<Response>,
  ): ((exchange: T) => Promise<Response>) =>
  async (exchange) => {
    const payer = new LateAccount(accounts, exchange);
    try {
      return await handle(exchange, payer);
    } finally {
      await payer.end().catch(() => {});
    }
  };
