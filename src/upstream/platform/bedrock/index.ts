/** Amazon Bedrock: Claude in AWS' envelope, signed, its binary streams as server-sent events. */

import type { BedrockConfig } from '../../../config/sections/platform/index.ts';
import type { ProviderConfig } from '../../../config/sections/providers.ts';
import { FlatHeaders, type ReadonlyHeaders } from '../../../lib/http/headers.ts';
import { isObject, tryParse } from '../../../lib/json/json.ts';
import { unlessAborted } from '../../../lib/loop/abort.ts';
import { withMore } from '../../request-headers.ts';
import {
  type Transport,
  type UpstreamAnswer,
  type UpstreamRequest,
  wholeBody,
} from '../../transport.ts';
import { errorAnswer, exceptionName, MappedBody } from '../error-answer.ts';
import { MODEL_AND_STREAM, modelIn, platformBody } from '../messages-request.ts';
import type { Platform, PlatformRequest } from '../platform.ts';
import { noted, Renewed } from '../renewed.ts';
import { type AwsIdentity, fetchAwsIdentity } from './credentials.ts';
import { EventStreamBody } from './event-stream.ts';
import { signed } from './sign.ts';

const VERSION = 'bedrock-2023-05-31';
const EVENT_STREAM = 'application/vnd.amazon.eventstream';
const BETA = 'anthropic-beta';

/** Refusals of credentials that new ones may get past. */
const STALE: ReadonlySet<string> = new Set([
  'ExpiredTokenException',
  'UnrecognizedClientException',
]);
const REFUSED_DATE = 'InvalidSignatureException';
/** A clock that is further off is not believed. */
const SKEW_MS = 4 * 60_000;

export class Bedrock implements Platform {
  readonly #region: string;
  readonly #frameBytes: number;
  readonly #identities: Renewed<AwsIdentity>;
  /** Of AWS' clock over this machine's, in milliseconds. */
  #skewMs = 0;

  constructor(
    config: ProviderConfig,
    platform: BedrockConfig,
    private readonly transport: Transport,
  ) {
    this.#region = platform.region;
    this.#frameBytes = config.answers.frameBytes;
    this.#identities = new Renewed(
      noted(
        config.name,
        () => fetchAwsIdentity(config.name, platform, transport),
        ({ secretAccessKey, sessionToken }) => [secretAccessKey, sessionToken],
      ),
    );
  }

  async authorize(): Promise<string> {
    return `credentials of the access key ${(await this.#identities.get()).accessKeyId}`;
  }

  async send(asked: PlatformRequest): Promise<UpstreamAnswer> {
    const request = bedrockRequest(asked);
    // A key of Bedrock's own needs no signature.
    const isKey = request.headers.has('authorization');
    const answer = isKey
      ? await this.#sent(asked, request, request.headers)
      : await this.#sendSigned(asked, request);
    return isCount(asked) ? countAnswer(answer) : answer;
  }

  async #sendSigned(asked: PlatformRequest, request: UpstreamRequest): Promise<UpstreamAnswer> {
    const { url, method, abort } = request;
    const body = wholeBody(request);
    for (let first = true; ; first = false) {
      const held = this.#identities.get();
      const identity = held instanceof Promise ? await unlessAborted(held, abort.signal) : held;
      const headers = await signed(method, url, request.headers, body, {
        identity,
        region: this.#region,
        service: 'bedrock',
        date: new Date(Date.now() + this.#skewMs),
      });
      const answer = await this.#sent(asked, request, headers);
      if (!this.#mayPassNext(answer, identity) || !first) return answer;
      answer.body.cancel();
    }
  }

  /** Was this refused for credentials that are replaced now, or for a clock that is set right now? */
  #mayPassNext({ status, headers }: UpstreamAnswer, identity: AwsIdentity): boolean {
    if (status !== 403 && status !== 401 && status !== 400) return false;
    const code = exceptionName(headers.get('x-amzn-errortype') ?? '');
    if (STALE.has(code)) {
      this.#identities.discard(identity);
      return true;
    }
    const theirs = Date.parse(headers.get('date') ?? '');
    if (code !== REFUSED_DATE || Number.isNaN(theirs)) return false;
    const skewMs = theirs - Date.now();
    if (Math.abs(skewMs - this.#skewMs) < SKEW_MS) return false;
    this.#skewMs = skewMs;
    return true;
  }

  async #sent(
    { onSend }: PlatformRequest,
    request: UpstreamRequest,
    headers: ReadonlyHeaders,
  ): Promise<UpstreamAnswer> {
    onSend?.(request.url, withMore(headers, request.ownHeaders));
    const answer = await this.transport({ ...request, headers });
    if (answer.status >= 400) return errorAnswer(answer);
    const type = answer.headers.get('content-type') ?? '';
    if (!type.includes(EVENT_STREAM)) return answer;
    const list = FlatHeaders.from(answer.headers).where((name) => name !== 'content-length');
    list.set('content-type', 'text/event-stream');
    return { ...answer, headers: list, body: new EventStreamBody(answer.body, this.#frameBytes) };
  }
}

const isCount = ({ path }: PlatformRequest): boolean => path.endsWith('/count_tokens');

// Counting takes the model itself, not the inference profile of a geography.
const GEOGRAPHY = /^(?:[a-z]{2,6}|us-gov)\.(?=anthropic\.)/;

/** The wire of https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_InvokeModel.html. */
function bedrockRequest(asked: PlatformRequest): UpstreamRequest {
  const { url, request, stream } = asked;
  const body = wholeBody(request);
  const given = FlatHeaders.from(request.headers);
  const headers = given.where((name) => !name.startsWith('anthropic-'));
  if (body === undefined) return { ...request, headers };
  const model = modelIn(body);
  const betas = given
    .get(BETA)
    ?.split(',')
    .map((flag) => flag.trim());
  const added = { anthropic_version: VERSION, anthropic_beta: betas };
  const invoked = platformBody(body, MODEL_AND_STREAM, added);
  if (isCount(asked)) {
    const id = encodeURIComponent(model.replace(GEOGRAPHY, ''));
    const counted = withOutputCap(invoked);
    const input = { invokeModel: { body: Buffer.from(counted).toString('base64') } };
    headers.set('accept', 'application/json');
    return {
      ...request,
      url: url(`/model/${id}/count-tokens`, false),
      headers,
      body: Buffer.from(JSON.stringify({ input })),
    };
  }
  headers.set('accept', stream ? EVENT_STREAM : 'application/json');
  const method = stream ? 'invoke-with-response-stream' : 'invoke';
  return {
    ...request,
    url: url(`/model/${encodeURIComponent(model)}/${method}`, false),
    headers,
    body: invoked,
  };
}

/** What is counted must be a request that could be sent. */
const withOutputCap = (body: Uint8Array): Uint8Array =>
  platformBody(body, new Set(), { max_tokens: 1 });

const COUNT_BYTES = 64 * 1024;
/** Not every model can be counted: the gateway then counts by itself, as where there is no such path. */
const UNCOUNTED = 404;

function countAnswer(answer: UpstreamAnswer): UpstreamAnswer {
  if (answer.status === 400) return { ...answer, status: UNCOUNTED };
  if (answer.status !== 200) return answer;
  const headers = FlatHeaders.from(answer.headers).where((name) => name !== 'content-length');
  const map = (bytes: Uint8Array): Uint8Array => {
    const value = tryParse(new TextDecoder().decode(bytes));
    const tokens = isObject(value) ? value.inputTokens : undefined;
    return typeof tokens === 'number'
      ? Buffer.from(JSON.stringify({ input_tokens: tokens }))
      : bytes;
  };
  return { ...answer, headers, body: new MappedBody(answer.body, COUNT_BYTES, map) };
}
