/** One try at one target: prepare, send, and read until it is clear what came of it. */

import type { ClientContext, Codec } from '../codecs/codec.ts';
import { asGatewayError, GatewayError } from '../conversation/errors.ts';
import { Notes } from '../conversation/notes.ts';
import type { Conversation } from '../conversation/types.ts';
import { Pieces } from '../lib/bytes/bytes.ts';
import type { ReadonlyHeaders } from '../lib/http/headers.ts';
import { isObject, tryParse } from '../lib/json/json.ts';
import { Abort } from '../lib/loop/abort.ts';
import { startIdleTimer } from '../lib/loop/idle-timer.ts';
import { maskLiterals } from '../lib/text/secret-literals.ts';
import type { HopRecording } from '../samples/recording.ts';
import { isRedirect, remedyForError, remedyForStatus } from '../upstream/classify.ts';
import { type ResponseBody, readFirst, type UpstreamAnswer } from '../upstream/transport.ts';
import type { UpstreamCall } from '../upstream/upstream.ts';
import { aboutOurKey, maskedError, vendorError } from '../upstream/vendor-error.ts';
import type { ClientRequest } from './client-request.ts';
import type { FailedOutcome, Outcome } from './outcome.ts';
import { prepare } from './prepare.ts';
import { wholeAnswer } from './read-whole.ts';
import { decoded } from './response-body.ts';
import { openStream } from './stream/open.ts';
import { UpstreamBody } from './stream/upstream-body.ts';
import type { Attempt, Reading } from './types.ts';

const ERROR_BODY_BYTES = 1024 * 1024;

/** Never rejects; whatever goes wrong is a `Failed` that says what may be tried next. */
export async function attempt(options: Attempt): Promise<Outcome> {
  const { exchange, ask, routed, protocol, upstream, hop, recording } = options;
  const { target } = routed;
  const notes = new Notes();
  const same = protocol === ask.protocol;
  const abort = new Abort();
  // Whoever asks for the first time was there a moment ago.
  const first = hop.number === 1 && options.number === 1;
  if (first) abort.followLater(exchange);
  else abort.follow(exchange.signal);
  let sending: UpstreamCall | undefined;
  let recorded: HopRecording | undefined;
  let source: UpstreamBody | undefined;
  try {
    if (abort.aborted) throw gone();
    const { features, refusal } = options;
    const job = { ask, target, protocol, features, notes, hop, refusal, abort };
    const preparing = prepare(job);
    const prepared = preparing instanceof Promise ? await preparing : preparing;
    const { body } = prepared;
    const onSend =
      recording &&
      ((url: string, headers: ReadonlyHeaders) => {
        const { number, rule: route } = options;
        recorded = recording.hop(hop.number, number, {
          target,
          model: ask.model,
          route,
          url,
          headers,
          body,
        });
      });
    // The steps of `Upstream.send`: every exchange comes by here, and one more function that waits would be felt.
    const beginning = upstream.acquire(abort);
    sending = beginning instanceof Promise ? await beginning : beginning;
    const request = {
      path: protocol.upstreamPath,
      search: exchange.search,
      body,
      clientHeaders: exchange.headers,
      sameProtocol: same,
      stream: ask.stream,
      abort,
      onSend,
      onConnected: recording && (() => recorded?.connected()),
    };
    options.events?.onAsked();
    let answer: UpstreamAnswer;
    try {
      answer = await upstream.sendRequest(sending, request);
    } catch (thrown) {
      throw sending.failed(thrown);
    }
    sending.begun();
    recorded?.start(answer.status, answer.headers);
    if (answer.status < 200 || answer.status > 299) {
      const failure = await refused(options, sending, answer, notes, recorded);
      abort.unfollow();
      sending.release();
      return failure;
    }
    const { headers, body: plain } = decoded(answer);
    source = new UpstreamBody(plain, {
      provider: target.provider,
      idleMs: upstream.config.timeouts.idleMs,
      mostBytes: upstream.config.answers.bytes,
      abort,
      lease: sending,
      recording: recorded,
    });
    const client = new Client(options, notes);
    const common = { target, notes, headers, same } as const;
    const reading: Reading = { attempt: options, prepared, source, client, common };
    const type = headers.get('content-type') ?? '';
    const read =
      type.includes('event-stream') && ask.stream
        ? openStream(reading)
        : wholeAnswer(reading, type, answer.status);
    return read instanceof Promise ? await read : read;
  } catch (thrown) {
    abort.unfollow();
    sending?.release();
    abort.abort();
    const left = exchange.signal.aborted;
    const error = asGatewayError(left ? gone() : thrown);
    recorded?.end(asGatewayError(thrown));
    // A timer would keep the body, and what was recorded of it, for ever.
    source?.cancel();
    return { kind: 'failed', error, remedy: left ? 'never' : remedyForError(error), target, notes };
  }
}

/** What an encoder needs to know of the client. */
class Client implements ClientContext {
  readonly requestId: string;
  readonly provider: string;
  readonly notes: Notes;
  readonly #ask: ClientRequest;

  constructor({ exchange, ask, routed }: Attempt, notes: Notes) {
    this.requestId = exchange.id;
    this.provider = routed.target.provider;
    this.notes = notes;
    this.#ask = ask;
  }

  // Decoding a large body can wait until something of it is really asked for.
  get request(): Conversation {
    return this.#ask.conversation;
  }
}

/** Nobody waits for an answer any more. */
export const gone = (): GatewayError =>
  new GatewayError('timeout', 'The client went away.', { status: 499, retryable: false });

/** The vendor said no: its error by meaning, its own words kept when they can go out as they are. */
async function refused(
  options: Attempt,
  { key }: UpstreamCall,
  answer: UpstreamAnswer,
  notes: Notes,
  recorded: HopRecording | undefined,
): Promise<FailedOutcome> {
  const { ask, protocol, routed, secrets = NONE } = options;
  const { target } = routed;
  const { provider } = target;
  const { status, headers, body } = decoded(answer);
  const bytes = await readError(body, options.upstream.config.timeouts.idleMs);
  recorded?.chunk(bytes);
  const said = new TextDecoder().decode(bytes);
  const text = maskLiterals(said, secrets);
  const redirect = isRedirect(status);
  const vendors = maskedError(protocol.decodeError(status, text, headers), secrets);
  const meant = redirect ? redirected(provider, status) : vendorError(target.profile, vendors);
  recorded?.end(meant);
  const remedy = remedyForStatus(status, meant, headers);
  if (remedy === 'next-key' || status === 429) {
    key.rest((meant.retryAfter ?? (status === 429 ? 5 : 60)) * 1000);
  }
  const error = aboutOurKey(provider, meant);
  if (error !== meant && key.label !== undefined) {
    options.events?.onKeyRefused(provider, key.label, status);
  }
  const failure: FailedOutcome = { kind: 'failed', error, remedy, target, notes };
  // A redirect stays here: a client that followed it would take its key and its words to that place.
  const same = protocol === ask.protocol && error === vendors && isObject(tryParse(text));
  if (!same || !saysWhatCounts(ask.protocol, error)) return failure;
  const own = text === said ? bytes : new TextEncoder().encode(text);
  return { ...failure, raw: { status, headers, body: own } };
}

const NONE: readonly string[] = [];

/** Clients begin to compact by one code or word, which not every vendor of their protocol says. */
function saysWhatCounts(protocol: Codec, error: GatewayError): boolean {
  if (error.kind !== 'context_overflow') return true;
  const { body } = protocol.encodeError(error, '');
  const told = isObject(body.error) ? body.error : {};
  return told.message === error.message && (told.code ?? error.code) === error.code;
}

/** Not where to: a vendor's `Location` may hold a key or a signature. */
const redirected = (provider: string, status: number): GatewayError =>
  new GatewayError(
    'upstream',
    `Provider ${provider} answered with a redirect (${status}), which is not followed. Its base_url is probably wrong.`,
  );

// Of an error that is in no hurry so much is waited for.
const ERROR_MS = 10_000;

/** As much of an error answer as comes: one that breaks off, falls silent or does not end is still that error. */
async function readError(body: ResponseBody, idleMs: number): Promise<Uint8Array> {
  const watch = startIdleTimer(idleMs, () => body.cancel());
  const late = startIdleTimer(ERROR_MS, () => body.cancel());
  const pieces = new Pieces();
  try {
    await readFirst(body, ERROR_BODY_BYTES, (chunk) => {
      watch.touch();
      pieces.push(chunk);
    });
  } catch {
    // What came is what there is.
  }
  watch.stop();
  late.stop();
  return pieces.joined();
}
