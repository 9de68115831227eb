/** What an error means by the vendor's own code, where its profile knows that better than the protocol does. */

import { type ErrorDetails, type ErrorKind, GatewayError } from '../conversation/errors.ts';
import type { Profile } from '../conversation/target.ts';
import { tryParse } from '../lib/json/json.ts';
import { memberOf } from '../lib/json/json-members.ts';
import { maskLiterals } from '../lib/text/secret-literals.ts';

/**
 * The error with the kind (and the word on retrying) that the profile gives its code or its words; the same
 * error when the profile knows neither, or the vendor's headers already forbade or asked for a
 * retry of the same kind. Message and everything else stay the vendor's; the status does not where a request's
 * fault was reported as the server's.
 */
export function vendorError(profile: Profile, error: GatewayError): GatewayError {
  const known = error.fromUpstream ? knownError(profile, error) : undefined;
  if (known === undefined) return error;
  const retryable = known.retryable ?? error.retryable;
  if (known.kind === error.kind && retryable === error.retryable) return error;
  const status = known.kind === 'invalid_request' && error.status >= 500 ? undefined : error.status;
  return copied(error, known.kind, error.message, { status, retryable });
}

function knownError({ errors, errorWords }: Profile, { code, message }: GatewayError) {
  const byCode = code !== undefined && errors !== undefined ? memberOf(errors, code) : undefined;
  if (byCode !== undefined || errorWords === undefined) return byCode;
  const start = message.slice(0, SEARCHED_CHARS).toLowerCase();
  for (const words in errorWords) if (start.includes(words.toLowerCase())) return errorWords[words];
  return undefined;
}

// What an error is about stands at its beginning; templates quote themselves behind it.
const SEARCHED_CHARS = 4000;

/**
 * The vendor refused the gateway's key: reported as a fault behind the gateway, since to the client a 401 in the
 * vendor's words would say that its own key is wrong. Any other error is the same.
 */
export function aboutOurKey(provider: string, error: GatewayError): GatewayError {
  const { kind, fromUpstream, status, message } = error;
  if (!fromUpstream || (kind !== 'authentication' && kind !== 'permission')) return error;
  const what = kind === 'authentication' ? 'refused' : 'does not allow this to';
  const words = `Provider ${provider} ${what} the gateway's own key (${status}), not yours: ${message}`;
  return copied(error, kind, words, {
    status: 502,
    code: 'provider_key_refused',
    retryable: false,
  });
}

/** The error without these secrets in any of its fields; the very error where it holds none. */
export function maskedError(error: GatewayError, literals: readonly string[]): GatewayError {
  const { message, code, param, details } = error;
  const masked = (text: string | undefined) => text && maskLiterals(text, literals);
  const plain = details === undefined ? undefined : JSON.stringify(details);
  const safe = { code: masked(code), param: masked(param) };
  const words = maskLiterals(message, literals);
  const same = words === message && safe.code === code && safe.param === param;
  const safeDetails = masked(plain);
  if (same && safeDetails === plain) return error;
  return copied(error, error.kind, words, {
    ...safe,
    ...(safeDetails === plain ? {} : { details: tryParse(safeDetails ?? '') }),
  });
}

function copied(
  error: GatewayError,
  kind: ErrorKind,
  words: string,
  more: ErrorDetails,
): GatewayError {
  // Of an error, the cause alone is no member that a spread takes along.
  return new GatewayError(kind, words, { ...error, cause: error.cause, ...more });
}
