/** One hop of an exchange: its request is routed, and attempts are made until a target answers. */

import type { Codec } from '../codecs/codec.ts';
import { asGatewayError, type GatewayError } from '../conversation/errors.ts';
import { mayLeaveOut } from '../conversation/refusal/refusal.ts';
import type { Target } from '../conversation/target.ts';
import type { Conversation, ProtocolName } from '../conversation/types.ts';
import type { Feature } from '../features/feature.ts';
import {
  permittedTargets,
  type RoutedTarget,
  type RouteRequest,
  requestFacts,
  route,
  standInOf,
  targetsForNamed,
  targetsOfPaused,
  targetsWithState,
  targetWithTools,
  withRoomFirst,
} from '../routing/index.ts';
import type { Upstream } from '../upstream/upstream.ts';
import { attempt, discardStream } from './attempt.ts';
import type { ClientRequest } from './client-request.ts';
import type { ExchangeSummaryBuilder } from './exchange-summary.ts';
import type { Services } from './reloadable.ts';
import type { ExchangeSession } from './tries/exchange-session.ts';
import { canLearnFrom, learntTarget } from './tries/learnt-targets.ts';
import { affordableTargets, sidePayerOf } from './tries/open-account.ts';
import { type RetryContext, retry } from './tries/retry.ts';
import type {
  Account,
  AttemptEvents,
  Exchange,
  ExchangeFeatures,
  FailedOutcome,
  Hop,
  Outcome,
} from './types.ts';

/** What all hops of one exchange share. */
export interface RunningExchange {
  readonly exchange: Exchange;
  readonly request: ClientRequest;
  readonly services: Services;
  readonly session: ExchangeSession;
  readonly features: ExchangeFeatures | undefined;
  /** Undefined: nothing is counted. */
  readonly account: Account | undefined;
  readonly summary: ExchangeSummaryBuilder;
  readonly secrets: readonly string[];
  readonly protocols: Readonly<Record<ProtocolName, Codec>>;
  readonly onRetry: (failed: FailedOutcome) => void;
  readonly onHedge?: ((provider: string) => void) | undefined;
  readonly onKeyRefused?: ((provider: string, key: string, status: number) => void) | undefined;
}

/** The answer, or the failure that says most. Never rejects. */
export function runHop(running: RunningExchange, hop: Hop): Promise<Outcome> {
  const { exchange, request, services, session, summary, account } = running;
  const facts = requestFacts({
    model: request.model,
    protocol: exchange.protocol.name,
    stream: request.stream,
    bytes: request.bytes.length,
    headers: exchange.headers,
    affinity: session,
    request: hop.conversation === undefined ? request : { conversation: hop.conversation },
  });
  let routeName: string | undefined;
  let targets: readonly RoutedTarget[];
  let equals: number;
  try {
    const decision = route(facts, services.table, account?.route);
    if (!decision.ok) return Promise.resolve(unrouted(decision.error));
    ({ routeName } = decision);
    const all = decision.targets;
    const { principal, protocol } = exchange;
    const permitted = targetsForNamed(
      principal,
      request,
      protocol.name,
      permittedTargets(principal, request.model, routeName, all),
    );
    const readers = targetsWithState(request, protocol.name, permitted);
    const able = targetsOfPaused(request, protocol.name, readers, hop);
    const affordable = account === undefined ? able : affordableTargets(account, able);
    // The size of what a later hop sends is not known.
    const bytes = hop.conversation === undefined ? request.bytes.length : Number.MAX_SAFE_INTEGER;
    targets = withRoomFirst(affordable, bytes, facts);
    equals = targets === all ? decision.equals : leadingOf(targets, all.slice(0, decision.equals));
  } catch (thrown) {
    // A fact that a rule needs is in a part of the body that cannot be decoded, or the key may not use the model.
    return Promise.resolve(unrouted(asGatewayError(thrown)));
  }
  summary.routed(routeName);
  return retry(new AttemptsOfHop(running, hop, routeName, facts), targets, equals);
}

/** How many of the first targets are among these. */
function leadingOf(targets: readonly RoutedTarget[], these: readonly RoutedTarget[]): number {
  const others = targets.findIndex((target) => !these.includes(target));
  return others < 0 ? targets.length : others;
}

const unrouted = (error: GatewayError): FailedOutcome => ({
  kind: 'failed',
  error,
  remedy: 'never',
  target: undefined,
  notes: undefined,
});

const NO_FEATURES: readonly Feature[] = [];

class AttemptsOfHop implements RetryContext, AttemptEvents {
  constructor(
    private readonly running: RunningExchange,
    private readonly hop: Hop,
    private readonly routeName: string | undefined,
    private readonly facts: RouteRequest,
  ) {}

  get signal(): AbortSignal {
    return this.running.exchange.signal;
  }

  upstream(routed: RoutedTarget): Upstream {
    return this.running.services.upstream(routed);
  }

  room(routed: RoutedTarget): number | undefined {
    return this.running.services.room?.(routed);
  }

  /** A model that takes no tools, where there are some. */
  refuses(routed: RoutedTarget): boolean {
    const { profile } = learntTarget(routed, this.running.exchange.owner);
    if (profile.maxTools !== 0) return false;
    try {
      return this.#conversation.tools.length > 0;
    } catch {
      // The body cannot be read here; a vendor of its protocol may be able to.
      return false;
    }
  }

  get #conversation(): Conversation {
    return this.hop.conversation ?? this.running.request.conversation;
  }

  get session(): ExchangeSession {
    return this.running.session;
  }

  // The streams of later hops share the client's open one.
  get mayHedge(): boolean {
    const { request, account } = this.running;
    return this.hop.number === 1 && request.stream && account?.mayHedge !== false;
  }

  onHedge({ target }: RoutedTarget): void {
    this.running.onHedge?.(target.provider);
  }

  discard(answer: Exclude<Outcome, FailedOutcome>): void {
    if (answer.kind === 'stream') discardStream(answer);
  }

  attempt(...[routed, lease, number, refusals, abort]: Parameters<RetryContext['attempt']>) {
    const { exchange, request, services, session, features, summary, secrets, protocols, account } =
      this.running;
    const payer = exchange.payer ?? account;
    const known = learntTarget(routed, exchange.owner);
    const target = this.#withTools(routed, known) ?? known;
    return attempt({
      exchange,
      request,
      session,
      lease,
      routed: target === routed.target ? routed : { ...routed, target },
      standIn: standInOf(routed),
      overResponses: target.protocol !== known.protocol,
      protocol: protocols[target.protocol],
      upstream: services.upstream(routed),
      features: features?.features ?? NO_FEATURES,
      hop: this.hop,
      number,
      refusals,
      abort,
      routeName: this.routeName,
      shownModel: services.table.config.answerModel === 'requested' ? request.model : undefined,
      recording: summary.recording,
      wantsAnswer: features?.onAnswer !== undefined,
      secrets,
      events: this,
      payer,
      sidePayer: sidePayerOf(exchange, payer),
      facts: this.facts,
    });
  }

  #withTools({ provider }: RoutedTarget, target: Target): Target | undefined {
    const other = targetWithTools(provider, target);
    if (other === undefined) return undefined;
    return this.#conversation.tools.some(({ type }) => type === 'function') ? other : undefined;
  }

  onSend(): void {
    this.running.summary.sent();
  }

  onKeyRefused(provider: string, key: string, status: number): void {
    this.running.onKeyRefused?.(provider, key, status);
  }

  canRepair(refusal: GatewayError, routed: RoutedTarget, asked: FailedOutcome['target']): boolean {
    const conversation = () => this.#conversation;
    const { owner } = this.running.exchange;
    if (mayLeaveOut(refusal, conversation) && canLearnFrom(refusal, routed, owner, asked))
      return true;
    const features = this.running.features?.features ?? NO_FEATURES;
    return features.some((feature) => feature.repairsRefusal?.(refusal) === true);
  }

  onRetry(failed: FailedOutcome): void {
    this.running.onRetry(failed);
  }

  onOutcome(outcome: Outcome, attempts: number): void {
    this.running.summary.hopEnded(outcome, attempts);
  }
}
