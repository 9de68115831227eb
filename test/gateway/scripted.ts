/** A gateway in this process whose upstream answers by script: for tests of the pipeline without sockets. */

import { CODECS } from '../../src/app/codecs.ts';
import { anthropicMessages } from '../../src/codecs/anthropic-messages/index.ts';
import type { Codec } from '../../src/codecs/codec.ts';
import { openaiChat } from '../../src/codecs/openai-chat/index.ts';
import { openaiResponses } from '../../src/codecs/openai-responses/index.ts';
import { environmentFrom } from '../../src/config/environment.ts';
import { parseConfig } from '../../src/config/load.ts';
import type { ProtocolName } from '../../src/conversation/protocol-names.ts';
import type { Feature } from '../../src/features/feature.ts';
import type { Accounts } from '../../src/gateway/account.ts';
import { createGateway } from '../../src/gateway/gateway.ts';
import type { ExchangeFeatures, Gateway, Summary } from '../../src/gateway/types.ts';
import { type Principal, WITHOUT_KEY } from '../../src/keys/principal.ts';
import { routingTable } from '../../src/routing/index.ts';
import { ConcurrencyLimit } from '../../src/upstream/concurrency-limit.ts';
import { answerOf } from '../../src/upstream/fetch-transport.ts';
import type { Transport } from '../../src/upstream/transport.ts';
import { Upstream } from '../../src/upstream/upstream.ts';
import type { SuiteProtocol } from '../support/suite-protocols.ts';

export const PROTOCOLS: Readonly<Record<SuiteProtocol, Codec>> = {
  'anthropic-messages': anthropicMessages,
  'openai-chat': openaiChat,
  'openai-responses': openaiResponses,
};

/**
 * One upstream answer: SSE text in chunks, a JSON body, a status with a body, a body that stalls behind
 * its first words, or a connection error.
 */
export type Scripted =
  | {
      readonly sse: readonly string[];
      readonly cut?: boolean;
      readonly type?: string;
      /** The connection stays open behind it. */
      readonly open?: boolean;
    }
  | { readonly json: unknown; readonly status?: number; readonly headers?: Record<string, string> }
  | { readonly stalls: string; readonly status: number }
  | { readonly refuse: string };

/** The answer `fine` of each protocol. */
export const FINE: Readonly<Record<ProtocolName, Scripted>> = {
  'openai-responses': {
    json: {
      id: 'resp_1',
      object: 'response',
      created_at: 1,
      status: 'completed',
      model: 'm',
      output: [
        {
          type: 'message',
          id: 'msg_9',
          role: 'assistant',
          status: 'completed',
          content: [{ type: 'output_text', text: 'fine', annotations: [] }],
        },
      ],
    },
  },
  'anthropic-messages': {
    json: {
      id: 'msg_1',
      type: 'message',
      role: 'assistant',
      model: 'm',
      content: [{ type: 'text', text: 'fine' }],
      stop_reason: 'end_turn',
      stop_sequence: null,
      usage: { input_tokens: 1, output_tokens: 1 },
    },
  },
  'openai-chat': {
    json: {
      id: 'c',
      object: 'chat.completion',
      created: 1,
      model: 'm',
      choices: [
        { index: 0, message: { role: 'assistant', content: 'fine' }, finish_reason: 'stop' },
      ],
    },
  },
  'google-gemini': {
    json: {
      candidates: [{ content: { role: 'model', parts: [{ text: 'fine' }] }, finishReason: 'STOP' }],
    },
  },
};

export interface ScriptedGateway {
  /**
   * The client's request and its answer as text, with whether the body broke off. A body of Gemini has `model` and
   * `stream` as its first members, as its plugin hands it on.
   * @param onText gets each piece of the answer as it comes
   */
  ask(
    protocol: ProtocolName,
    body: unknown,
    signal?: AbortSignal,
    onText?: (text: string) => void,
    headers?: Record<string, string>,
  ): Promise<Answered>;
  /** What answers {@link ask}. */
  readonly gateway: Gateway;
  /** Bodies that the upstream was sent. */
  readonly sent: unknown[];
  /** Their headers. */
  readonly sentHeaders: Headers[];
  readonly summaries: Summary[];
}

export interface Answered {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  readonly reset: boolean;
}

export function scriptedGateway(
  upstreamProtocol: ProtocolName,
  script: Scripted[],
  features: readonly Feature[] = [],
  yaml = '',
  {
    name = 'up',
    profile = 'none',
    baseUrl = 'http://up.test',
    models = '["*"]',
    principal = WITHOUT_KEY,
    slots = new ConcurrencyLimit(0),
    beforeEnd,
    accounts,
  }: {
    readonly name?: string;
    readonly profile?: string;
    readonly baseUrl?: string;
    /** YAML. */
    readonly models?: string;
    readonly principal?: Principal;
    readonly slots?: ConcurrencyLimit;
    readonly beforeEnd?: ExchangeFeatures['beforeEnd'];
    readonly accounts?: Accounts;
  } = {},
): ScriptedGateway {
  const loaded = parseConfig(
    `providers: { ${name}: { protocol: ${upstreamProtocol}, base_url: "${baseUrl}", models: ${models}, profile: ${profile} } }\nretry: { attempts: 2, base_delay: 0 }\n${yaml}`,
    'test.yaml',
    environmentFrom({}, '/nowhere'),
  );
  if (!loaded.ok) throw new Error(JSON.stringify(loaded.problems));
  const table = routingTable(loaded.config);
  const sent: unknown[] = [];
  const summaries: Summary[] = [];
  const sentHeaders: Headers[] = [];
  const transport: Transport = async ({ body, headers, ownHeaders, abort }) => {
    sentHeaders.push(new Headers(Object.fromEntries([...headers, ...(ownHeaders ?? [])])));
    sent.push(JSON.parse(new TextDecoder().decode(body as Uint8Array)));
    const next = script.shift();
    if (next === undefined) throw new Error('the script has no further answer');
    return answerOf(answer(next, abort.signal));
  };
  const upstreams = new Map<string, Upstream>();
  const gateway = createGateway({
    protocols: CODECS,
    ...(accounts && { accounts }),
    featuresFor: () => ({ features, ...(beforeEnd && { beforeEnd }) }),
    services: () => ({
      table,
      slots,
      upstream: ({ provider }) => {
        const known = upstreams.get(provider.name) ?? new Upstream(provider, transport);
        upstreams.set(provider.name, known);
        return known;
      },
    }),
    record: () => undefined,
    onRetry: () => {},
    onStream: () => {},
    onEnd: (summary) => summaries.push(summary),
  });
  return {
    gateway,
    sent,
    sentHeaders,
    summaries,
    async ask(protocol, body, signal = new AbortController().signal, onText, headers = {}) {
      const response = await gateway({
        id: 'req_1790000000000_abcdef',
        protocol: CODECS[protocol],
        body: new TextEncoder().encode(JSON.stringify(body)),
        headers: new Headers(headers),
        sessionId: '',
        search: '',
        signal,
        principal,
        owner: '',
        started: performance.now(),
      });
      return {
        status: response.status,
        headers: response.headers,
        ...(await drained(response, onText)),
      };
    },
  };
}

function answer(scripted: Scripted, signal: AbortSignal): Response {
  if ('refuse' in scripted) throw Object.assign(new Error('no'), { code: scripted.refuse });
  if ('json' in scripted) {
    return Response.json(scripted.json, {
      status: scripted.status ?? 200,
      headers: scripted.headers,
    });
  }
  if ('stalls' in scripted) {
    const body = new ReadableStream<Uint8Array>({
      start: (controller) => controller.enqueue(new TextEncoder().encode(scripted.stalls)),
    });
    return new Response(body, { status: scripted.status });
  }
  const chunks = scripted.sse.map((text) => new TextEncoder().encode(text));
  const body = new ReadableStream<Uint8Array>({
    async pull(controller) {
      const chunk = chunks.shift();
      if (chunk !== undefined) controller.enqueue(chunk);
      else if (scripted.open) {
        signal.addEventListener('abort', () => controller.error(signal.reason));
        await new Promise(() => {});
      } else if (scripted.cut) controller.error(new Error('reset by peer'));
      else controller.close();
    },
  });
  const { type = 'text/event-stream' } = scripted;
  return new Response(body, { headers: type === '' ? {} : { 'content-type': type } });
}

async function drained(
  response: Response,
  onText?: (text: string) => void,
): Promise<{ text: string; reset: boolean }> {
  const chunks: Uint8Array[] = [];
  try {
    for await (const chunk of response.body ?? []) {
      chunks.push(chunk.slice());
      onText?.(Buffer.from(chunk).toString());
    }
    return { text: Buffer.concat(chunks).toString(), reset: false };
  } catch {
    return { text: Buffer.concat(chunks).toString(), reset: true };
  }
}
