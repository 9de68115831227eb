/** The client's response: a stream, a whole answer, or an error. */

import { asGatewayError, type GatewayError } from '../conversation/errors.ts';
import { Notes } from '../conversation/notes.ts';
import { FlatHeaders } from '../lib/http/headers.ts';
import { nativeHeaders } from '../lib/http/native-headers.ts';
import { maskedError } from '../upstream/vendor-error.ts';
import { errorParts } from './error-response.ts';
import type { ExchangeSummaryBuilder } from './exchange-summary.ts';
import { followUps } from './follow-ups.ts';
import { forwardedHeaders, ownHeaders } from './response-headers.ts';
import type { RunningExchange } from './run-hop.ts';
import { clientStream, responseBody, type StreamEnd } from './stream/client-stream.ts';
import type {
  Exchange,
  FailedOutcome,
  Outcome,
  RunHop,
  StreamOutcome,
  WholeOutcome,
} from './types.ts';

interface StreamOptions {
  readonly run: RunHop;
  readonly keepAliveMs: number;
  readonly onStream: (open: boolean) => void;
}

/** @param answer may be long in coming: the client gets keep-alives until then */
export function streamResponse(
  running: RunningExchange,
  answer: StreamOutcome | Promise<Outcome>,
  { run, keepAliveMs, onStream }: StreamOptions,
): Response {
  const { exchange, request, summary, secrets, features } = running;
  const { recording } = summary;
  const onAnswer = features?.onAnswer;
  let isTold = false;
  const ready = answer instanceof Promise ? undefined : answer;
  const encoder = () =>
    exchange.protocol.encodeStream({
      request: request.conversation,
      requestId: exchange.id,
      provider: '',
      notes: new Notes(),
    });
  onStream(true);
  const stream = clientStream({
    opened: answer instanceof Promise ? answer.then(streamOrError) : answer,
    early: { ping: () => encoder().ping(), fail: (error) => encoder().fail(error) },
    followUp: followUps(run),
    beforeEnd: running.features?.beforeEnd,
    keepAliveMs,
    signal: exchange.signal,
    onFirstByte: () => summary.firstByte(),
    onWhole:
      onAnswer &&
      ((pipeline) => {
        if (isTold) return undefined;
        isTold = true;
        const { finalAnswer } = pipeline;
        return finalAnswer && onAnswer(finalAnswer, running.account?.spent);
      }),
    tap:
      recording && !recording.ignoresClient ? (chunk) => recording.clientChunk(chunk) : undefined,
    onEnd: (end) => {
      onStream(false);
      streamEnded(running, end, isTold);
    },
  });
  const headers = ready?.same ? forwardedHeaders(ready.headers, secrets) : new FlatHeaders();
  headers.set('content-type', 'text/event-stream; charset=utf-8');
  headers.set('cache-control', 'no-cache');
  headers.set('x-accel-buffering', 'no');
  ownHeaders(headers, { requestId: exchange.id, target: ready?.target, notes: ready?.notes });
  summary.addHeaders(headers, false);
  recording?.clientStart(200, headers);
  const { lane } = exchange;
  lane?.open(stream);
  const body = lane === undefined ? responseBody(stream) : null;
  return new Response(body, { headers: nativeHeaders(headers) });
}

function streamEnded(
  { features, account, summary, secrets }: RunningExchange,
  { pipeline, clientGone, error }: StreamEnd,
  isTold: boolean,
): void {
  const digest = pipeline?.digest;
  // A vendor's own error event may have gone out as it came: no failure here, but no success either.
  const said = error ?? (digest?.error && maskedError(digest.error, secrets));
  summary.end(clientGone ? 499 : 200, digest?.usage, said, digest?.finish);
  if (isTold) return;
  const partial = clientGone || error !== undefined;
  const onAnswer = partial ? features?.onPartialAnswer : features?.onAnswer;
  const answer = onAnswer && pipeline?.finalAnswer;
  if (answer !== undefined) void onAnswer?.(answer, account?.spent);
}

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
  ownHeaders(headers, { requestId: exchange.id, target: answer.target, notes: answer.notes });
  summary.addHeaders(headers, true);
  const { status } = answer;
  summary.recording?.clientStart(status, headers);
  summary.recording?.clientChunk(answer.body);
  summary.end(status, answer.digest.usage, undefined, answer.digest.finish);
  const body = answer.body as Uint8Array<ArrayBuffer> | string;
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
  const { target, notes } = from;
  const own = { requestId: exchange.id, target, notes };
  const { status, headers, body } = errorParts(exchange.protocol, error, own);
  summary.addHeaders(headers, true);
  summary.recording?.clientStart(status, headers);
  summary.recording?.clientChunk(body);
  summary.end(status, undefined, error);
  return new Response(body, { status, headers: nativeHeaders(headers) });
}
