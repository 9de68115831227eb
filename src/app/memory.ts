/** The memory of a configuration: the embedded one, one for all replicas, or an external service, its API, and how a reload changes it. */

import type { Codec } from '../codecs/codec.ts';
import type { Serve } from '../codecs/serve.ts';
import type { Config } from '../config/config.ts';
import type { MemoryConfig } from '../config/sections/memory.ts';
import type { ProviderConfig } from '../config/sections/providers.ts';
import type { Payer } from '../conversation/account/payer.ts';
import { GatewayError } from '../conversation/errors.ts';
import type { Memory } from '../conversation/memory.ts';
import type { MemoryPluginOptions } from '../features/memory/api/plugin.ts';
import type { Embedder, MemoryBackend, MemoryObserver } from '../features/memory/index.ts';
import type { Principal } from '../keys/principal.ts';
import { MadeOnce } from '../lib/loop/made-once.ts';
import { Throttle } from '../lib/loop/throttle.ts';
import { messageOf } from '../lib/text/thrown.ts';
import type { Engines } from '../state/engines/open-engines.ts';
import type { GatewayMetrics } from '../telemetry/gateway-metrics.ts';
import { event, type Log } from '../telemetry/log.ts';
import type { Upstream } from '../upstream/upstream.ts';
import { postEmbeddings } from './operations/embeddings.ts';

export interface MemoryServiceOptions {
  readonly log: Log;
  readonly metrics: GatewayMetrics;
  /** Erases what was recorded of a space; resolves with the number of samples. */
  readonly recorder: { eraseSpace(space: string): Promise<number> };
  /** A provider at run time, under the configuration in force. */
  readonly upstream: (provider: ProviderConfig) => Upstream;
  /** Pays for vectors that no single request asks for: a batch holds events of several keys. */
  readonly ownPayer: Payer;
  /** With a database, all replicas have one memory in it. */
  readonly engines: Pick<Engines, 'database' | 'seal'>;
  /** False: recalls, but takes nothing in. */
  readonly keeps: boolean;
}

export interface MemoryService {
  /** What conversations use; undefined while it is switched off. */
  readonly memory: Memory | undefined;
  /**
   * What the routes of the API need.
   * @param received checks the key and the size of the body, then calls the handler
   * @param codec the shape of errors
   */
  api(received: (handle: Handler) => Serve, codec: Codec, version: string): MemoryPluginOptions;
  /** Logs a request that was refused before it reached a space, or by it. */
  refused(request: Request, codec: object, id: string, error: GatewayError): void;
  configure(config: Config): void;
  /** Writes what waits. */
  close(): Promise<void>;
}

type Handler = (
  exchange: {
    readonly principal: Principal;
    readonly body: Uint8Array;
  },
  payer: Payer,
) => Promise<Response>;

/** Trouble of one kind is logged once in so many milliseconds. */
const LOG_EVERY_MS = 10_000;

type MemoryFeature = typeof import('../features/memory/index.ts');

interface OpenMemory {
  readonly feature: MemoryFeature;
  readonly backend: MemoryBackend;
}

/** Writes what waits. */
const closed = async (memory: MadeOnce<OpenMemory> | undefined) =>
  (await memory?.made)?.backend.close();

/** Costs nothing until the memory is used. */
export function memoryService(options: MemoryServiceOptions, initial: Config): MemoryService {
  const { log, metrics, recorder, keeps, ownPayer } = options;
  const observer = memoryObserver(log, metrics);
  let config = initial;
  let memoryConfig = initial.memory;
  let base = baseOf(initial.memory);
  const closing = new Set<Promise<void>>();

  /** The feature is a twentieth of the program, and loaded when it is first used. */
  function baseOf(memory: MemoryConfig): MadeOnce<OpenMemory> | undefined {
    if (!memory.enabled) return undefined;
    return new MadeOnce(async () => {
      const feature = await import('../features/memory/index.ts');
      return { feature, backend: backendOf(memory, feature) };
    });
  }

  function backendOf(memory: MemoryConfig, feature: MemoryFeature): MemoryBackend {
    const { path, external, limits, dedupeMs } = memory;
    if (external !== undefined) return feature.externalMemory({ ...external, limits, observer });
    const own = { limits, dedupeMs, observer, embedder: embedderOf(memory, feature) };
    const { database, seal } = options.engines;
    return database === undefined
      ? feature.embeddedMemory({ ...own, path })
      : feature.databaseMemory({ ...own, database, seal });
  }

  function embedderOf(
    { embeddings }: MemoryConfig,
    { embedder }: MemoryFeature,
  ): Embedder | undefined {
    if (embeddings === undefined) return undefined;
    const { provider, model, dimensions, passagePrefix, timeoutMs } = embeddings;
    return embedder({
      // Another prefix makes other vectors, so it is part of the name: old ones are then replaced in the background.
      name: [provider, model, dimensions ?? '', ...(passagePrefix ? [passagePrefix] : [])].join(
        '/',
      ),
      model,
      dimensions,
      queryPrefix: embeddings.queryPrefix,
      passagePrefix,
      timeoutMs,
      post: (body, signal, payer = ownPayer) => {
        const found = config.providers[provider];
        if (found === undefined) throw new GatewayError('not_found', 'The provider is gone.');
        return postEmbeddings({ upstream: options.upstream(found), model, body, signal, payer });
      },
      onFailure: (thrown) => observer.embeddingsFailed(messageOf(thrown)),
    });
  }

  const memory: Memory = {
    async recall(space, query) {
      const maxTokens = query.maxTokens ?? memoryConfig.maxTokens;
      const { feature, backend } = await inUse();
      return feature.withinTokens(await backend.recall(space, query), query.query, maxTokens);
    },
    async capture(space, events, began, turn, key) {
      if (keeps) await (await inUse()).backend.capture(space, events, began, turn, key);
    },
    async forget(space, ids) {
      const { feature, backend } = await inUse();
      return feature.forgetEvents(backend, space, ids);
    },
  };
  const inUse = async (): Promise<OpenMemory> => {
    if (base !== undefined) return base.get();
    throw new GatewayError('not_found', 'The memory is switched off (memory.enabled).');
  };

  async function erase(space: string) {
    // Samples first: they may hold events of the space. The memory's answer comes last.
    const samples = await recorder.eraseSpace(space);
    const events = await (await inUse()).backend.erase(space);
    event(log, 'memory.erased', { events, samples });
    return { events, samples };
  }

  return {
    get memory() {
      return base === undefined ? undefined : memory;
    },
    api: (received, codec, version) => ({
      serve: (request, handle) =>
        received(({ principal, body }, payer) => handle({ principal, body, payer }))(
          request,
          codec,
        ),
      memory: async () => (await base?.get())?.backend,
      erase,
      version,
    }),
    refused(request, _codec, id, { status, kind, message }) {
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
      const done = closed(last).finally(() => closing.delete(done));
      closing.add(done);
    },
    async close() {
      await Promise.all([...closing, closed(base)]);
    },
  };
}

/** Secrets print alike and are compared by their values. */
const same = (a: MemoryConfig, b: MemoryConfig) =>
  JSON.stringify(a) === JSON.stringify(b) &&
  a.external?.key?.reveal() === b.external?.key?.reveal();

function memoryObserver(log: Log, metrics: GatewayMetrics): MemoryObserver {
  const throttle = new Throttle({ everyMs: LOG_EVERY_MS, most: 10 });
  const seldom = (kind: string, report: () => void) => {
    if (throttle.allows(kind)) report();
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
