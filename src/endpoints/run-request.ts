/** The tries of an endpoint's request: route → what the key may use → tries → the client's response. */

import { failedResponse } from '../gateway/responses.ts';
import { ExchangeSession } from '../gateway/tries/exchange-session.ts';
import { affordableTargets } from '../gateway/tries/open-account.ts';
import { retry } from '../gateway/tries/retry.ts';
import type { AttemptEvents, FailedOutcome } from '../gateway/types.ts';
import {
  permittedTargets,
  plainRequest,
  type RoutedTarget,
  route,
  targetsForNamed,
} from '../routing/index.ts';
import { secretsOf } from '../upstream/secrets.ts';
import { attempt, promptTokens, refusesBase64 } from './attempt.ts';
import { answerResponse } from './response.ts';
import type { AnswerOutcome, RunningEndpoint } from './types.ts';

interface RunOptions {
  readonly onRetry: (failed: FailedOutcome) => void;
  readonly onKeyRefused: AttemptEvents['onKeyRefused'];
  readonly onStream: (open: boolean) => void;
}

/** Forms have no such fields. */
const NO_BODY = new Uint8Array();

/** @throws GatewayError if no target takes the request, or the key may use none of them */
export async function answered(
  admitted: Omit<RunningEndpoint, 'session' | 'secrets' | 'routeName' | keyof AttemptEvents>,
  options: RunOptions,
): Promise<Response> {
  const { exchange, request, services, account, summary } = admitted;
  const session = new ExchangeSession(exchange, exchange.body);
  const decision = route(factsOf(admitted, session), services.table, account?.route);
  if (!decision.ok) throw decision.error;
  const { routeName } = decision;
  const all = decision.targets;
  const { principal } = exchange;
  const permitted = targetsForNamed(
    principal,
    { bytes: exchange.form === undefined ? exchange.body : NO_BODY },
    exchange.protocol.name,
    permittedTargets(principal, request.model, routeName, all),
  );
  const targets = account === undefined ? permitted : affordableTargets(account, permitted);
  const shared = all.slice(0, decision.equals);
  const equals = shared.filter((target) => targets.includes(target)).length;
  summary.routed(routeName);
  const secrets = secretsOf(services.table.config);
  const running: RunningEndpoint = {
    ...admitted,
    session,
    secrets,
    routeName,
    onSend: () => summary.sent(),
    onKeyRefused: options.onKeyRefused,
  };
  const outcome = await triedAt(running, targets, options.onRetry, equals);
  return outcome.kind === 'failed'
    ? failedResponse({ exchange, summary, secrets }, outcome)
    : answerResponse(running, outcome, options.onStream);
}

/** The tries at these targets; a request that no protocol describes is not hedged. */
export function triedAt(
  running: RunningEndpoint,
  targets: readonly RoutedTarget[],
  onRetry: RunOptions['onRetry'],
  equals?: number,
): Promise<AnswerOutcome | FailedOutcome> {
  const { exchange, services, session, summary } = running;
  return retry<AnswerOutcome>(
    {
      signal: exchange.signal,
      session,
      upstream: services.upstream,
      room: services.room,
      attempt: (routed, lease, number, refusal) => attempt(running, routed, lease, number, refusal),
      mayHedge: false,
      onHedge: () => {},
      discard: () => {},
      canRepair: (refusal) => refusesBase64(running.request, refusal),
      onRetry,
      onOutcome: (outcome, tries) => summary.hopEnded(outcome, tries),
    },
    targets,
    equals,
  );
}

/** For rules these requests are of the protocol of their API; of their size only the length of the body is known. */
function factsOf(
  asked: Pick<RunningEndpoint, 'exchange' | 'endpoint' | 'request'>,
  session: ExchangeSession,
) {
  const { exchange, request } = asked;
  const { model, stream } = request;
  const plain = plainRequest(model, exchange.protocol.name, Date.now());
  const { headers } = exchange;
  return {
    ...plain,
    stream,
    headers,
    get affinity() {
      return session.affinity;
    },
    get tokens() {
      return promptTokens(asked);
    },
  };
}
