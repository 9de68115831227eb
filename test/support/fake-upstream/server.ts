/** The fake vendor: an HTTP server that checks requests as strictly as the real ones and answers by script. */

import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { JsonObject } from '../../../src/lib/json/json.ts';
import { type Delivery, type FakeProtocol, type Step, say } from './answer.ts';
import { checkAuth } from './check-auth.ts';
import { checkChat } from './check-chat.ts';
import { checkGemini } from './check-gemini.ts';
import { checkMessages } from './check-messages.ts';
import { checkResponses } from './check-responses.ts';
import type { Strictness } from './check-schema.ts';
import { type Plan, type Progress, planStream, planWhole, play } from './deliver.ts';
import { errorBody, isRecord, Refusal } from './refusal.ts';
import type { Render } from './render.ts';
import { renderChat } from './render-chat.ts';
import { renderGemini } from './render-gemini.ts';
import { renderMessages } from './render-messages.ts';
import { renderResponses } from './render-responses.ts';
import { scenario } from './scenarios.ts';

/** One request as received, and its outcome. */
export interface Received extends Progress {
  method: string;
  path: string;
  query: string;
  /** Undefined for paths outside the protocols (models, unknown ones). */
  protocol?: FakeProtocol;
  headers: Record<string, string>;
  bytes: Uint8Array;
  /** The parsed body; {} if it is not an object. */
  body: JsonObject;
  /** performance.now() after the body was read. */
  at: number;
  status?: number;
  /** The vendor's message, when the checks refused the request. */
  refused?: string;
  /** Resolves when the answer is over, in any way. */
  over: Promise<void>;
}

export type Script = (request: Received, n: number) => Step | Promise<Step>;

export interface Options extends Strictness {
  /** Accepted keys; any non-empty one by default. */
  keys?: string[];
  /** Existing models; any by default. */
  models?: string[];
  /** Served protocols; all by default. */
  protocols?: FakeProtocol[];
  script?: Script;
}

export interface FakeUpstream {
  /** `http://127.0.0.1:PORT` */
  readonly origin: string;
  /** The provider's `base_url` for this protocol. */
  baseUrl(protocol: FakeProtocol): string;
  /** Queues steps for the next requests; they take precedence over the script. */
  enqueue(...steps: Step[]): void;
  /** Answers every request without a queued step; `n` counts these from 0. */
  answerWith(script: Script): void;
  /** Every request so far, oldest first. */
  readonly received: readonly Received[];
  /** Requests to one of the protocols' main endpoints. */
  readonly modelRequests: readonly Received[];
  /** The checks' refusals, with the vendor's messages. */
  readonly refusals: readonly string[];
  /** Resolves with the nth (from 0) request to a main endpoint. */
  request(n: number, timeoutMs?: number): Promise<Received>;
  /** Clears requests, queue and script. */
  clear(): void;
  stop(): Promise<void>;
}

const MAIN: Readonly<Record<string, FakeProtocol>> = {
  '/chat/completions': 'openai-chat',
  '/responses': 'openai-responses',
  '/messages': 'anthropic-messages',
  '/messages/count_tokens': 'anthropic-messages',
};
const RENDER: Readonly<Record<FakeProtocol, Render>> = {
  'openai-chat': renderChat,
  'openai-responses': renderResponses,
  'anthropic-messages': renderMessages,
  'google-gemini': renderGemini,
};
const CHECK = {
  'openai-chat': checkChat,
  'openai-responses': checkResponses,
  'anthropic-messages': checkMessages,
  'google-gemini': checkGemini,
} as const;

const GEMINI = /^\/(?:v1beta\/)?models\/(.+):(generateContent|streamGenerateContent|countTokens)$/;

/** What a Gemini request says in its path; undefined for other paths. */
function geminiAddress(path: string): { model: string; stream: boolean } | undefined {
  const [, model, method] = GEMINI.exec(path) ?? [];
  if (model === undefined) return undefined;
  return { model: decodeURIComponent(model), stream: method === 'streamGenerateContent' };
}

async function bodyBytes(request: IncomingMessage): Promise<Uint8Array> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  const bytes = Buffer.concat(chunks);
  const coding = request.headers['content-encoding'];
  if (coding === 'gzip') return Bun.gunzipSync(bytes);
  if (coding === 'zstd') return Bun.zstdDecompressSync(bytes);
  return new Uint8Array(bytes);
}

function parsed(bytes: Uint8Array): JsonObject | undefined {
  try {
    const value: unknown = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes));
    return isRecord(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

/** Starts a fake vendor on a free loopback port. */
export async function startFakeUpstream(options: Options = {}): Promise<FakeUpstream> {
  const received: Received[] = [];
  let queue: Step[] = [];
  let script = options.script;
  let scripted = 0;
  let ids = 0;
  const id = (prefix: string) => prefix + (++ids).toString(36).padStart(24, '0');

  const server = createServer((request, response) => {
    // Connection errors (a peer that left) are recorded by `close`, not thrown.
    request.on('error', () => {});
    response.on('error', () => {});
    handle(request, response).catch((error: unknown) => {
      console.error('fake upstream:', error);
      response.socket?.destroy();
    });
  });

  async function handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    request.socket.setNoDelay(true);
    const url = new URL(request.url ?? '/', 'http://fake');
    const path = url.pathname.replace(/^\/v1(?=\/)/, '');
    const over = Promise.withResolvers<void>();
    const gone = Promise.withResolvers<void>();
    const bytes = await bodyBytes(request);
    const sent = parsed(bytes);
    const address = geminiAddress(path);
    // Scripts and tests read model and stream from the body, as in the other protocols.
    const body = address === undefined ? sent : sent && { ...sent, ...address };
    const record: Received = {
      method: request.method ?? '',
      path: url.pathname,
      query: url.search,
      protocol: address === undefined ? MAIN[path] : 'google-gemini',
      headers: Object.fromEntries(
        Object.entries(request.headers).map(([key, value]) => [key, String(value)]),
      ),
      bytes,
      body: body ?? {},
      at: performance.now(),
      written: 0,
      sent: [],
      over: over.promise,
    };
    response.on('close', () => {
      if (!response.writableEnded && !record.broken) {
        record.abortedAfterMs = performance.now() - record.at;
      }
      gone.resolve();
    });
    received.push(record);
    try {
      await reply(record, body, response, gone.promise);
    } finally {
      over.resolve();
    }
  }

  async function reply(
    record: Received,
    body: JsonObject | undefined,
    response: ServerResponse,
    gone: Promise<void>,
  ): Promise<void> {
    const { protocol } = record;
    const json = (status: number, value: unknown, headers: Record<string, string> = {}) => {
      record.status = status;
      const bytes = new TextEncoder().encode(
        typeof value === 'string' ? value : JSON.stringify(value),
      );
      record.sent.push(bytes);
      response.writeHead(status, { 'content-type': 'application/json', ...headers });
      response.end(bytes);
    };
    if (record.path.endsWith('/models') && record.method === 'GET') {
      const models = options.models ?? ['fake-model'];
      const list = models.map((one) => ({
        id: one,
        object: 'model',
        created: 1_790_000_000,
        owned_by: 'fake',
      }));
      return json(200, { object: 'list', data: list });
    }
    const served = protocol !== undefined && (options.protocols?.includes(protocol) ?? true);
    if (!served || record.method !== 'POST') {
      return json(404, errorBody(protocol ?? 'openai-chat', 404, `Not Found: ${record.path}`));
    }
    const counting = isCount(record.path);
    try {
      checkAuth(protocol, record.headers, options.keys);
      if (body === undefined) throw notJson(protocol);
      CHECK[protocol](body, record.headers, { ...options, counting });
      checkModel(protocol, body, options.models);
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      record.refused = error.message;
      const status = error.more.status ?? 400;
      return json(status, errorBody(protocol, status, error.message, error.more));
    }
    if (counting) {
      const tokens = Math.ceil(record.bytes.length / 4);
      return json(
        200,
        protocol === 'google-gemini' ? { totalTokens: tokens } : { input_tokens: tokens },
      );
    }
    const step = await next(record);
    await perform(step, record, protocol, body!, response, gone, json);
  }

  async function next(record: Received): Promise<Step> {
    const queued = queue.shift();
    if (queued !== undefined) return queued;
    if (script !== undefined) return script(record, scripted++);
    return scenario(String(record.body.model), record) ?? say('Hello from the fake vendor.');
  }

  async function perform(
    step: Step,
    record: Received,
    protocol: FakeProtocol,
    body: JsonObject,
    response: ServerResponse,
    gone: Promise<void>,
    json: (status: number, value: unknown, headers?: Record<string, string>) => void,
  ): Promise<void> {
    const idHeader = protocol === 'anthropic-messages' ? 'request-id' : 'x-request-id';
    const headers = { [idHeader]: id('req_') };
    if ('status' in step && !('raw' in step)) {
      if (step.firstByteMs !== undefined) await Promise.race([Bun.sleep(step.firstByteMs), gone]);
      const failed = step.body ?? errorBody(protocol, step.status);
      return json(step.status, failed, { ...headers, ...step.headers });
    }
    const delivery: Delivery = step.delivery ?? {};
    const status = 'raw' in step ? (step.status ?? 200) : 200;
    record.status = status;
    const run = (plan: Plan) => play(response, status, plan, delivery, headers, record, gone);
    if ('raw' in step) {
      const bytes = typeof step.raw === 'string' ? new TextEncoder().encode(step.raw) : step.raw;
      return run(planWhole(bytes, step.contentType ?? 'text/event-stream', delivery));
    }
    const rendered = RENDER[protocol](step, { model: String(body.model), body, id });
    if (body.stream === true) return run(planStream(rendered, protocol, delivery));
    const bytes = new TextEncoder().encode(JSON.stringify(rendered.json));
    return run(planWhole(bytes, 'application/json', delivery));
  }

  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const requestFor = () =>
    received.filter((one) => one.protocol !== undefined && !isCount(one.path));

  return {
    origin,
    baseUrl: (protocol) => {
      if (protocol === 'anthropic-messages') return origin;
      return protocol === 'google-gemini' ? `${origin}/v1beta` : `${origin}/v1`;
    },
    enqueue: (...steps) => {
      queue.push(...steps);
    },
    answerWith: (next) => {
      script = next;
      scripted = 0;
    },
    received,
    get modelRequests() {
      return requestFor();
    },
    get refusals() {
      return received.flatMap((one) => (one.refused === undefined ? [] : [one.refused]));
    },
    request: async (n, timeoutMs = 4000) => {
      const until = performance.now() + timeoutMs;
      for (;;) {
        const found = requestFor()[n];
        if (found !== undefined) return found;
        if (performance.now() > until) throw new Error(`the vendor got no request number ${n}`);
        await Bun.sleep(5);
      }
    },
    clear: () => {
      received.length = 0;
      queue = [];
      script = options.script;
      scripted = 0;
    },
    stop: async () => {
      server.closeAllConnections();
      await new Promise<void>((resolve) => server.close(() => resolve()));
    },
  };
}

const isCount = (path: string): boolean => /(?:\/count_tokens|:countTokens)$/.test(path);

function notJson(protocol: FakeProtocol): Refusal {
  if (protocol === 'google-gemini') {
    return new Refusal('Invalid JSON payload received. Unexpected end of string.');
  }
  return protocol === 'anthropic-messages'
    ? new Refusal('The request body is not valid JSON.')
    : new Refusal(
        "We could not parse the JSON body of your request. (HINT: This likely means you aren't using your HTTP library correctly. The OpenAI API expects a JSON payload, but what was sent was not valid JSON.)",
      );
}

function checkModel(protocol: FakeProtocol, body: JsonObject, models?: string[]): void {
  const model = String(body.model);
  if (models === undefined || models.includes(model)) return;
  if (protocol === 'anthropic-messages') throw new Refusal(`model: ${model}`, { status: 404 });
  if (protocol === 'google-gemini') {
    const words = `models/${model} is not found for API version v1beta, or is not supported for generateContent.`;
    throw new Refusal(words, { status: 404 });
  }
  if (protocol === 'openai-responses') {
    throw new Refusal(`The requested model '${model}' does not exist.`, {
      param: 'model',
      code: 'model_not_found',
    });
  }
  throw new Refusal(`The model \`${model}\` does not exist or you do not have access to it.`, {
    status: 404,
    code: 'model_not_found',
  });
}
