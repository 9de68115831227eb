/** Reads the error answer of a vendor: its meaning, and its own text where the client may get it. */

import type { Codec } from '../codecs/codec.ts';
import type { GatewayError } from '../conversation/errors.ts';
import type { Notes } from '../conversation/notes.ts';
import { Pieces, withoutByteOrderMark } from '../lib/bytes/bytes.ts';
import { isObject, type Json, tryParse } from '../lib/json/json.ts';
import { startIdleTimer } from '../lib/loop/idle-timer.ts';
import { maskLiterals } from '../lib/text/secret-literals.ts';
import type { HopRecording } from '../samples/recording.ts';
import { isRedirect, remedyForStatus } from '../upstream/classify.ts';
import { resetAfterOf } from '../upstream/health/reset-headers.ts';
import { repeatsRequest, type SentWords } from '../upstream/repeated-words.ts';
import { type ResponseBody, readFirst, type UpstreamAnswer } from '../upstream/transport.ts';
import type { UpstreamCall } from '../upstream/upstream.ts';
import {
  aboutModel,
  aboutOurKey,
  aboutTools,
  blocked,
  maskedError,
  redirected,
  vendorError,
  wrongAddress,
  wrongMethod,
} from '../upstream/vendor-error.ts';
import { decoded } from './response-body.ts';
import type { Attempt, FailedOutcome } from './types.ts';

const ERROR_BODY_BYTES = 1024 * 1024;
/** An error answer that is still incomplete after this time is taken as it is. */
const ERROR_MS = 10_000;
const NONE: readonly string[] = [];
/** Fastify, Express; OpenAI; Groq: the whole of what is said of a path that is not there. */
const NO_PATH =
  /^(?:cannot post \S{1,200}|route post:\S{1,200} not found|invalid url \(post \S{1,200}\)|unknown request url: post \S{1,200} please check the url .{1,200})$/i;
/** FastAPI, Spring. In the form of an API's errors, it may be the model that is not found. */
const NOT_FOUND = /^(?:http )?(?:404:? )?not found\.?$/i;

/** Does a 404 with this body tell of a path, and not of a model? */
function tellsOfPath(body: Json | undefined, message: string): boolean {
  if (typeof body !== 'object' || body === null || NO_PATH.test(message)) return true;
  return isObject(body) && !isObject(body.error) && NOT_FOUND.test(message);
}

/** What is needed of an attempt that was refused. */
type RefusedAttempt = Pick<Attempt, 'protocol' | 'routed' | 'upstream' | 'secrets' | 'events'> & {
  readonly request: Pick<Attempt['request'], 'protocol' | 'model'>;
  readonly routeName: string | undefined;
};

/**
 * Reads an answer with a status that is no success, and says what it means and what may be tried next.
 * @param words what the vendor may repeat
 * @param onText gets the vendor's text with secrets masked
 */
export async function readRefusal(
  attempt: RefusedAttempt,
  { key }: UpstreamCall,
  answer: UpstreamAnswer,
  notes: Notes,
  words: SentWords,
  recorded: HopRecording | undefined,
  onText?: (text: string) => void,
): Promise<FailedOutcome> {
  const { request, protocol, routed, secrets = NONE } = attempt;
  const { target } = routed;
  const { status, headers, body } = decoded(answer);
  const bytes = await readError(body, attempt.upstream.config.timeouts.idleMs);
  recorded?.chunk(bytes);
  const sent = new TextDecoder().decode(bytes);
  const text = maskLiterals(sent, secrets);
  const vendors = maskedError(protocol.decodeError(status, text, headers), secrets);
  const parsed = tryParse(text);
  const meaning = isRedirect(status)
    ? redirected(target.provider, status)
    : status === 404 && tellsOfPath(parsed, vendors.message)
      ? wrongAddress(target.provider)
      : status === 405
        ? wrongMethod(target.provider)
        : status === 403 && text.trimStart().startsWith('<')
          ? blocked(target.provider)
          : aboutTools(target, vendorError(target.profile, vendors));
  recorded?.end(meaning);
  onText?.(text);
  const remedy = remedyForStatus(status, meaning, headers);
  const names = { asked: request.model, route: attempt.routeName };
  const error = aboutModel(target, names, aboutOurKey(target.provider, meaning));
  if (error.code === 'provider_key_refused' && key.label !== undefined) {
    attempt.events?.onKeyRefused(target.provider, key.label, status);
  }
  const resetAfter = status === 429 ? resetAfterOf(headers) : undefined;
  const repeats = repeatsRequest(meaning, words, status);
  const failure: FailedOutcome = {
    ...{ kind: 'failed', error, remedy, target, notes, resetAfter, repeats },
  };
  // A redirect stays here: a client that followed it would send its key and its request to that place.
  // SDKs look for the object `error`; of other forms they show the status alone.
  const isOwn = isObject(parsed) && isObject(parsed.error);
  const same = protocol === request.protocol && error === vendors && isOwn;
  if (!same || !hasKnownWords(request.protocol, error)) return failure;
  const own = text === sent ? withoutByteOrderMark(bytes) : new TextEncoder().encode(text);
  return { ...failure, raw: { status, headers, body: own } };
}

/** A whole error answer as its client may get it: without this gateway's credentials, and none about their own key. */
export function refusalError(
  protocol: Codec,
  { provider, profile }: RefusedAttempt['routed']['target'],
  { status, headers, bytes }: Pick<UpstreamAnswer, 'status' | 'headers'> & { bytes: Uint8Array },
  secrets: readonly string[],
): GatewayError {
  const text = maskLiterals(new TextDecoder().decode(bytes), secrets);
  const vendors = maskedError(protocol.decodeError(status, text, headers), secrets);
  return aboutOurKey(provider, vendorError(profile, vendors));
}

/** Clients begin to compact by one code or message, which not every vendor of their protocol sends. */
function hasKnownWords(protocol: Codec, error: GatewayError): boolean {
  if (error.kind !== 'context_overflow') return true;
  const { body } = protocol.encodeError(error, '');
  const own = isObject(body.error) ? body.error : {};
  return own.message === error.message && (own.code ?? error.code) === error.code;
}

/** What has come of an error answer when it ends, breaks off, falls silent or takes too long. */
async function readError(body: ResponseBody, idleMs: number): Promise<Uint8Array> {
  const idle = startIdleTimer(idleMs, () => body.cancel());
  const late = startIdleTimer(ERROR_MS, () => body.cancel());
  const pieces = new Pieces();
  try {
    await readFirst(body, ERROR_BODY_BYTES, (chunk) => {
      idle.touch();
      pieces.push(chunk);
    });
  } catch {
    // An incomplete error is still that error.
  }
  idle.stop();
  late.stop();
  return pieces.joined();
}
