/** The memory of a configuration: the embedded one or another service's, its API, and what a reload changes of it. */

import type { Codec, Serve } from '../codecs/codec.ts';
import type { Config, MemoryConfig, ProviderConfig } from '../config/config.ts';
import { GatewayError } from '../conversation/errors.ts';
import type { Memory } from '../conversation/memory.ts';
import type { MemoryPluginOptions } from '../features/memory/api/plugin.ts';
import {
  type Embedder,
  embeddedMemory,
  embedder,
  externalMemory,
  type MemoryBase,
  type MemoryWatch,
} from '../features/memory/index.ts';
import { decoded } from '../gateway/response-body.ts';
import { isObject, type Json, tryParse } from '../lib/json/json.ts';
import { Abort } from '../lib/loop/abort.ts';
import type { Recorder } from '../samples/index.ts';
import { mayUse } from '../server/memory-scope.ts';
import type { GatewayMetrics } from '../telemetry/gateway-metrics.ts';
import { event, type Log } from '../telemetry/log.ts';
import { readFirst } from '../upstream/transport.ts';
import type { Upstream } from '../upstream/upstream.ts';

export interface MemoryRoomOptions {
  readonly log: Log;
  readonly metrics: GatewayMetrics;
  readonly recorder: Pick<Recorder, 'eraseSpace'>;
  /** A provider at run time, under the configuration in force. */
  readonly upstream: (provider: ProviderConfig) => Upstream;
  /** False: recalls, but takes nothing in. */
  readonly keeps: boolean;
}

export interface MemoryRoom {
  /** What conversations use; undefined while it is switched off. */
  readonly memory: Memory | undefined;
  mayUse(owner: string, space: string): boolean;
  /**
   * @param door the checks of `serveWith`: who asks, how large a body may be
   * @param shape in which failures are told
   */
  api(
    door: (handle: Parameters<typeof memoryDoor>[0]) => Serve,
    shape: Codec,
    version: string,
  ): MemoryPluginOptions;
  /** Told of requests that were refused before they reached a space, or by it. */
  refused(request: Request, protocol: Codec, id: string, error: GatewayError): void;
  configure(config: Config): void;
  /** Writes what waits. */
  close(): Promise<void>;
}

type Handler = (exchange: {
  readonly owner: string;
  readonly body: Uint8Array;
}) => Promise<Response>;
const memoryDoor = (handle: Handler): Handler => handle;

const EMBEDDINGS_BYTES = 64 * 2 ** 20;
/** Trouble of one kind is told this often, in milliseconds. */
const TELL_EVERY = 10_000;

/** Costs nothing until somebody asks for the memory. */
export function memoryService(options: MemoryRoomOptions, initial: Config): MemoryRoom {
  const { log, metrics, recorder, keeps } = options;
  const watch = watchOf(log, metrics);
  let config = initial;
  let memoryConfig = initial.memory;
  let base = baseOf(initial.memory);
  const closing = new Set<Promise<void>>();

  function baseOf(memory: MemoryConfig): MemoryBase | undefined {
    if (!memory.enabled) return undefined;
    const { path, limits, dedupeMs, external } = memory;
    return external === undefined
      ? embeddedMemory({ path, limits, dedupeMs, watch, embedder: embedderOf(memory) })
      : externalMemory({ ...external, limits, watch });
  }

  function embedderOf({ embeddings }: MemoryConfig): Embedder | undefined {
    if (embeddings === undefined) return undefined;
    const { provider, model, dimensions, timeoutMs } = embeddings;
    return embedder({
      name: [provider, model, dimensions ?? ''].join('/'),
      model,
      dimensions,
      timeoutMs,
      post: (body, signal) => {
        const found = config.providers[provider];
        if (found === undefined) throw new GatewayError('not_found', 'The provider is gone.');
        return postEmbeddings(options.upstream(found), body, signal);
      },
      onFailure: (thrown) =>
        watch.embeddingsFailed(thrown instanceof Error ? thrown.message : String(thrown)),
    });
  }

  const memory: Memory = {
    recall: async (space, query) => theirs().recall(space, query),
    capture: async (space, events, began) => {
      if (keeps) await theirs().capture(space, events, began);
    },
  };
  const theirs = (): MemoryBase => {
    if (base !== undefined) return base;
    throw new GatewayError('not_found', 'The memory is switched off (memory.enabled).');
  };

  async function erase(space: string) {
    // What was recorded goes first: it may hold what was remembered, and the memory's answer tells the end.
    const samples = await recorder.eraseSpace(space);
    const events = await theirs().erase(space);
    event(log, 'memory.erased', { events, samples });
    return { events, samples };
  }

  return {
    get memory() {
      return base === undefined ? undefined : memory;
    },
    mayUse: (owner, space) => mayUse(config.auth.keys, owner, space),
    api: (door, shape, version) => ({
      serve: (request, handle) => door(memoryDoor(handle))(request, shape) as Promise<Response>,
      memory: () => base,
      mayUse: (owner, space) => mayUse(config.auth.keys, owner, space),
      erase,
      version,
    }),
    refused(request, _protocol, id, { status, kind, message }) {
      // Not the path: names of spaces are often names of people.
      const fields = { id, method: request.method, status, error: kind, message };
      event(log, 'memory.refused', fields, status >= 500 ? 'error' : 'info');
    },
    configure(next) {
      const { path } = memoryConfig;
      config = next;
      // Another database file needs a restart; everything else is a new memory over the same file.
      const wanted = { ...next.memory, path };
      if (same(wanted, memoryConfig)) return;
      const last = base;
      memoryConfig = wanted;
      base = baseOf(wanted);
      if (last === undefined) return;
      const done = last.close().finally(() => closing.delete(done));
      closing.add(done);
    },
    async close() {
      await Promise.all([...closing, base?.close()]);
    },
  };
}

/** @throws GatewayError for whatever is no answer in JSON */
async function postEmbeddings(
  upstream: Upstream,
  body: object,
  signal: AbortSignal,
): Promise<Json> {
  const abort = new Abort();
  abort.follow(signal);
  try {
    const sent = await upstream.send({
      path: '/embeddings',
      search: '',
      body: Buffer.from(JSON.stringify(body)),
      clientHeaders: new Headers(),
      sameProtocol: false,
      stream: false,
      abort,
    });
    try {
      const { status, body } = decoded(sent.answer);
      const chunks: Uint8Array[] = [];
      await readFirst(body, EMBEDDINGS_BYTES, (chunk) => chunks.push(chunk));
      const answer = tryParse(new TextDecoder().decode(Buffer.concat(chunks)));
      const ok = status >= 200 && status < 300;
      if (ok && answer !== undefined) return answer;
      throw new GatewayError(
        'upstream',
        `The embeddings endpoint of ${upstream.config.name} answered ${status}${reasonIn(answer)}.`,
        ok ? {} : { status },
      );
    } finally {
      sent.release();
    }
  } finally {
    abort.unfollow();
  }
}

/** Secrets print alike and are compared by their values. */
const same = (a: MemoryConfig, b: MemoryConfig) =>
  JSON.stringify(a) === JSON.stringify(b) &&
  a.external?.key?.reveal() === b.external?.key?.reveal();

function reasonIn(answer: Json | undefined): string {
  const error = isObject(answer) ? answer.error : undefined;
  const message = isObject(error) ? error.message : error;
  return typeof message === 'string' ? `: ${message.slice(0, 200)}` : '';
}

function watchOf(log: Log, metrics: GatewayMetrics): MemoryWatch {
  const told = new Map<string, number>();
  const seldom = (kind: string, tell: () => void) => {
    const now = Date.now();
    if (now - (told.get(kind) ?? -TELL_EVERY) < TELL_EVERY) return;
    told.set(kind, now);
    tell();
  };
  let lost = 0;
  return {
    captured(outcome, count) {
      if (count === 0) return;
      metrics.memoryEvents.add(count, outcome);
      if (outcome !== 'dropped' && outcome !== 'full') return;
      lost += count;
      seldom(outcome, () => {
        event(log, 'memory.dropped', { count: lost, reason: outcome }, 'warn');
        lost = 0;
      });
    },
    recalled: (kind, ms) => metrics.memoryRecallSeconds.observe(ms / 1000, kind),
    problem: (message) =>
      seldom('problem', () => event(log, 'memory.problem', { message }, 'warn')),
    embeddingsFailed: (message) =>
      seldom('embeddings', () => event(log, 'memory.embeddings.failed', { message }, 'warn')),
  };
}
