/** Errors of the platforms as Anthropic writes them, so that a Messages client reads them like any other. */

import { FlatHeaders, type ReadonlyHeaders } from '../../lib/http/headers.ts';
import { isObject, type Json, type JsonObject, tryParse } from '../../lib/json/json.ts';
import { memberOf } from '../../lib/json/json-members.ts';
import { fetchedSecrets, maskLiterals, secretLiterals } from '../../lib/text/secret-literals.ts';
import { type ChunkSink, collect, type ResponseBody, type UpstreamAnswer } from '../transport.ts';

/** An error of a platform, in its own words. */
export interface PlatformError {
  readonly message: string;
  /** Its own name of the error: `ThrottlingException`, `RESOURCE_EXHAUSTED`. */
  readonly code: string | undefined;
}

/** Anthropic's names for errors, by those of Google and AWS. */
const TYPES: Readonly<Record<string, string>> = {
  INVALID_ARGUMENT: 'invalid_request_error',
  FAILED_PRECONDITION: 'invalid_request_error',
  OUT_OF_RANGE: 'invalid_request_error',
  UNAUTHENTICATED: 'authentication_error',
  PERMISSION_DENIED: 'permission_error',
  NOT_FOUND: 'not_found_error',
  RESOURCE_EXHAUSTED: 'rate_limit_error',
  DEADLINE_EXCEEDED: 'timeout_error',
  UNAVAILABLE: 'overloaded_error',
  ValidationException: 'invalid_request_error',
  AccessDeniedException: 'permission_error',
  UnrecognizedClientException: 'authentication_error',
  InvalidSignatureException: 'authentication_error',
  IncompleteSignatureException: 'authentication_error',
  MissingAuthenticationTokenException: 'authentication_error',
  ExpiredTokenException: 'authentication_error',
  ResourceNotFoundException: 'not_found_error',
  ThrottlingException: 'rate_limit_error',
  ServiceQuotaExceededException: 'rate_limit_error',
  ModelNotReadyException: 'overloaded_error',
  ModelTimeoutException: 'timeout_error',
  ServiceUnavailableException: 'overloaded_error',
};

const BY_STATUS: Readonly<Record<string, string>> = {
  '400': 'invalid_request_error',
  '401': 'authentication_error',
  '403': 'permission_error',
  '404': 'not_found_error',
  '413': 'request_too_large',
  '429': 'rate_limit_error',
  '503': 'overloaded_error',
};

/** @param status of the answer; undefined: in a stream */
export const messagesError = (
  { message, code }: PlatformError,
  status: number | undefined,
): JsonObject => {
  const type =
    (code === undefined ? undefined : memberOf(TYPES, code)) ??
    memberOf(BY_STATUS, String(status)) ??
    'api_error';
  return { type: 'error', error: { type, message, ...(code !== undefined && { code }) } };
};

// The platform wraps what the model's own server said.
const WRAPPED = /^The model returned the following errors: /;

/** The error in a body; undefined for what Anthropic wrote itself, or is none. */
export function platformError(
  body: Json | undefined,
  headers: ReadonlyHeaders,
): PlatformError | undefined {
  // Google sends a list where it was asked for a stream.
  const value = Array.isArray(body) ? body[0] : body;
  if (!isObject(value) || value.type === 'error') return undefined;
  const { error } = value;
  if (isObject(error)) {
    const { message, status } = error;
    if (typeof message !== 'string') return undefined;
    const code = typeof status === 'string' ? status : undefined;
    return { message, code };
  }
  const message = value.message ?? value.Message;
  if (typeof message !== 'string') return undefined;
  const named = headers.get('x-amzn-errortype') ?? value.__type;
  const code = typeof named === 'string' ? exceptionName(named) : undefined;
  return { message: message.replace(WRAPPED, ''), code };
}

/** `com.amazon.coral#ThrottlingException:http://…` and `throttlingException` are `ThrottlingException`. */
export function exceptionName(named: string): string {
  const name = named.split(':')[0]!.split('#').at(-1)!;
  return name.charAt(0).toUpperCase() + name.slice(1);
}

const MAX_BYTES = 1024 * 1024;

/**
 * An answer with an error, in Anthropic's form; what is none of the platform's stays as it is. What was fetched is masked: AWS
 * quotes the whole signed request, its session token included, where a signature is wrong.
 */
export function errorAnswer(answer: UpstreamAnswer): UpstreamAnswer {
  const { status } = answer;
  const headers = FlatHeaders.from(answer.headers).where((name) => name !== 'content-length');
  const literals = secretLiterals(fetchedSecrets());
  const map = (bytes: Uint8Array): Uint8Array => {
    const sent = new TextDecoder().decode(bytes);
    const text = maskLiterals(sent, literals);
    const error = platformError(tryParse(text), headers);
    if (error !== undefined) return Buffer.from(JSON.stringify(messagesError(error, status)));
    return text === sent ? bytes : Buffer.from(text);
  };
  return { ...answer, headers, body: new MappedBody(answer.body, MAX_BYTES, map) };
}

/** A small body that is changed as a whole. */
export class MappedBody implements ResponseBody {
  #done = false;

  constructor(
    private readonly body: ResponseBody,
    private readonly most: number,
    private readonly map: (bytes: Uint8Array) => Uint8Array,
  ) {}

  async read(): Promise<readonly Uint8Array[] | undefined> {
    if (this.#done) return undefined;
    this.#done = true;
    return [this.map(await collect(this.body, this.most))];
  }

  async pipe(sink: ChunkSink): Promise<void> {
    for (const chunk of (await this.read()) ?? []) await sink.write(chunk);
  }

  readAll(most = Number.POSITIVE_INFINITY): Promise<Uint8Array> {
    return collect(this, most);
  }

  takeActivity(): boolean {
    return this.body.takeActivity();
  }

  cancel(): void {
    this.body.cancel();
  }
}
