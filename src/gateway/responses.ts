/** The client's response: a stream, a whole answer, or an error. */

import type { StreamEncoder } from '../codecs/codec.ts';
import { asGatewayError, type GatewayError } from '../conversation/errors.ts';
import { Notes } from '../conversation/notes.ts';
import type { Conversation } from '../conversation/types.ts';
import { FlatHeaders } from '../lib/http/headers.ts';
import { lateBody } from '../lib/http/late-body.ts';
import { nativeHeaders } from '../lib/http/native-headers.ts';
import type { Recording } from '../samples/recording.ts';
import { maskedError } from '../upstream/vendor-error.ts';
import { errorParts } from './error-response.ts';
import type { ExchangeSummaryBuilder } from './exchange-summary.ts';
import { forwardedHeaders, ownHeaders } from './response-headers.ts';
import { type RunningExchange, runHop } from './run-hop.ts';
import { ClientStream, type ClientStreamOptions, type StreamEnd } from './stream/client-stream.ts';
import { earlyBody } from './stream/early-body.ts';
import type {
  Exchange,
  ExchangeFeatures,
  FailedOutcome,
  Outcome,
  StreamOutcome,
  WholeOutcome,
} from './types.ts';

interface StreamOptions {
  readonly keepAliveMs: number;
  readonly onStream: (open: boolean) => void;
}

/** @param answer may be long in coming: the client gets keep-alives until then */
export function streamResponse(
  running: RunningExchange,
  answer: StreamOutcome | Promise<Outcome>,
  options: StreamOptions,
): Response | Promise<Response> {
  const { exchange, summary, secrets } = running;
  const { recording } = summary;
  const ready = answer instanceof Promise ? undefined : answer;
  options.onStream(true);
  const stream = new ClientStream(new StreamedAnswer(running, answer, options));
  const headers = ready?.same ? forwardedHeaders(ready.headers, secrets) : new FlatHeaders();
  headers.set('content-type', 'text/event-stream; charset=utf-8');
  headers.set('cache-control', 'no-cache');
  headers.set('x-accel-buffering', 'no');
  ownHeaders(headers, { requestId: exchange.id, target: ready?.target, notes: ready?.notes });
  summary.addHeaders(headers, false);
  recording?.clientStart(200, headers);
  const { lane } = exchange;
  if (lane !== undefined) {
    lane.open(stream);
    return new Response(null, { headers: nativeHeaders(headers) });
  }
  const mayBeWhole = ready !== undefined && ready.source?.isOver !== false;
  return mayBeWhole
    ? earlyBody(stream).then((body) => streamed(body as ReadableStream, headers))
    : streamed(new ReadableStream(stream as never), headers);
}

const streamed = (body: ReadableStream, headers: FlatHeaders): Response =>
  new Response(body, { headers: nativeHeaders(headers) });

/** Connects a stream to its exchange; one object, as every stream would make ten closures instead. */
class StreamedAnswer {
  readonly opened: ClientStreamOptions['opened'];
  readonly keepAliveMs: number;
  readonly signal: AbortSignal;
  readonly endsByEvent: boolean;
  readonly beforeEnd: ClientStreamOptions['beforeEnd'];
  readonly onWhole: ClientStreamOptions['onWhole'];
  readonly tap: ClientStreamOptions['tap'];
  #hops = 1;
  /** The features know the answer. */
  #isTold = false;

  constructor(
    private readonly running: RunningExchange,
    answer: StreamOutcome | Promise<Outcome>,
    private readonly options: StreamOptions,
  ) {
    const { exchange, features, summary } = running;
    this.opened = answer instanceof Promise ? answer.then(streamOrError) : answer;
    this.keepAliveMs = options.keepAliveMs;
    this.signal = exchange.signal;
    this.endsByEvent = exchange.lane !== undefined;
    this.beforeEnd = features?.beforeEnd;
    this.onWhole = features?.onAnswer && this.#teller(features.onAnswer);
    const { recording } = summary;
    this.tap = recording && !recording.ignoresClient ? tapOf(recording) : undefined;
  }

  ping(): string {
    return this.#encoder().ping();
  }

  /**
   * openai-go before 3.43 takes every blank line for an event, and fails at one without data (openai/openai-go#621). Others cut
   * streams at blank lines, and would lose an event behind a comment.
   */
  skipped(ping: string): string {
    const agent = this.running.exchange.headers.get('user-agent');
    return ping.startsWith(':') && agent?.startsWith('OpenAI/Go ') ? ping.slice(0, -1) : ping;
  }

  fail(error: GatewayError): string {
    return this.#encoder().fail(error);
  }

  #encoder(): StreamEncoder {
    const { exchange, request } = this.running;
    return exchange.protocol.encodeStream({
      request: request.conversation,
      requestId: exchange.id,
      provider: '',
      notes: new Notes(),
    });
  }

  async followUp(
    conversation: Conversation,
    before: StreamOutcome,
  ): Promise<StreamOutcome | GatewayError> {
    const number = ++this.#hops;
    const { target: after, pipeline } = before;
    const { client } = pipeline;
    return streamOrError(await runHop(this.running, { number, conversation, after, client }));
  }

  onFirstByte(): void {
    this.running.summary.firstByte();
  }

  #teller(onAnswer: NonNullable<ExchangeFeatures['onAnswer']>): ClientStreamOptions['onWhole'] {
    return ({ finalAnswer }) => {
      if (this.#isTold) return undefined;
      this.#isTold = true;
      return finalAnswer && onAnswer(finalAnswer, this.running.account?.spent);
    };
  }

  onEnd({ pipeline, clientGone, error }: StreamEnd): void {
    const { features, account, summary, secrets } = this.running;
    this.options.onStream(false);
    const digest = pipeline?.digest;
    // A vendor's own error event may have gone out as it came: no failure here, but no success either.
    const said = error ?? (digest?.error && maskedError(digest.error, secrets));
    summary.end(clientGone ? 499 : 200, digest?.usage, said, digest?.finish);
    if (this.#isTold) return;
    const partial = clientGone || error !== undefined;
    const onAnswer = partial ? features?.onPartialAnswer : features?.onAnswer;
    const answer = onAnswer && pipeline?.finalAnswer;
    if (answer !== undefined) void onAnswer?.(answer, account?.spent);
  }
}

const tapOf =
  (recording: Recording): ClientStreamOptions['tap'] =>
  (chunk) =>
    recording.clientChunk(chunk);

const streamOrError = (outcome: Outcome): StreamOutcome | GatewayError => {
  if (outcome.kind === 'stream') return outcome;
  if (outcome.kind === 'failed') return outcome.error;
  return asGatewayError(new Error('a whole answer where a stream was requested'));
};

export function wholeResponse(
  { exchange, summary, secrets }: RunningExchange,
  answer: WholeOutcome,
): Response {
  summary.firstByte();
  const headers = answer.same ? forwardedHeaders(answer.headers, secrets) : new FlatHeaders();
  if (!answer.same) headers.set('content-type', 'application/json');
  const notes = summary.notesWith(answer.notes);
  ownHeaders(headers, { requestId: exchange.id, target: answer.target, notes });
  summary.addHeaders(headers, true);
  const { status } = answer;
  summary.recording?.clientStart(status, headers);
  summary.recording?.clientChunk(answer.body);
  summary.end(status, answer.digest.usage, undefined, answer.digest.finish);
  const body = lateBody(answer.body) as ReadableStream;
  return new Response(body, { status, headers: nativeHeaders(headers) });
}

/** The vendor's own error answer when it is in the client's protocol, else its meaning in the client's. */
export function failedResponse(
  { exchange, summary, secrets }: Pick<RunningExchange, 'exchange' | 'summary' | 'secrets'>,
  failed: FailedOutcome,
): Response {
  const { raw, target, notes } = failed;
  if (raw === undefined) return errorOf(exchange, failed.error, summary, failed);
  const headers = forwardedHeaders(raw.headers, secrets);
  // Clients wait whole seconds; vendors also write fractions and dates.
  const { retryAfter } = failed.error;
  if (retryAfter !== undefined && !/^\d+$/.test(headers.get('retry-after') ?? '')) {
    headers.set('retry-after', String(Math.ceil(retryAfter)));
  }
  ownHeaders(headers, { requestId: exchange.id, target, notes });
  summary.addHeaders(headers, true);
  summary.recording?.clientStart(raw.status, headers);
  summary.recording?.clientChunk(raw.body);
  summary.end(raw.status, undefined, failed.error);
  const body = raw.body as Uint8Array<ArrayBuffer>;
  return new Response(body, { status: raw.status, headers: nativeHeaders(headers) });
}

/** The error as the response of an exchange, which ends with it. */
export function errorOf(
  exchange: Exchange,
  error: GatewayError,
  summary: ExchangeSummaryBuilder,
  from: Partial<Pick<FailedOutcome, 'target' | 'notes'>> = {},
): Response {
  const own = {
    requestId: exchange.id,
    target: from.target,
    notes: summary.notesWith(from.notes),
  };
  const { status, headers, body } = errorParts(exchange.protocol, error, own);
  summary.addHeaders(headers, true);
  summary.recording?.clientStart(status, headers);
  summary.recording?.clientChunk(body);
  summary.end(status, undefined, error);
  return new Response(body, { status, headers: nativeHeaders(headers) });
}
