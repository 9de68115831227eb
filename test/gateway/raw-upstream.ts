/** A gateway with the real network before upstreams that write raw bytes: for tests of what an answer may be. */

import { CODECS } from '../../src/app/codecs.ts';
import { environmentFrom } from '../../src/config/environment.ts';
import { parseConfig } from '../../src/config/load.ts';
import { sessionOf } from '../../src/conversation/session/session-id.ts';
import { createTokenCounter } from '../../src/gateway/count-tokens/count-tokens.ts';
import { createGateway } from '../../src/gateway/gateway.ts';
import type { Exchange, Summary } from '../../src/gateway/types.ts';
import { WITHOUT_KEY } from '../../src/keys/principal.ts';
import { type RoutedTarget, routingTable } from '../../src/routing/index.ts';
import { ConcurrencyLimit } from '../../src/upstream/concurrency-limit.ts';
import { type HealthSnapshot, healthSnapshot } from '../../src/upstream/health/snapshot.ts';
import { UpstreamPool } from '../../src/upstream/pool.ts';
import type { SuiteProtocol as ProtocolName } from '../support/suite-protocols.ts';
import { PROTOCOLS } from './scripted.ts';

/** One connection of a client of this upstream. */
export interface Wire {
  /** Writes as fast as it is read; false once the other side has gone. */
  write(bytes: string | Uint8Array): Promise<boolean>;
  end(): void;
  /** The other side has gone. */
  readonly gone: boolean;
}

export interface RawUpstream {
  readonly url: string;
  /** Requests so far. */
  readonly asked: number;
  /** Bytes that were taken by the socket. */
  readonly sent: number;
  stop(): void;
}

interface Peer {
  drained: () => void;
  gone: boolean;
  head: string;
}

/** Each request, once its head and body are there, is given to `answer`. */
export function rawUpstream(answer: (wire: Wire, number: number) => unknown): RawUpstream {
  let asked = 0;
  let sent = 0;
  const server = Bun.listen<Peer>({
    hostname: '127.0.0.1',
    port: 0,
    socket: {
      open(socket) {
        socket.data = { drained: () => {}, gone: false, head: '' };
      },
      data(socket, bytes) {
        const peer = socket.data;
        peer.head += bytes.toString('latin1');
        const end = peer.head.indexOf('\r\n\r\n');
        const length = Number(/content-length: (\d+)/i.exec(peer.head)?.[1] ?? 0);
        if (end < 0 || peer.head.length < end + 4 + length) return;
        peer.head = '';
        const wire: Wire = {
          async write(piece) {
            let rest = Buffer.from(piece as string);
            while (rest.length > 0 && !peer.gone) {
              const taken = socket.write(rest);
              if (taken < 0) return false;
              sent += taken;
              rest = rest.subarray(taken);
              if (rest.length === 0) break;
              await new Promise<void>((resolve) => {
                peer.drained = resolve;
              });
            }
            return !peer.gone;
          },
          end: () => void socket.end(),
          get gone() {
            return peer.gone;
          },
        };
        void answer(wire, ++asked);
      },
      drain: (socket) => socket.data.drained(),
      close(socket) {
        socket.data.gone = true;
        socket.data.drained();
      },
      error() {},
    },
  });
  return {
    url: `http://127.0.0.1:${server.port}`,
    get asked() {
      return asked;
    },
    get sent() {
      return sent;
    },
    stop: () => server.stop(true),
  };
}

export interface Told {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  /** The connection was reset behind what came. */
  readonly reset: boolean;
}

export interface World {
  ask(
    client: ProtocolName,
    stream: boolean,
    more?: object,
    headers?: Readonly<Record<string, string>>,
    signal?: AbortSignal,
  ): Promise<Told>;
  count(): Promise<Told>;
  readonly summaries: Summary[];
  readonly refusedKeys: string[];
  /** What rests. */
  health(): HealthSnapshot;
  /** Time passes for what rests. */
  pass(ms: number): void;
}

const BODIES: Readonly<Record<ProtocolName, object>> = {
  'openai-chat': { messages: [{ role: 'user', content: 'hi' }] },
  'openai-responses': { input: 'hi', store: false },
  'anthropic-messages': { max_tokens: 9, messages: [{ role: 'user', content: 'hi' }] },
};

/** Context windows of models with these names. */
const ROOMS: Readonly<Record<string, number>> = {
  tiny: 10,
  small: 1000,
  'also-small': 1000,
  large: 9000,
};

/** A gateway of this configuration, in this process; clients ask for the model `m`. */
export function rawWorld(yaml: string): World {
  const loaded = parseConfig(yaml, 'test.yaml', environmentFrom({}, '/nowhere'));
  if (!loaded.ok) throw new Error(JSON.stringify(loaded.problems));
  const { config } = loaded;
  const table = routingTable(config);
  let passed = 0;
  const clock = () => performance.now() + passed;
  const pool = new UpstreamPool({ builtIn: {}, proxied: () => false, clock }, config.providers);
  const slots = new ConcurrencyLimit(0);
  const summaries: Summary[] = [];
  const refusedKeys: string[] = [];
  const services = () => ({
    table,
    slots,
    upstream: ({ provider }: RoutedTarget) => pool.of(provider),
    room: ({ target }: RoutedTarget) => ROOMS[target.model],
  });
  const gateway = createGateway({
    protocols: CODECS,
    featuresFor: () => undefined,
    services,
    record: () => undefined,
    onRetry: () => {},
    onKeyRefused: (provider, key, status) => refusedKeys.push(`${provider} ${key} ${status}`),
    onStream: () => {},
    onEnd: (summary) => summaries.push(summary),
  });
  const counter = createTokenCounter({
    protocols: CODECS,
    services,
    foreignIds: async () => [],
  });
  const exchange = (
    client: ProtocolName,
    body: object,
    headers: Readonly<Record<string, string>> = {},
    signal = new AbortController().signal,
  ): Exchange => {
    const bytes = new TextEncoder().encode(JSON.stringify(body));
    const own = new Headers(headers);
    return {
      id: 'req_1790000000000_abcdef',
      protocol: PROTOCOLS[client],
      body: bytes,
      headers: own,
      sessionId: sessionOf(own, bytes),
      search: '',
      signal,
      principal: WITHOUT_KEY,
      owner: '',
      started: performance.now(),
    };
  };
  return {
    summaries,
    refusedKeys,
    health: () => healthSnapshot(pool.known),
    pass(ms) {
      passed += ms;
    },
    ask: async (client, stream, more, headers, signal) => {
      const body = { model: 'm', stream, ...BODIES[client], ...more };
      return told(await gateway(exchange(client, body, headers, signal)));
    },
    count: async () => {
      const { max_tokens: _, ...body } = BODIES['anthropic-messages'] as { max_tokens: number };
      return told(await counter(exchange('anthropic-messages', { model: 'm', ...body })));
    },
  };
}

async function told(response: Response): Promise<Told> {
  const chunks: Uint8Array[] = [];
  let reset = false;
  try {
    for await (const chunk of response.body ?? []) chunks.push(chunk.slice());
  } catch {
    reset = true;
  }
  const { status, headers } = response;
  return { status, headers, text: Buffer.concat(chunks).toString(), reset };
}

/** The beginning of an answer that ends when the connection closes. */
export const head = (type: string, more = ''): string =>
  `HTTP/1.1 200 OK\r\ncontent-type: ${type}\r\n${more}connection: close\r\n\r\n`;

/** A whole answer of this status. */
export const whole = (status: number, body: string, more = ''): string =>
  `HTTP/1.1 ${status} X\r\ncontent-type: application/json\r\ncontent-length: ${Buffer.byteLength(body)}\r\n${more}\r\n${body}`;

/** An answer that says these words, whole or as a stream. */
export const saying = (protocol: ProtocolName, stream: boolean, words: string): string => {
  if (!stream) return whole(200, JSON.stringify(reply(protocol, words)));
  return head('text/event-stream') + beginning(protocol, words) + ending(protocol, words);
};

function reply(protocol: ProtocolName, text: string): object {
  switch (protocol) {
    case 'openai-chat':
      return {
        id: 'c',
        object: 'chat.completion',
        created: 1,
        model: 'm',
        choices: [
          { index: 0, message: { role: 'assistant', content: text }, finish_reason: 'stop' },
        ],
        usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 },
      };
    case 'anthropic-messages':
      return {
        id: 'm',
        type: 'message',
        role: 'assistant',
        model: 'm',
        content: [{ type: 'text', text }],
        stop_reason: 'end_turn',
        stop_sequence: null,
        usage: { input_tokens: 1, output_tokens: 1 },
      };
    case 'openai-responses':
      return {
        id: 'r',
        object: 'response',
        created_at: 1,
        status: 'completed',
        model: 'm',
        output: [
          {
            id: 'i',
            type: 'message',
            role: 'assistant',
            status: 'completed',
            content: [{ type: 'output_text', text, annotations: [] }],
          },
        ],
        usage: { input_tokens: 1, output_tokens: 1, total_tokens: 2 },
      };
  }
}

const frame = (data: object & { type?: string }, named: boolean) =>
  `${named ? `event: ${data.type}\n` : ''}data: ${JSON.stringify(data)}\n\n`;

/** The beginning of a stream, up to these words. */
export function beginning(protocol: ProtocolName, text: string): string {
  switch (protocol) {
    case 'openai-chat':
      return frame(
        {
          id: 'c',
          object: 'chat.completion.chunk',
          created: 1,
          model: 'm',
          choices: [{ index: 0, delta: { role: 'assistant', content: text }, finish_reason: null }],
        } as object,
        false,
      );
    case 'anthropic-messages':
      return [
        {
          type: 'message_start',
          message: {
            id: 'm',
            type: 'message',
            role: 'assistant',
            model: 'm',
            content: [],
            stop_reason: null,
            stop_sequence: null,
            usage: { input_tokens: 1, output_tokens: 1 },
          },
        },
        { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } },
        { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text } },
      ]
        .map((data) => frame(data, true))
        .join('');
    case 'openai-responses': {
      const response = { ...(reply(protocol, text) as object), status: 'in_progress', output: [] };
      const item = {
        id: 'i',
        type: 'message',
        role: 'assistant',
        status: 'in_progress',
        content: [],
      };
      const at = { item_id: 'i', output_index: 0, content_index: 0 };
      return [
        { type: 'response.created', sequence_number: 0, response },
        { type: 'response.output_item.added', sequence_number: 1, output_index: 0, item },
        {
          type: 'response.content_part.added',
          sequence_number: 2,
          ...at,
          part: { type: 'output_text', text: '', annotations: [] },
        },
        { type: 'response.output_text.delta', sequence_number: 3, ...at, delta: text },
      ]
        .map((data) => frame(data, true))
        .join('');
    }
  }
}

function ending(protocol: ProtocolName, text: string): string {
  switch (protocol) {
    case 'openai-chat':
      return `${frame({ id: 'c', object: 'chat.completion.chunk', created: 1, model: 'm', choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] } as object, false)}data: [DONE]\n\n`;
    case 'anthropic-messages':
      return [
        { type: 'content_block_stop', index: 0 },
        {
          type: 'message_delta',
          delta: { stop_reason: 'end_turn', stop_sequence: null },
          usage: { output_tokens: 1 },
        },
        { type: 'message_stop' },
      ]
        .map((data) => frame(data, true))
        .join('');
    case 'openai-responses':
      return frame(
        {
          type: 'response.completed',
          sequence_number: 9,
          response: reply(protocol, text),
        } as object & {
          type: string;
        },
        true,
      );
  }
}
