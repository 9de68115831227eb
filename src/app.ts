/** The only file that names concrete protocols, features and providers: it puts the house together. */

import { join, resolve } from 'node:path';
import { askThrough } from './app/ask-model.ts';
import { Ended, refusedRecord } from './app/exchange-log.ts';
import { composeFeatures, type FeaturesOfExchange } from './app/features.ts';
import { workbenchTools } from './app/in-process.ts';
import { memoryService } from './app/memory.ts';
import { recorderFor, recorderSettings } from './app/recorder.ts';
import { responseState } from './app/responses.ts';
import { tellOfDamage, tellOfExposed } from './app/state.ts';
import { COMPACT, CONVERSATIONS, notServed, storedResponses } from './app/stored-responses.ts';
import { joined, streamValidator } from './app/stream-validator.ts';
import { anthropicMessages } from './codecs/anthropic-messages/index.ts';
import { anthropicMessagesRoutes } from './codecs/anthropic-messages/plugin.ts';
import type { Codec, Routes } from './codecs/codec.ts';
import { openaiChat } from './codecs/openai-chat/index.ts';
import { openaiChatRoutes } from './codecs/openai-chat/plugin.ts';
import { openaiResponses } from './codecs/openai-responses/index.ts';
import { openaiResponsesRoutes } from './codecs/openai-responses/plugin.ts';
import type { Config } from './config/config.ts';
import type { Environment } from './config/environment.ts';
import { GatewayError, invalid } from './conversation/errors.ts';
import { targetName } from './conversation/target.ts';
import type { ProtocolName } from './conversation/types.ts';
import { openResponseStore } from './features/response-store/index.ts';
import { repairBody, repairHistory } from './features/tool-pairing/index.ts';
import { fitTurnOrder } from './features/vendor-fit/index.ts';
import { createTokenCounter } from './gateway/count-tokens.ts';
import { errorResponse } from './gateway/error-response.ts';
import type { Summary } from './gateway/exchange.ts';
import { createGateway, type Services } from './gateway/gateway.ts';
import type { FailedOutcome } from './gateway/outcome.ts';
import { tryParse } from './lib/json/json.ts';
import { memberOf } from './lib/json/json-members.ts';
import { atTickEnd } from './lib/loop/tick-end.ts';
import { lazy } from './lib/store/lazy.ts';
import { requestId } from './lib/text/ids.ts';
import { modelsWith, openProviders, routingTable, takerOf } from './routing/index.ts';
import { type Access, createAccess, isLoopback } from './server/auth.ts';
import { type ConnectionLimits, Connections } from './server/connections.ts';
import { healthRoutes } from './server/health.ts';
import type { AppOptions, HopgateApp } from './server/process/run.ts';
import { receive, rested } from './server/receive.ts';
import { localUrl, mendedPath, pathOf, targetOf } from './server/request-path.ts';
import type { App } from './server/server.ts';
import { countExchange, type ExchangeRecord, logExchange } from './telemetry/exchange.ts';
import { createGatewayMetrics } from './telemetry/gateway-metrics.ts';
import { event } from './telemetry/log.ts';
import { createUi } from './ui/index.ts';
import { ConcurrencyLimit } from './upstream/concurrency-limit.ts';
import { demoTransport } from './upstream/demo/index.ts';
import { answerOf } from './upstream/fetch-transport.ts';
import { askForModels, ModelLists } from './upstream/model-list.ts';
import { UpstreamPool } from './upstream/pool.ts';
import { refusedKeys } from './upstream/refused-keys.ts';
import type { UpstreamRequest } from './upstream/transport.ts';

export const PROTOCOLS: Readonly<Record<ProtocolName, Codec>> = {
  'anthropic-messages': anthropicMessages,
  'openai-chat': openaiChat,
  'openai-responses': openaiResponses,
};

/** For the command line, which names no feature. */
export const PAIRING = { mend: repairBody, repair: repairHistory, fitTurns: fitTurnOrder };

/** Everything that depends on the configuration; a reload makes it anew, of what there was before. */
interface ConfiguredServices {
  readonly snapshot: Services;
  readonly upstreams: UpstreamPool;
  readonly access: Access;
  readonly bodyBytes: number;
}

function settingsOf(
  config: Config,
  environment: Environment,
  last?: ConfiguredServices,
): ConfiguredServices {
  const demo = () => {
    const transport = demoTransport();
    return async (request: UpstreamRequest) => answerOf(await demoCall(request, transport));
  };
  const proxied = (scheme: string) => environment.proxies(scheme);
  const { providers, limits } = config;
  const upstreams =
    last?.upstreams.next(providers) ??
    new UpstreamPool({ builtIn: { 'demo:': demo }, proxied }, providers);
  // Exchanges that run on hold their places.
  const slots = last?.snapshot.slots ?? new ConcurrencyLimit(limits.concurrency);
  slots.resize(limits.concurrency);
  const table = routingTable(config);
  return {
    snapshot: {
      table,
      upstream: (routed) => upstreams.of(routed.provider),
      slots,
    },
    upstreams,
    access: createAccess({ keys: config.auth.keys, host: config.listen.host }),
    bodyBytes: limits.bodyBytes,
  };
}

function demoCall(
  { url, headers, body = new Uint8Array(), abort }: UpstreamRequest,
  transport: ReturnType<typeof demoTransport>,
): Promise<Response> {
  const [path = ''] = url.slice('demo:'.length).split('?', 1);
  return transport({ path, headers, body, signal: abort.signal });
}

export function createApp(options: AppOptions): HopgateApp {
  const { environment, log } = options;
  let settings = settingsOf(options.config, environment);
  let draining = false;
  const metrics = createGatewayMetrics(options.version);
  const shared = options.config.workers > 1;
  const responses = lazy(() =>
    openResponseStore({
      shared,
      path: join(environment.home, 'state', 'responses.db'),
      warn: (message) => event(log, 'responses.store.problem', { message }, 'warn'),
    }),
  );
  const store = responses.value;
  const stateOf = responseState({ store, shared });
  const untold = tellOfDamage(log);
  const recorder = recorderFor(options.config, log);
  const room = memoryService(
    {
      log,
      metrics,
      recorder: {
        eraseSpace: (space) => {
          features.eraseSpace(space);
          store.eraseSpace(space);
          return recorder.eraseSpace(space);
        },
      },
      upstream: (provider) => settings.upstreams.of(provider),
      keeps: options.remembers !== false,
    },
    options.config,
  );

  const connections = new Connections(connectionLimits(options.config));
  const tell = (record: ExchangeRecord) => {
    countExchange(metrics, record);
    logExchange(log, record);
  };
  const common = {
    protocols: PROTOCOLS,
    snapshot: () => settings.snapshot,
    onRetry: ({ target, error }: Pick<FailedOutcome, 'target' | 'error'>) => {
      metrics.retries.add(1, target?.provider ?? '', error.kind);
      const tooLarge = error.kind === 'context_overflow' || error.kind === 'too_large';
      if (tooLarge && target !== undefined) {
        event(log, 'upstream.passed', { target: targetName(target), reason: error.kind });
      }
    },
    onKeyRefused: refusedKeys((provider, key, status) =>
      event(log, 'upstream.key_refused', { provider, key, status }, 'warn'),
    ),
    onEnd: (summary: Summary) => {
      rested(connections, summary.exchange);
      atTickEnd(new Ended(summary, tell));
    },
  };
  // What the gateway itself asks of a model passes no features: nothing it says could call for more.
  const bare = createGateway({
    ...common,
    extras: () => undefined,
    record: () => undefined,
    onStream: () => {},
  });
  const features = composeFeatures(
    {
      environment,
      log,
      metrics,
      version: options.version,
      ask: askThrough(bare),
      get memory() {
        return room.memory;
      },
      mayUse: room.mayUse,
    },
    options.config,
  );
  const gateway = createGateway({
    ...common,
    mend: options.repair === false ? undefined : repairBody,
    extras(exchange, ask, recording) {
      const found = options.repair === false ? NOTHING : features.of(exchange, ask, recording);
      const own = stateOf(exchange, ask, found.space);
      return own === undefined ? found : { ...own, features: [...own.features, ...found.features] };
    },
    record: (exchange) =>
      joined(
        recorder.begin(exchange),
        streamValidator(settings.snapshot.table.config.validate, exchange, log, metrics),
      ),
    onStream: (open) => metrics.streamsActive.add(open ? 1 : -1),
  });
  const counter = createTokenCounter({ protocols: PROTOCOLS, snapshot: () => settings.snapshot });

  const access = () => settings.access;
  const exchanges = {
    access,
    bodyBytes: () => settings.bodyBytes,
    connections,
    onRefused: (
      request: Request,
      protocol: Codec,
      id: string,
      error: GatewayError,
      owner: string,
    ) => {
      atTickEnd(new Ended(refusedRecord(request, protocol, id, error, owner), tell));
    },
  };
  const serve = receive(exchanges, gateway, { goesOn: true });
  const memoryDoor: Parameters<typeof room.api>[0] = (handle) =>
    receive({ ...exchanges, onRefused: room.refused }, handle);
  const state = storedResponses({
    store,
    shared,
    upstream: (name) => {
      const provider = memberOf(settings.snapshot.table.config.providers, name);
      return provider && settings.upstreams.of(provider);
    },
    count: counter,
  });
  const stored = (handle: typeof state.retrieve) => (request: Request, id: string) =>
    receive(exchanges, (exchange) => handle(exchange, id))(request, openaiResponses);
  const refused = (words: string) => receive(exchanges, () => Promise.reject(notServed(words)));

  const ui = createUi({
    ...workbenchTools(createApp, PROTOCOLS, environment, options.version),
    version: options.version,
    access,
    config: () => settings.snapshot.table.config,
    root: resolve(options.config.samples.dir),
    mend: repairBody,
    watch: (watcher) => recorder.watch(watcher),
  });

  const routes: Routes = {
    ...openaiChatRoutes(serve),
    ...anthropicMessagesRoutes({ serve, countTokens: receive(exchanges, counter) }),
    ...openaiResponsesRoutes({
      serve,
      search: receive(exchanges, async ({ body, signal }) => {
        const value = tryParse(new TextDecoder().decode(body));
        if (value === undefined) throw invalid('The request body is not valid JSON.');
        const answer = features.codexSearch(value, signal);
        if (answer === undefined)
          throw new GatewayError('not_found', 'No search is configured.', { code: 'no_search' });
        return Response.json(await answer);
      }),
      retrieve: stored(state.retrieve),
      remove: stored(state.remove),
      inputItems: stored(state.inputItems),
      cancel: stored(state.cancel),
      inputTokens: receive(exchanges, state.counted),
      compact: refused(COMPACT),
      conversations: refused(CONVERSATIONS),
      refuse(_request, status, message) {
        const answer = errorResponse(
          openaiResponses,
          new GatewayError('invalid_request', message, { status }),
          { requestId: requestId(), target: undefined, notes: undefined },
        );
        if (status === 405) answer.headers.set('allow', 'POST');
        return answer;
      },
    }),
    ...healthRoutes(() => (draining ? 'shutting down' : undefined)),
  };
  const lists = new ModelLists(askForModels(environment.proxies));
  // Loaded and put together when somebody first asks for it: no model request needs it.
  let others: Promise<Pick<App, 'fetch'>> | undefined;
  const otherApp = () =>
    import('./app/on-demand.ts').then(({ otherRoutes }) =>
      otherRoutes({
        ui,
        memory: room.api(memoryDoor, openaiChat, options.version),
        fallback: openaiChat,
        anthropic: anthropicMessages,
        access,
        version: options.version,
        metrics: () => {
          const own = metrics.render();
          return options.metricsOfAll?.(own) ?? own;
        },
        // A scraper on this machine needs no key; over a network it does.
        metricsOpen: isLoopback(options.config.listen.host),
        async models() {
          const { config } = settings.snapshot.table;
          const said = await lists.of(openProviders(config));
          return modelsWith(config, said).map(({ id, provider }) => entry(id, provider));
        },
        model(id) {
          const provider = takerOf(settings.snapshot.table, id);
          return provider === undefined ? undefined : entry(id, provider);
        },
      }),
    );

  return {
    app: {
      routes,
      connections,
      async fetch(request) {
        others ??= otherApp();
        const app = await others;
        const path = mendedPath(pathOf(request.url));
        if (path === undefined) return app.fetch(request);
        const answer = memberOf(routes, path)?.[request.method as 'GET'];
        if (answer !== undefined) return answer(Object.assign(request, { params: {} }));
        const query = targetOf(request.url).slice(pathOf(request.url).length);
        return app.fetch(new Request(localUrl(path + query).href, request));
      },
    },
    reload: (config) => {
      features.configure(config);
      recorder.configure(recorderSettings(config));
      connections.configure(connectionLimits(config));
      settings = settingsOf(config, environment, settings);
      room.configure(config);
    },
    metrics: () => metrics.render(),
    openState: () => {
      tellOfExposed(log, [options.environment.home, options.config.samples.dir]);
      responses.make();
      features.openState();
    },
    drain: () => {
      draining = true;
      void ui.close();
    },
    close: async () => {
      await ui.close();
      await recorder.close();
      await room.close();
      responses.made?.close();
      await features.close();
      untold();
    },
  };
}

const connectionLimits = ({ limits }: Config): ConnectionLimits => ({
  idleMs: limits.idleConnectionMs,
  bodyIdleMs: limits.idleBodyMs,
  unfinishedBytes: limits.unfinishedBytes,
});

const NOTHING: FeaturesOfExchange = { features: [], space: undefined };

const STARTED = Math.floor(Date.now() / 1000);
const entry = (id: string, provider: string) => ({ id, provider, created: STARTED });
