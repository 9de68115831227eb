/** The list of models, in the dialect of the client: `GET /v1/models` and `/v1/models/NAME`. */

import { Elysia } from 'elysia';
import type { Codec, ModelEntry } from '../codecs/codec.ts';
import { GatewayError, invalid } from '../conversation/errors.ts';
import type { Principal } from '../keys/principal.ts';
import type { RequestContext } from '../lib/http/routes.ts';
import type { JsonObject } from '../lib/json/json.ts';
import { percentDecoded, printableLine } from '../lib/text/printable-text.ts';
import type { ErrorResponses } from './errors.ts';
import { json } from './own-routes.ts';
import { localUrl } from './request-path.ts';

export interface ModelsOptions {
  readonly errors: ErrorResponses;
  /** All that the principal may use and that can be listed; vendors are asked for theirs, with a short deadline. */
  readonly models: (principal: Principal, headers: Headers) => Promise<readonly ModelEntry[]>;
  /** The list as Codex takes it. */
  readonly codexModels: (models: readonly ModelEntry[]) => JsonObject;
  /** A name that some route takes for the principal, listed or not. */
  readonly model: (id: string, principal: Principal) => ModelEntry | undefined;
}

/** Such a path is a request to a model, whatever routes take every name. */
const GEMINI_METHOD = /:(?:generateContent|streamGenerateContent|countTokens)$/;

/** The path with and without `/v1`, and Google's with its versions. */
export function modelsPlugin({ errors, models, codexModels, model }: ModelsOptions) {
  const list = ({ request }: RequestContext) =>
    errors.guarded(request, async (principal) => {
      const codec = errors.codecOf(request);
      const all = await models(principal, request.headers);
      const query = localUrl(request.url).searchParams;
      if (query.has('client_version')) return tagged(request, codexModels(all));
      if (errors.isAnthropic(request)) return json(pageOf(all, query, codec));
      return json(
        errors.isGoogle(request) ? tokenPage(all, query, codec) : codec.encodeModels(all),
      );
    });
  const one = ({ request, params }: RequestContext & { params: { readonly '*': string } }) =>
    errors.guarded(request, async (principal) => {
      const written = params['*'];
      const name = percentDecoded(written);
      if (GEMINI_METHOD.test(name)) return errors.methodNotAllowed(request, ['POST']);
      const found =
        model(name, principal) ??
        model(written, principal) ??
        (await models(principal, request.headers)).find(({ id }) => id === name);
      if (found === undefined) {
        throw new GatewayError(
          'not_found',
          `The model '${printableLine(name, 200)}' does not exist here.`,
          { code: 'model_not_found', param: 'model' },
        );
      }
      const { data, models: own } = errors.codecOf(request).encodeModels([found]);
      const list = data ?? own;
      return json(Array.isArray(list) ? list[0] : found);
    });
  return new Elysia({ name: 'models' })
    .get('/v1/models', list)
    .get('/models', list)
    .get('/v1/models/*', one)
    .get('/models/*', one)
    .get('/v1beta/models', list)
    .get('/v1beta/models/*', one)
    .get('/v1beta1/models', list)
    .get('/v1beta1/models/*', one);
}

/** An answer with an `ETag`, or 304 where the client has it already (RFC 9110 §13.1.2). */
function tagged({ headers }: Request, body: JsonObject): Response {
  const text = JSON.stringify(body);
  const etag = `"${Bun.hash(text).toString(36)}"`;
  const known = headers.get('if-none-match') ?? '';
  const isKnown =
    known === '*' || known.split(',').some((one) => one.trim().replace(/^W\//, '') === etag);
  return isKnown
    ? new Response(null, { status: 304, headers: { etag } })
    : new Response(text, { headers: { 'content-type': 'application/json', etag } });
}

/**
 * Messages' list of models: all of them, or the page that `limit`, `after_id` and `before_id` name
 * (https://docs.anthropic.com/en/api/models-list).
 * @throws GatewayError invalid_request
 */
function pageOf(models: readonly ModelEntry[], query: URLSearchParams, codec: Codec): JsonObject {
  const text = query.get('limit');
  const limit = text === null ? models.length : Number(text);
  if (text !== null && !(Number.isInteger(limit) && limit >= 1 && limit <= 1000)) {
    throw invalid("'limit' must be a whole number from 1 to 1000.", 'limit');
  }
  const indexOf = (name: string): number | undefined => {
    const id = query.get(name);
    if (id === null) return undefined;
    const index = models.findIndex((model) => model.id === id);
    if (index < 0) throw invalid(`'${name}' is not the id of a model here.`, name);
    return index;
  };
  const after = indexOf('after_id');
  const before = indexOf('before_id');
  if (after !== undefined && before !== undefined) {
    throw invalid("'after_id' and 'before_id' exclude each other.", 'before_id');
  }
  // Backwards, a page ends right before the model that is named.
  const start = before === undefined ? (after ?? -1) + 1 : Math.max(0, before - limit);
  const end = before ?? Math.min(models.length, start + limit);
  const page = codec.encodeModels(models.slice(start, end));
  return { ...page, has_more: before === undefined ? end < models.length : start > 0 };
}

/**
 * Gemini's list of models: all of them, or the page of `pageSize` from `pageToken` on
 * (https://ai.google.dev/api/models#method:-models.list).
 * @throws GatewayError invalid_request
 */
function tokenPage(
  models: readonly ModelEntry[],
  query: URLSearchParams,
  codec: Codec,
): JsonObject {
  const size = query.get('pageSize') ?? query.get('page_size');
  const token = query.get('pageToken') ?? query.get('page_token') ?? '';
  const most = size === null || size === '' ? models.length : Number(size);
  if (!(Number.isInteger(most) && most >= 0))
    throw invalid("'pageSize' must be a whole number.", 'page_size');
  const start = token === '' ? 0 : Number(token);
  if (!(Number.isInteger(start) && start >= 0 && start <= models.length)) {
    throw invalid("'pageToken' is not one of this list.", 'page_token');
  }
  // 0 stands for the server's own choice.
  const end = most === 0 ? models.length : Math.min(models.length, start + most);
  const page = codec.encodeModels(models.slice(start, end));
  return end < models.length ? { ...page, nextPageToken: String(end) } : page;
}
