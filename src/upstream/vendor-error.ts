/** The meaning of an error by the vendor's own code, where its profile knows that better than the protocol does. */

import { type ErrorDetails, type ErrorKind, GatewayError } from '../conversation/errors.ts';
import type { Profile } from '../conversation/profile-facts.ts';
import { refusesTools, SEARCHED_CHARS } from '../conversation/refusal/refused-tools.ts';
import type { Target } from '../conversation/target.ts';
import { tryParse } from '../lib/json/json.ts';
import { memberOf } from '../lib/json/json-members.ts';
import { maskLiterals } from '../lib/text/secret-literals.ts';
import { saysModelIsGone } from '../vendors/errors/kind-of-words.ts';
import { TargetError } from './target-error.ts';

/**
 * The error with the kind (and the word on retrying) that the profile gives its code or its words; the same
 * error when the profile knows neither, or the vendor's headers already forbade or asked for a
 * retry of the same kind. Message and everything else stay the vendor's; the status does not where it says
 * something else than the kind.
 */
export function vendorError(profile: Profile, error: GatewayError): GatewayError {
  if (!error.fromUpstream) return error;
  const found = knownError(profile, error);
  const known = found !== undefined && saysMore(found.kind, error) ? found : undefined;
  const kind = known?.kind ?? error.kind;
  const retryable = known?.retryable ?? error.retryable;
  const misleads = MISLEADING[kind]?.(error.status) === true;
  if (kind === error.kind && retryable === error.retryable && !misleads) return error;
  const status = misleads ? undefined : error.status;
  return copied(error, kind, error.message, { status, retryable });
}

/**
 * Statuses by which clients would blame their key, or wait and ask again, for what only another request mends; or
 * would not ask again what passes by itself.
 */
const MISLEADING: Partial<Record<ErrorKind, (status: number) => boolean>> = {
  invalid_request: (status) => status >= 500 || status === 401 || status === 403,
  too_large: (status) => status === 429,
  upstream: (status) => status === 424 || status === 499,
  overloaded: (status) => status === 425,
  timeout: (status) => status === 499,
};

/**
 * Does the profile's kind say more than what the codec read from the words? What is about the request's own content
 * stays, and a code that says no more than "invalid" names no other reason than the words do.
 */
function saysMore(kind: ErrorKind, { kind: read }: GatewayError): boolean {
  if (read === 'context_overflow' || read === 'content_filter') return false;
  return kind !== 'invalid_request' || VAGUE.has(read);
}

/** Kinds that the status gives, and no word. */
const VAGUE: ReadonlySet<ErrorKind> = new Set([
  'invalid_request',
  'upstream',
  'overloaded',
  'timeout',
  'conflict',
  'rate_limit',
]);

function knownError({ errors, errorWords }: Profile, { code, message }: GatewayError) {
  const byCode = code !== undefined && errors !== undefined ? memberOf(errors, code) : undefined;
  if (byCode !== undefined || errorWords === undefined) return byCode;
  const start = message.slice(0, SEARCHED_CHARS).toLowerCase();
  for (const words in errorWords) if (start.includes(words.toLowerCase())) return errorWords[words];
  return undefined;
}

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

/** The names by which a request came to its target. */
export interface NamesOfRequest {
  /** As the client wrote it. */
  readonly asked?: string | undefined;
  readonly route?: string | undefined;
}

/**
 * The vendor does not have the model: said with the names that the user knows, since most vendors do not even repeat
 * the one that they were sent. Any other error is the same.
 */
export function aboutModel(
  { provider, model }: Pick<Target, 'provider' | 'model'>,
  { asked, route }: NamesOfRequest,
  error: GatewayError,
): GatewayError {
  if (error.kind !== 'not_found' || !error.fromUpstream || !saysModelIsGone(error)) return error;
  const own = asked !== undefined && asked !== model && asked !== `${provider}/${model}`;
  const names = [
    ...(own ? [`asked for ${asked}`] : []),
    ...(route === undefined ? [] : [`route "${route}"`]),
  ].join('; ');
  const where = names === '' ? '' : ` (${names})`;
  const words = `Provider ${provider} has no model "${model}"${where}: ${error.message}`;
  return copied(error, error.kind, words, {});
}

/** The address stays out of the message: a vendor's `Location` may hold a key or a signature. */
export const redirected = (provider: string, status: number): GatewayError =>
  new GatewayError(
    'upstream',
    `Provider ${provider} answered with a redirect (${status}), which is not followed. Its base_url is probably wrong.`,
  );

/** A page or a plain text is of what stands at that address: an API says in JSON what it does not have. */
export const wrongAddress = (provider: string): GatewayError =>
  new TargetError(
    'next-target',
    'upstream',
    `Provider ${provider} answered 404 without an error of an API. Its base_url is probably wrong, or its protocol, or it has no such endpoint.`,
    { retryable: false },
  );

/** The method is this gateway's: what takes another one is no endpoint of an API. */
export const wrongMethod = (provider: string): GatewayError =>
  new TargetError(
    'next-target',
    'upstream',
    `Provider ${provider} does not take requests at this address (405). Its base_url is probably wrong, or it has no such endpoint.`,
    { retryable: false },
  );

/** A page with a 403 is of what stands before the API: the key is not at fault. */
export const blocked = (provider: string): GatewayError =>
  new TargetError(
    'next-target',
    'upstream',
    `Provider ${provider} answered 403 with a web page. What stands before it (Cloudflare, a firewall, a proxy) refuses this gateway, not its key.`,
    { retryable: false },
  );

/**
 * The model takes no tools: another one may, so the next target is asked, and the client reads which model it is. Any
 * other error is the same.
 */
export function aboutTools(
  { provider, model }: Pick<Target, 'provider' | 'model'>,
  error: GatewayError,
) {
  if (!refusesTools(error)) return error;
  const { fromUpstream, message, code, details } = error;
  const said = `The model "${model}" of provider ${provider} takes no tools: ${message}`;
  return new TargetError('next-target', 'invalid_request', said, {
    status: 400,
    code,
    details,
    fromUpstream,
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
