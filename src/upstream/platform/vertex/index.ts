/** Google Vertex AI: Claude in Google's envelope, Gemini as it is, both with access tokens. */

import type { VertexConfig } from '../../../config/sections/platform/index.ts';
import type { ProviderConfig } from '../../../config/sections/providers.ts';
import { asBuffer, containsAny, needles } from '../../../lib/bytes/bytes.ts';
import { FlatHeaders, type ReadonlyHeaders } from '../../../lib/http/headers.ts';
import { withoutMembers } from '../../../lib/json/body-members.ts';
import { topLevel, tryParse } from '../../../lib/json/json.ts';
import { withMore } from '../../request-headers.ts';
import {
  type Transport,
  type UpstreamAnswer,
  type UpstreamRequest,
  wholeBody,
} from '../../transport.ts';
import { sendWithToken } from '../bearer.ts';
import { errorAnswer } from '../error-answer.ts';
import { MODEL, modelIn, platformBody } from '../messages-request.ts';
import type { Platform, PlatformRequest } from '../platform.ts';
import { noted, Renewed } from '../renewed.ts';
import { fetchGoogleToken, type GoogleToken } from './token.ts';

const VERSION = 'vertex-2023-10-16';
const NONE: ReadonlySet<string> = new Set();
const utf8 = new TextDecoder();

export class Vertex implements Platform {
  readonly #isClaude: boolean;
  readonly #tokens: Renewed<GoogleToken>;

  constructor(
    config: ProviderConfig,
    platform: VertexConfig,
    private readonly transport: Transport,
  ) {
    this.#isClaude = config.protocol === 'anthropic-messages';
    this.#tokens = new Renewed(
      noted(
        config.name,
        () =>
          fetchGoogleToken({
            provider: config.name,
            file: platform.credentialsFile,
            metadata: platform.metadata,
            transport,
          }),
        ({ token }) => [token],
      ),
    );
  }

  async authorize(): Promise<string> {
    return `token of ${(await this.#tokens.get()).account}`;
  }

  async send(asked: PlatformRequest): Promise<UpstreamAnswer> {
    const request = this.#isClaude ? claudeRequest(asked) : geminiRequest(asked);
    return sendWithToken(this.#tokens, request, (headers) => this.#sent(asked, request, headers));
  }

  async #sent(
    { onSend }: PlatformRequest,
    request: UpstreamRequest,
    headers: ReadonlyHeaders,
  ): Promise<UpstreamAnswer> {
    onSend?.(request.url, withMore(headers, request.ownHeaders));
    const answer = await this.transport({ ...request, headers });
    return this.#isClaude && answer.status >= 400 ? errorAnswer(answer) : answer;
  }
}

const TIER: ReadonlySet<string> = new Set(['serviceTier', 'service_tier']);
const NEEDLES = needles('"serviceTier"', '"service_tier"');
const TIERS: ReadonlySet<string> = new Set(['flex', 'priority', 'standard']);
/** https://docs.cloud.google.com/vertex-ai/generative-ai/docs/flex-paygo */
const TIER_HEADER = 'x-vertex-ai-llm-shared-request-type';

/** The tier goes into a header: in the body Vertex ignores or refuses it (github.com/googleapis/python-genai/issues/2847). */
function geminiRequest({ path, url, request }: PlatformRequest): UpstreamRequest {
  const sent = { ...request, url: url(path, true) };
  const body = wholeBody(request);
  if (body === undefined || !containsAny(asBuffer(body), NEEDLES)) return sent;
  const members = topLevel(body, TIER);
  const member = members?.get('serviceTier') ?? members?.get('service_tier');
  if (member === undefined) return sent;
  const bare = { ...sent, body: withoutMembers(body, TIER) };
  const value = tryParse(utf8.decode(body.subarray(member.valueStart, member.valueEnd)));
  const tier = String(value)
    .toLowerCase()
    .replace(/^service_tier_/, '');
  if (!TIERS.has(tier)) return bare;
  const own = FlatHeaders.of({ [TIER_HEADER]: tier });
  return { ...bare, ownHeaders: withMore(request.ownHeaders ?? own, own) };
}

/** The wire of https://docs.cloud.google.com/vertex-ai/generative-ai/docs/partner-models/claude/use-claude. */
function claudeRequest({ path, url, request, stream }: PlatformRequest): UpstreamRequest {
  const body = wholeBody(request);
  const headers = FlatHeaders.from(request.headers).where((name) => name !== 'anthropic-version');
  if (body === undefined) return { ...request, headers };
  const added = { anthropic_version: VERSION };
  if (path.endsWith('/count_tokens')) {
    const counted = url('/models/count-tokens:rawPredict', false);
    return { ...request, url: counted, headers, body: platformBody(body, NONE, added) };
  }
  const method = stream ? 'streamRawPredict' : 'rawPredict';
  // A server that drops ";" and what follows would drop the method.
  const model = encodeURIComponent(modelIn(body)).replaceAll('%40', '@');
  return {
    ...request,
    url: url(`/models/${model}:${method}`, false),
    headers,
    body: platformBody(body, MODEL, added),
  };
}
