/** The routes of Gemini: generateContent, streamGenerateContent, countTokens and the methods for vectors, also in the form of Vertex. */

import { Elysia } from 'elysia';
import { GatewayError } from '../../conversation/errors.ts';
import { SseParser } from '../../lib/bytes/sse.ts';
import { RAW, type RequestContext } from '../../lib/http/routes.ts';
import type { Codec, EmbedMethod } from '../codec.ts';
import type { Asked, Serve } from '../serve.ts';
import { addressOf, isEmbedMethod, queryOf, withAddress } from './address.ts';
import { googleGemini } from './index.ts';

export interface GeminiOptions {
  readonly serve: Serve;
  /** Answers `{totalTokens}`, from the upstream where it can count, else estimated. */
  readonly countTokens: Serve;
  /** Answers with vectors, in the form of the method. */
  embed(request: Request, codec: Codec, asked: Asked, method: EmbedMethod): Promise<Response>;
  readonly errors: { response(request: Request, thrown: unknown): Response };
}

/** Where the API is: by version, and at Vertex behind a project and a place, which its clients with API keys leave out. */
const VERSIONS = ['/v1beta', '/v1', '/v1beta1', '/v1alpha'];
const EXPRESS = '/publishers/:publisher';
const PLACES = ['', EXPRESS, `/projects/:project/locations/:location${EXPRESS}`];

/** `POST …/models/MODEL:METHOD`. A model's name may hold slashes, so the whole rest of the path is read here. */
export function geminiPlugin({ serve, countTokens, embed, errors }: GeminiOptions) {
  const call = async ({ request }: RequestContext) => {
    const { path, search } = partsOf(request.url);
    const address = addressOf(path);
    const method = address?.method;
    if (address === undefined || method === undefined) {
      return errors.response(request, notServed(address?.asked ?? ''));
    }
    const { model } = address;
    const { sse, key, rest } = queryOf(search);
    const stream = method === 'streamGenerateContent';
    const asked: Asked = {
      body: (bytes) => withAddress(bytes, model, stream),
      search: rest,
      key,
    };
    if (isEmbedMethod(method)) return embed(request, googleGemini, asked, method);
    if (method === 'countTokens') return countTokens(request, googleGemini, asked);
    const response = await serve(request, googleGemini, asked);
    return stream && !sse ? asJsonArray(response) : response;
  };
  const app = new Elysia({ name: 'gemini' });
  for (const version of VERSIONS) {
    for (const place of PLACES) app.post(`${version}${place}/models/*`, call, RAW);
  }
  return app;
}

function notServed(method: string): GatewayError {
  const words =
    method === ''
      ? 'The path names no method: use …/models/MODEL:generateContent, :streamGenerateContent or :countTokens.'
      : `The method ${method.slice(0, 100)} is not served here; there are generateContent, streamGenerateContent, countTokens, embedContent, batchEmbedContents and predict (for embeddings).`;
  return new GatewayError('not_found', words, { code: 'unknown_path', retryable: false });
}

/** The path and the query of a URL, whatever host it names. */
function partsOf(url: string): { readonly path: string; readonly search: string } {
  const scheme = url.indexOf('://');
  const slash = url.startsWith('/') ? 0 : url.indexOf('/', scheme < 0 ? 0 : scheme + 3);
  const target = slash < 0 ? '/' : url.slice(slash);
  const end = target.search(/[?#]/);
  if (end < 0) return { path: target, search: '' };
  const hash = target.indexOf('#');
  const last = hash < 0 ? target.length : hash;
  return { path: target.slice(0, end), search: target.slice(end, last) };
}

/**
 * The array as it grows. Keep-alives become white space. An error, which is the last chunk, is the last element:
 * then the array is closed, but the connection is reset all the same.
 */
class JsonArrayWriter {
  readonly #parser = new SseParser({ raw: false });
  #count = 0;

  push(bytes: Uint8Array): string {
    let out = '';
    for (const { data } of this.#parser.push(bytes)) {
      if (data === undefined || data === '') continue;
      out += this.#count++ === 0 ? `[${data}` : `,\r\n${data}`;
    }
    return out === '' ? '\n' : out;
  }

  end(): string {
    let out = '';
    for (const { data } of this.#parser.end()) {
      if (data === undefined || data === '') continue;
      out += this.#count++ === 0 ? `[${data}` : `,\r\n${data}`;
    }
    return `${out}${this.#count === 0 ? '[' : '\r\n'}]`;
  }
}

/** The response of a stream as a JSON array, sent on as it comes; any other response as it is. */
function asJsonArray(response: Response): Response {
  const { body, headers, status } = response;
  if (body === null || !headers.get('content-type')?.includes('event-stream')) return response;
  const reader = body.getReader();
  const writer = new JsonArrayWriter();
  const utf8 = new TextEncoder();
  const array = new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        try {
          const { done, value } = await reader.read();
          if (!done) {
            controller.enqueue(utf8.encode(writer.push(value)));
            return;
          }
          controller.enqueue(utf8.encode(writer.end()));
          controller.close();
        } catch (thrown) {
          // The connection is reset, so that no client takes a cut answer for a whole one.
          controller.error(thrown);
        }
      },
      cancel: (reason) => reader.cancel(reason),
    },
    { highWaterMark: 0 },
  );
  const own = new Headers(headers);
  own.set('content-type', 'application/json; charset=utf-8');
  return new Response(array, { status, headers: own });
}
