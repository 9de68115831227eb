/** The whole pipeline on one page: ask → route → tries → answer, and again for every further hop. */

import type { Codec } from '../codecs/codec.ts';
import { asGatewayError, type GatewayError } from '../conversation/errors.ts';
import { Notes } from '../conversation/notes.ts';
import type { Conversation, ProtocolName } from '../conversation/types.ts';
import type { Feature } from '../features/feature.ts';
import { FlatHeaders } from '../lib/http/headers.ts';
import { nativeHeaders } from '../lib/http/native-headers.ts';
import { type RoutedTarget, type RoutingTable, requestFacts, route } from '../routing/index.ts';
import type { RecordedExchange, Recording } from '../samples/recording.ts';
import type { ConcurrencyLimit } from '../upstream/concurrency-limit.ts';
import { secretsOf } from '../upstream/secrets.ts';
import type { Upstream } from '../upstream/upstream.ts';
import { attempt, gone } from './attempt.ts';
import { type ClientRequest, clientRequest, type RepairBody } from './client-request.ts';
import { errorParts } from './error-response.ts';
import type { Exchange, Summary } from './exchange.ts';
import { ExchangeSummaryBuilder } from './exchange-summary.ts';
import { finishWhole, nextOpened } from './follow-ups.ts';
import type { FailedOutcome, Outcome, StreamOutcome, WholeOutcome } from './outcome.ts';
import { forwardedHeaders, ownHeaders } from './response-headers.ts';
import { type RetryContext, retry } from './retry.ts';
import { streamBody } from './stream/client-stream.ts';
import type { FinalAnswer, StreamPipeline } from './stream/pipeline.ts';
import type { AttemptEvents, Hop, RunHop } from './types.ts';

/** What may change while the process runs (a reload); read once per exchange. */
export interface Services {
  readonly table: RoutingTable;
  readonly upstream: (routed: RoutedTarget) => Upstream;
  /** How many exchanges may run at a time. */
  readonly slots: ConcurrencyLimit;
}

/** What acts on one exchange. */
export interface ExchangeFeatures {
  readonly features: readonly Feature[];
  /** The whole answer, when it came to its true end; for a client's JSON reply its text. */
  readonly onAnswer?: (
    answer: FinalAnswer | { readonly kind: 'json'; readonly text: string },
  ) => void;
  /** What was said of a stream that did not come to its end, or that the client left. */
  readonly onCut?: (said: FinalAnswer) => void;
}

export interface GatewayOptions {
  readonly protocols: Readonly<Record<ProtocolName, Codec>>;
  /** For bodies that cannot be read as they are. */
  readonly mend?: RepairBody;
  /** @throws GatewayError what the client is told instead of an answer */
  readonly extras: (
    exchange: Exchange,
    ask: ClientRequest,
    recording: Recording | undefined,
  ) => ExchangeFeatures | undefined;
  readonly snapshot: () => Services;
  /** Told of everything that crosses an edge, where samples are wanted. */
  readonly record: (exchange: RecordedExchange) => Recording | undefined;
  readonly onRetry: (failed: FailedOutcome) => void;
  /** As {@link AttemptEvents}. */
  readonly onKeyRefused?: (provider: string, key: string, status: number) => void;
  /** A stream to a client opens (true) or is over (false). */
  readonly onStream: (open: boolean) => void;
  readonly onEnd: (summary: Summary) => void;
}

export type Gateway = (exchange: Exchange) => Promise<Response>;

/** Answers exchanges. The returned function never rejects: every failure is a response in the client's protocol. */
export function createGateway(options: GatewayOptions): Gateway {
  return async (exchange) => {
    const recording = options.record(exchange);
    const tally = new ExchangeSummaryBuilder(exchange, recording, options.onEnd);
    try {
      const decoding = clientRequest(exchange.protocol, exchange.body, options.mend);
      const ask = decoding instanceof Promise ? await decoding : decoding;
      tally.asked(ask);
      const snapshot = options.snapshot();
      const entered = snapshot.slots.take(exchange);
      tally.entered(typeof entered === 'function' ? entered : await entered);
      const extras = options.extras(exchange, ask, recording);
      const { config } = snapshot.table;
      const { keepAliveMs } = config;
      const secrets = secretsOf(config);
      const runHop = hopRunner({ options, snapshot, exchange, ask, extras, tally, secrets });

      const running = runHop({ number: 1 });
      const first = ask.stream ? await inTime(running, keepAliveMs) : await running;
      if (first === LATE || first.kind === 'stream') {
        const opened = first === LATE ? running : first;
        options.onStream(true);
        const job = { exchange, ask, runHop, keepAliveMs, tally, secrets };
        return streamed(job, opened, (lane, clientGone, error) => {
          options.onStream(false);
          tally.end(clientGone ? 499 : 200, lane?.digest.usage, error);
          const tell = clientGone || error !== undefined ? extras?.onCut : extras?.onAnswer;
          const said = tell && lane?.said;
          if (said !== undefined) tell?.(said);
        });
      }
      const more = first.kind === 'whole' && first.continuation !== undefined;
      const answer = more ? await finishWhole(first, runHop, exchange) : first;
      if (answer.kind === 'failed') return failedResponse(exchange, answer, tally, secrets);
      extras?.onAnswer?.({ kind: 'json', text: Buffer.from(answer.body).toString() });
      return wholeResponse(exchange, answer, tally, secrets);
    } catch (thrown) {
      // Whoever leaves while it waits for its turn is no failure of this gateway.
      const error = exchange.signal.aborted ? gone() : asGatewayError(thrown);
      return refused(exchange, error, tally);
    }
  };
}

/** What all hops of one exchange share. */
interface Running {
  readonly options: GatewayOptions;
  readonly snapshot: Services;
  readonly exchange: Exchange;
  readonly ask: ClientRequest;
  readonly extras: ExchangeFeatures | undefined;
  readonly tally: ExchangeSummaryBuilder;
  readonly secrets: readonly string[];
}

function hopRunner(running: Running): RunHop {
  return (hop) => {
    const { exchange, ask, snapshot, tally } = running;
    const facts = requestFacts({
      model: ask.model,
      protocol: exchange.protocol.name,
      stream: ask.stream,
      bytes: ask.bytes.length,
      headers: exchange.headers,
      affinity: exchange.id,
      request: conversationOf(hop, ask),
    });
    let decision: ReturnType<typeof route>;
    try {
      decision = route(facts, snapshot.table);
    } catch (thrown) {
      // A fact that a rule asked for needs the body decoded, and the body is broken.
      return Promise.resolve(unrouted(asGatewayError(thrown)));
    }
    if (!decision.ok) return Promise.resolve(unrouted(decision.error));
    const { rule, targets } = decision;
    tally.routed(rule);
    return retry(new TriesOfHop(running, hop, rule), targets);
  };
}

const conversationOf = (hop: Hop, ask: ClientRequest): { readonly conversation: Conversation } =>
  hop.conversation === undefined ? ask : { conversation: hop.conversation };

class TriesOfHop implements RetryContext, AttemptEvents {
  readonly #running: Running;
  readonly #hop: Hop;
  readonly #rule: string | undefined;

  constructor(running: Running, hop: Hop, rule: string | undefined) {
    this.#running = running;
    this.#hop = hop;
    this.#rule = rule;
  }

  get signal(): AbortSignal {
    return this.#running.exchange.signal;
  }

  upstream(routed: RoutedTarget): Upstream {
    return this.#running.snapshot.upstream(routed);
  }

  attempt(routed: RoutedTarget, number: number, refusal: GatewayError | undefined) {
    const { options, snapshot, exchange, ask, extras, tally, secrets } = this.#running;
    return attempt({
      exchange,
      ask,
      routed,
      protocol: options.protocols[routed.target.protocol],
      upstream: snapshot.upstream(routed),
      features: extras?.features ?? NO_FEATURES,
      hop: this.#hop,
      number,
      refusal,
      rule: this.#rule,
      recording: tally.recording,
      keepsAnswer: extras?.onAnswer !== undefined,
      secrets,
      events: this,
    });
  }

  onAsked(): void {
    this.#running.tally.sent();
  }

  onKeyRefused(provider: string, key: string, status: number): void {
    this.#running.options.onKeyRefused?.(provider, key, status);
  }

  mends(refusal: GatewayError): boolean {
    const features = this.#running.extras?.features ?? NO_FEATURES;
    return features.some((feature) => feature.repairsRefusal?.(refusal) === true);
  }

  onRetry(failed: FailedOutcome): void {
    this.#running.options.onRetry(failed);
  }

  tried(answer: Outcome, tries: number): void {
    this.#running.tally.tried(answer, tries);
  }
}

const NO_FEATURES: readonly Feature[] = [];

const unrouted = (error: GatewayError): FailedOutcome => ({
  kind: 'failed',
  error,
  remedy: 'never',
  target: undefined,
  notes: undefined,
});

const LATE = Symbol('late');

/** The answer, or LATE when the client has waited so long that it needs a sign of life. */
async function inTime(running: Promise<Outcome>, ms: number): Promise<Outcome | typeof LATE> {
  if (ms <= 0) return running;
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<typeof LATE>((resolve) => {
    timer = setTimeout(resolve, ms, LATE);
  });
  const first = await Promise.race([running, late]);
  clearTimeout(timer);
  return first;
}

interface StreamJob {
  readonly exchange: Exchange;
  readonly ask: ClientRequest;
  readonly runHop: RunHop;
  readonly keepAliveMs: number;
  readonly tally: ExchangeSummaryBuilder;
  readonly secrets: readonly string[];
}

function streamed(
  { exchange, ask, runHop, keepAliveMs, tally, secrets }: StreamJob,
  opened: StreamOutcome | Promise<Outcome>,
  onEnd: (
    lane: StreamPipeline | undefined,
    clientGone: boolean,
    error: GatewayError | undefined,
  ) => void,
): Response {
  const ready = opened instanceof Promise ? undefined : opened;
  const { recording } = tally;
  const encoder = () =>
    exchange.protocol.encodeStream({
      request: ask.conversation,
      requestId: exchange.id,
      provider: '',
      notes: new Notes(),
    });
  const body = streamBody({
    opened: opened instanceof Promise ? opened.then(openedOrError) : opened,
    early: { ping: () => encoder().ping(), fail: (error) => encoder().fail(error) },
    again: nextOpened(runHop),
    keepAliveMs,
    signal: exchange.signal,
    onFirstByte: () => tally.firstByte(),
    tap: recording && ((chunk) => recording.clientChunk(chunk)),
    onEnd: ({ lane, clientGone, error }) => onEnd(lane, clientGone, error),
  });
  const headers = ready?.same ? forwardedHeaders(ready.headers, secrets) : new FlatHeaders();
  headers.set('content-type', 'text/event-stream; charset=utf-8');
  headers.set('cache-control', 'no-cache');
  headers.set('x-accel-buffering', 'no');
  ownHeaders(headers, { requestId: exchange.id, target: ready?.target, notes: ready?.notes });
  recording?.clientStart(200, headers);
  return new Response(body, { headers: nativeHeaders(headers) });
}

const openedOrError = (answer: Outcome): StreamOutcome | GatewayError => {
  if (answer.kind === 'stream') return answer;
  if (answer.kind === 'failed') return answer.error;
  return asGatewayError(new Error('a whole answer where a stream was asked for'));
};

function wholeResponse(
  exchange: Exchange,
  answer: WholeOutcome,
  tally: ExchangeSummaryBuilder,
  secrets: readonly string[],
): Response {
  tally.firstByte();
  const headers = answer.same ? forwardedHeaders(answer.headers, secrets) : new FlatHeaders();
  if (!answer.same) headers.set('content-type', 'application/json');
  ownHeaders(headers, { requestId: exchange.id, target: answer.target, notes: answer.notes });
  const { status } = answer;
  tally.recording?.clientStart(status, headers);
  tally.recording?.clientChunk(answer.body);
  tally.end(status, answer.digest.usage, undefined);
  const body = answer.body as Uint8Array<ArrayBuffer> | string;
  return new Response(body, { status, headers: nativeHeaders(headers) });
}

/** The vendor's own error answer when it is in the client's protocol, else its meaning in the client's. */
function failedResponse(
  exchange: Exchange,
  failed: FailedOutcome,
  tally: ExchangeSummaryBuilder,
  secrets: readonly string[],
): Response {
  const { raw, target, notes } = failed;
  if (raw === undefined) return refused(exchange, failed.error, tally, failed);
  const headers = forwardedHeaders(raw.headers, secrets);
  ownHeaders(headers, { requestId: exchange.id, target, notes });
  tally.recording?.clientStart(raw.status, headers);
  tally.recording?.clientChunk(raw.body);
  tally.end(raw.status, undefined, failed.error);
  const body = raw.body as Uint8Array<ArrayBuffer>;
  return new Response(body, { status: raw.status, headers: nativeHeaders(headers) });
}

function refused(
  exchange: Exchange,
  error: GatewayError,
  tally: ExchangeSummaryBuilder,
  from: Partial<Pick<FailedOutcome, 'target' | 'notes'>> = {},
): Response {
  const { target, notes } = from;
  const own = { requestId: exchange.id, target, notes };
  const { status, headers, body } = errorParts(exchange.protocol, error, own);
  tally.recording?.clientStart(status, headers);
  tally.recording?.clientChunk(body);
  tally.end(error.status, undefined, error);
  return new Response(body, { status, headers: nativeHeaders(headers) });
}
