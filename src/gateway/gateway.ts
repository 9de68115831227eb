/** The whole pipeline on one page: request → route → attempts → answer, and again for every further hop. */

import type { Codec } from '../codecs/codec.ts';
import { asGatewayError, departure } from '../conversation/errors.ts';
import type { ProtocolName } from '../conversation/types.ts';
import { startIdleTimer } from '../lib/loop/idle-timer.ts';
import type { Recording } from '../samples/recording.ts';
import { secretsOf } from '../upstream/secrets.ts';
import type { Account, Accounts } from './account.ts';
import {
  type ClientRequest,
  clientRequest,
  type ReadOptions,
  type RepairBody,
} from './client-request.ts';
import { ExchangeSummaryBuilder } from './exchange-summary.ts';
import { finishWhole } from './follow-ups.ts';
import type { Services } from './reloadable.ts';
import { errorOf, failedResponse, streamResponse, wholeResponse } from './responses.ts';
import { type RunningExchange, runHop } from './run-hop.ts';
import { type ContinuedSessions, ExchangeSession } from './tries/exchange-session.ts';
import { accountOf, isPoliced } from './tries/open-account.ts';
import type {
  Exchange,
  ExchangeFeatures,
  FailedOutcome,
  Gateway,
  Outcome,
  Summary,
} from './types.ts';

export interface GatewayOptions {
  readonly protocols: Readonly<Record<ProtocolName, Codec>>;
  readonly services: () => Services;
  /** Left out: nothing is limited and nothing counted. */
  readonly accounts?: Accounts;
  /** For bodies that cannot be read as they are. */
  readonly repairBody?: RepairBody;
  /** Undefined: every turn is read in full. */
  readonly histories?: ReadOptions['histories'];
  /** Left out: a request that continues an answer is a session by itself, unless the client names one. */
  readonly continued?: ContinuedSessions;
  /** @throws GatewayError what the client gets instead of an answer */
  readonly featuresFor: (
    exchange: Exchange,
    request: ClientRequest,
    recording: Recording | undefined,
    account: Account | undefined,
    session: ExchangeSession,
  ) => ExchangeFeatures | undefined;
  /** Where samples are wanted, the recording of this exchange. */
  readonly record: (exchange: Exchange) => Recording | undefined;
  readonly onRetry: (failed: FailedOutcome) => void;
  /** A second request goes to this provider, beside a slow one. */
  readonly onHedge?: (provider: string) => void;
  /** As {@link AttemptEvents.onKeyRefused}. */
  readonly onKeyRefused?: (provider: string, key: string, status: number) => void;
  /** A stream to a client opens (true) or is over (false). */
  readonly onStream: (open: boolean) => void;
  readonly onEnd: (summary: Summary) => void;
}

export function createGateway(options: GatewayOptions): Gateway {
  const { protocols, onRetry, onHedge, onKeyRefused, onStream } = options;
  return async (exchange) => {
    const recording = options.record(exchange);
    const summary = new ExchangeSummaryBuilder(exchange, recording, options.onEnd);
    try {
      const services = options.services();
      const { blocks } = services.table.config.limits;
      const decoding = clientRequest(exchange.protocol, exchange.body, {
        mend: options.repairBody,
        mostBlocks: blocks,
        histories: options.histories,
        asker: exchange,
      });
      const request = decoding instanceof Promise ? await decoding : decoding;
      summary.received(request);
      const opening = accountOf(exchange, request, options.accounts);
      const account = opening instanceof Promise ? await opening : opening;
      if (account !== undefined) summary.opened(account);
      if (isPoliced(exchange, account)) request.checkNested();
      const admission = services.slots.take(exchange);
      summary.admitted(typeof admission === 'function' ? admission : await admission);
      const session = new ExchangeSession(exchange, request.bytes, options.continued);
      const features = options.featuresFor(exchange, request, recording, account, session);
      const { config } = services.table;
      const running: RunningExchange = {
        exchange,
        request,
        services,
        session,
        features,
        account,
        summary,
        secrets: secretsOf(config),
        protocols,
        onRetry,
        onHedge,
        onKeyRefused,
      };
      const first = runHop(running, { number: 1 });
      // A WebSocket has its own pings, so the status stays open: a later failure can still set it.
      const needsSigns = request.stream && exchange.lane === undefined;
      const outcome = needsSigns ? await inTime(first, config.keepAliveMs) : await first;
      if (outcome === LATE || outcome.kind === 'stream') {
        const answer = outcome === LATE ? first : outcome;
        const { keepAliveMs } = config;
        return streamResponse(running, answer, { keepAliveMs, onStream });
      }
      const hasMore = outcome.kind === 'whole' && outcome.continuation !== undefined;
      const answer = hasMore ? await finishWhole(outcome, running) : outcome;
      if (answer.kind === 'failed') return failedResponse(running, answer);
      const stored = features?.beforeEnd?.();
      if (stored !== undefined) await stored;
      if (features?.onAnswer !== undefined) {
        const text = Buffer.from(answer.body).toString();
        const told = features.onAnswer({ kind: 'json', text }, account?.spent);
        if (told !== undefined) await told;
      }
      return wholeResponse(running, answer);
    } catch (thrown) {
      // A client that leaves while it waits for its turn is no failure of this gateway.
      const error = exchange.signal.aborted ? departure(exchange.signal) : asGatewayError(thrown);
      return errorOf(exchange, error, summary);
    }
  };
}

const LATE = Symbol('late');

/** The outcome, or LATE if the client has waited so long that it needs a sign of life. */
function inTime(first: Promise<Outcome>, ms: number): Promise<Outcome | typeof LATE> {
  return new Promise((resolve, reject) => {
    const timer = startIdleTimer(ms, () => {
      timer.stop();
      resolve(LATE);
    });
    first.then(
      (outcome) => {
        timer.stop();
        resolve(outcome);
      },
      (thrown: unknown) => {
        timer.stop();
        reject(thrown);
      },
    );
  });
}
