/** Opens the account of an exchange: who pays, for which session and client; and which targets it may use. */

import type { Payer } from '../../conversation/account/payer.ts';
import type { GatewayError } from '../../conversation/errors.ts';
import type { RoutedTarget } from '../../routing/index.ts';
import { clientName } from '../../telemetry/client-name.ts';
import type { Account, AccountStart, Accounts } from '../account.ts';
import type { Exchange } from '../types.ts';
import { sidePayer } from './side-calls.ts';

/** Undefined: nothing is counted, or it goes on the account of another exchange. @throws GatewayError as {@link Accounts.open} */
export function accountOf(
  exchange: Exchange,
  { model, stream }: Pick<AccountStart, 'model' | 'stream'>,
  accounts: Accounts | undefined,
  costs?: boolean,
): Account | undefined | Promise<Account> {
  // What another exchange asks for is on its account.
  if (accounts === undefined || exchange.payer !== undefined) return undefined;
  const { id, principal, protocol, headers, sessionId } = exchange;
  return accounts.open({
    principal,
    request: id,
    model,
    session: sessionId || undefined,
    asked: exchange,
    client: clientName(headers.get('user-agent') ?? undefined, protocol.name),
    stream,
    trace: exchange.trace?.traceId,
    ...(costs !== undefined && { costs }),
  });
}

/** Does the key have limits or lists that members outside the conversation could evade? */
export const isPoliced = ({ principal }: Exchange, account: Account | undefined): boolean =>
  account?.needsUsage === true || !principal.policy.everyTool || !principal.policy.everyModel;

/** On whose account an exchange's features ask other models. */
export const sidePayerOf = ({ trace }: Exchange, payer: Payer | undefined): Payer | undefined =>
  sidePayer(payer, trace);

/** The targets that the account may use. @throws GatewayError why not the first, if it may use none */
export function affordableTargets(
  account: Account,
  targets: readonly RoutedTarget[],
): readonly RoutedTarget[] {
  let refusal: GatewayError | undefined;
  const left: RoutedTarget[] = [];
  for (const routed of targets) {
    const why = account.forbids(routed.target);
    if (why === undefined) left.push(routed);
    else refusal ??= why;
  }
  if (refusal === undefined) return targets;
  if (left.length === 0) throw refusal;
  return left;
}
