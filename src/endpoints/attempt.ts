/** One try of an endpoint's request at one target: sends it, and reads until the answer has begun. */

import type { AskedUsage, Codec } from '../codecs/codec.ts';
import type { TryAccount, TryStart } from '../conversation/account/payer.ts';
import { asGatewayError, departure, GatewayError, isClientGone } from '../conversation/errors.ts';
import { Notes } from '../conversation/notes.ts';
import type { Target } from '../conversation/target.ts';
import { estimatedTokens } from '../conversation/usage.ts';
import { readRefusal } from '../gateway/read-refusal.ts';
import { bodyAskingForUsage } from '../gateway/tries/asked-usage.ts';
import { endFailedTry, endOf } from '../gateway/tries/try-account.ts';
import type { FailedOutcome } from '../gateway/types.ts';
import { wholeBytes } from '../lib/bytes/byte-list.ts';
import { withoutMembers } from '../lib/json/body-members.ts';
import { Abort, type AbortGuard } from '../lib/loop/abort.ts';
import type { RoutedTarget } from '../routing/index.ts';
import type { HopRecording } from '../samples/recording.ts';
import { remedyForError } from '../upstream/classify.ts';
import type { Lease } from '../upstream/health/place.ts';
import type { RequestStream } from '../upstream/transport.ts';
import type { UpstreamCall } from '../upstream/upstream.ts';
import { beginAnswer } from './begin-answer.ts';
import {
  type EmbeddingForm,
  type EmbeddingTry,
  embeddingBody,
  embeddingTry,
  isGoogle,
} from './embeddings.ts';
import { type Endpoint, whyNot } from './endpoint.ts';
import { withoutMedia } from './media.ts';
import type { AnswerOutcome, EndpointRequest, RunningEndpoint } from './types.ts';

/** Never rejects: whatever goes wrong is a failed outcome that says what may be tried next. */
export async function attempt(
  running: RunningEndpoint,
  routed: RoutedTarget,
  lease: Lease,
  number: number,
  refusals: readonly GatewayError[] = [],
): Promise<AnswerOutcome | FailedOutcome> {
  const { exchange, endpoint, request, services, session, summary, secrets } = running;
  const { target } = routed;
  const embedding =
    endpoint.name === 'embeddings'
      ? embeddingTry(routed, endpoint.form ?? 'embeddings')
      : undefined;
  const protocol = targetProtocol(running, routed);
  const notes = new Notes();
  const wrong = unserved(routed, endpoint);
  if (wrong !== undefined) {
    return { kind: 'failed', error: wrong, remedy: 'next-target', target, notes };
  }
  const upstream = services.upstream(routed);
  const abort = new Abort();
  abort.follow(exchange.signal);
  let call: UpstreamCall | undefined;
  let recorded: HopRecording | undefined;
  let paid: TryAccount | undefined;
  let isSent = false;
  try {
    if (abort.aborted) throw departure(exchange.signal);
    const {
      recorded: shown,
      hides,
      ...sent
    } = await sentBody(running, target, notes, refusals, embedding);
    const { body, path, query } = addressed(running, target, sent.body, embedding?.sent);
    call = await upstream.acquire(abort, lease, session);
    paid = await (request.beginTry === undefined
      ? running.account?.beginTry(startOf(running, target, call.key.label, number))
      : request.beginTry(target, call.key.label, number));
    running.onSend();
    isSent = true;
    // A vendor makes a file or a batch, and charges for it, also where the client no longer waits.
    if (request.once === true) abort.guard = UNLESS_STOPPED;
    const { recording } = summary;
    const answer = await upstream
      .sendRequest(call, {
        path,
        query,
        search: exchange.search,
        method: request.method,
        ...(body !== undefined && { body }),
        contentType: request.contentType,
        clientHeaders: exchange.headers,
        owner: exchange.owner,
        sameProtocol: isSame(exchange, routed),
        stream: request.stream,
        abort,
        trace: exchange.trace,
        onSend:
          recording &&
          ((url, headers) => {
            const { model } = request;
            recorded = recording.hop(1, number, {
              target,
              model,
              route: running.routeName,
              url,
              headers,
              body: shown(),
            });
          }),
        onConnected: recording && (() => recorded?.connected()),
      })
      .catch((thrown: unknown) => {
        throw call!.failed(thrown);
      });
    call.answered(answer.headers);
    paid?.answered(answer.status, answer.headers);
    request.onStatus?.(answer.status);
    recorded?.start(answer.status, answer.headers);
    if (answer.status < 200 || answer.status > 299) {
      const asked = { protocol: exchange.protocol, model: request.model };
      const { routeName } = running;
      const about = {
        request: asked,
        routeName,
        protocol,
        routed,
        upstream,
        secrets,
        events: running,
      };
      const words = {
        body: body instanceof Uint8Array ? body : undefined,
        headers: exchange.headers,
        search: exchange.search,
      };
      const failure = await readRefusal(about, call, answer, notes, words, recorded);
      abort.unfollow();
      call.release();
      if (paid !== undefined) endFailedTry(paid, 'error');
      const isDone = request.spent || (request.once === true && answer.status >= 500);
      return isDone ? { ...failure, remedy: 'never' } : failure;
    }
    return await beginAnswer({
      answer,
      routed,
      protocol,
      upstream,
      notes,
      abort,
      call,
      recorded,
      secrets,
      paid,
      hides,
      endpoint,
      embedding,
      bytes: request.bytes,
      wantsBase64: request.wantsBase64 === true,
    });
  } catch (thrown) {
    abort.unfollow();
    call?.release();
    abort.abort();
    const left = exchange.signal.aborted;
    const error = asGatewayError(left ? departure(exchange.signal) : thrown);
    recorded?.end(isClientGone(error) ? undefined : error);
    if (paid !== undefined) endFailedTry(paid, endOf(error));
    const isDone = request.spent || (request.once === true && isSent);
    const remedy = left || isDone ? 'never' : remedyForError(error);
    return { kind: 'failed', error, remedy, target, notes };
  }
}

const UNLESS_STOPPED: AbortGuard = { keeps: (reason) => !(reason instanceof GatewayError) };

/** Why a provider cannot have this endpoint at all. */
function unserved({ provider }: RoutedTarget, endpoint: Endpoint): GatewayError | undefined {
  const why = (endpoint.whyNot ?? whyNot)(provider);
  if (why === undefined) return undefined;
  const others =
    endpoint.name === 'embeddings' ? 'an OpenAI protocol or google-gemini' : 'an OpenAI protocol';
  return new GatewayError(
    'not_found',
    `Provider ${why}, which has no /v1${endpoint.path}. Route the model to a provider of ${others}.`,
    { code: 'endpoint_not_served', param: 'model' },
  );
}

/** Of all endpoints, embeddings alone have targets whose protocol is not of the client's API. */
const isSame = ({ protocol }: RunningEndpoint['exchange'], { provider }: RoutedTarget): boolean =>
  isGoogle({ protocol: protocol.name }) === isGoogle(provider);

function targetProtocol({ exchange, protocols }: RunningEndpoint, routed: RoutedTarget): Codec {
  if (isSame(exchange, routed)) return exchange.protocol;
  return protocols?.[routed.target.protocol] ?? exchange.protocol;
}

/** Where a request goes: Google's models have it in their own path. */
function addressed(
  { endpoint, protocols }: RunningEndpoint,
  { protocol, model }: Target,
  body: SentBody['body'],
  form: EmbeddingForm | undefined,
): { readonly path: string; readonly query?: string; readonly body: SentBody['body'] } {
  if (form === undefined || form === 'embeddings' || !(body instanceof Uint8Array)) {
    return { path: endpoint.path, body };
  }
  const { path, query, body: bare } = protocols![protocol].addressed!(body, model, form);
  return { path, query, body: wholeBytes(bare) };
}

interface SentBody {
  readonly body: Uint8Array | RequestStream | undefined;
  /** As a record shows it. */
  recorded(): Uint8Array;
  /** Usage that this gateway asked for and the client did not. */
  readonly hides: AskedUsage | undefined;
}

/** Asks the vendor for the usage of a stream if a limit of the key needs it. */
async function sentBody(
  { account, endpoint, request, exchange }: RunningEndpoint,
  target: Target,
  notes: Notes,
  refusals: readonly GatewayError[],
  embedding: EmbeddingTry | undefined,
): Promise<SentBody> {
  const body = await request.bodyFor(target);
  if (embedding !== undefined && body instanceof Uint8Array) {
    const written = embeddingBody(body, embedding, notes);
    return { body: written, recorded: () => withoutMedia(written), hides: undefined };
  }
  if (request.isDefaultModel === true) {
    notes.add('parameter_defaulted', 'model', request.model);
  }
  const isRefused = refusals.some((refusal) => refusesBase64(request, refusal));
  if (isRefused && body instanceof Uint8Array) {
    notes.add('parameter_dropped', 'encoding_format', 'the vendor refuses it');
    const left = withoutMembers(body, ENCODING);
    return { body: left, recorded: () => withoutMedia(left), hides: undefined };
  }
  const plain = { body, recorded: () => request.recorded(target.model), hides: undefined };
  // Of these endpoints, completions alone have the option; other streams report usage in any case.
  const asks = endpoint.name === 'completions' ? exchange.protocol.usageIsAsked : undefined;
  if (asks === undefined || !request.stream || account?.needsUsage !== true) return plain;
  if (!(body instanceof Uint8Array)) return plain;
  const asked = await bodyAskingForUsage(body, target, asks, notes);
  if (asked === undefined) return plain;
  return { body: asked, recorded: () => withoutMedia(asked), hides: asks };
}

const ENCODING: ReadonlySet<string> = new Set(['encoding_format']);

/** SDKs ask for base64 by default, and not every vendor takes the parameter. Without it, the vectors come as lists. */
export const refusesBase64 = (
  { wantsBase64 }: Pick<EndpointRequest, 'wantsBase64'>,
  { kind, fromUpstream, param, message }: GatewayError,
): boolean =>
  wantsBase64 === true &&
  fromUpstream &&
  kind === 'invalid_request' &&
  /encoding_?format|base64/i.test(`${param} ${message}`);

/** Media are no tokens of the prompt, and a form is not counted beforehand. */
export function promptTokens({
  exchange,
  endpoint,
  request,
}: Pick<RunningEndpoint, 'exchange' | 'endpoint' | 'request'>): number {
  if (exchange.form !== undefined) return 0;
  const { model, bytes } = request;
  return estimatedTokens(endpoint.media === true ? request.recorded(model).length : bytes);
}

/** Only completions generate tokens. */
export function startOf(
  running: RunningEndpoint,
  target: Target,
  upstreamKey: string | undefined,
  attempt: number,
): TryStart {
  const { endpoint, request } = running;
  const { model, stream, bytes, allowed } = request;
  const completes = endpoint.name === 'completions';
  const media = endpoint.mediaTokens?.(bytes);
  return {
    target,
    model,
    upstreamKey,
    hop: 1,
    attempt,
    stream,
    inputTokens: promptTokens(running),
    maxOutputTokens: completes ? allowed?.tokens : 0,
    media,
    characters: endpoint.name === 'audio-speech' ? request.characters : undefined,
    choices: completes || media ? (allowed?.choices ?? 1) : 1,
    serviceTier: undefined,
  };
}
