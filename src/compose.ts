/** The only file that names concrete protocols, features and providers: it puts the house together. */

import { join, resolve } from 'node:path';
import { askThrough } from './compose-ask.ts';
import { composeFeatures, type OfExchange } from './compose-features.ts';
import { memoryRoom } from './compose-memory.ts';
import { recorderFor, recorderSettings } from './compose-recorder.ts';
import { responseState } from './compose-response-state.ts';
import { joined, streamValidator } from './compose-validate.ts';
import { workbenchTools } from './compose-workbench.ts';
import type { Config } from './config/config.ts';
import type { Environment } from './config/environment.ts';
import { GatewayError, invalid } from './conversation/errors.ts';
import type { ProtocolName } from './conversation/types.ts';
import { Ended, refusedRecord } from './exchange-record.ts';
import { mendBody, repair } from './features/pairing/index.ts';
import { openResponseStore } from './features/response-store/index.ts';
import type { Failed } from './gateway/answer.ts';
import { createTokenCounter } from './gateway/count-tokens.ts';
import { errorResponse } from './gateway/error-response.ts';
import type { Summary } from './gateway/exchange.ts';
import { createGateway, type Snapshot } from './gateway/gateway.ts';
import { type Access, createAccess, isLoopback } from './http/access.ts';
import { serveWith } from './http/exchanges.ts';
import { healthRoutes } from './http/health.ts';
import type { App } from './http/server.ts';
import { deferred } from './lib/deferred.ts';
import { requestId } from './lib/ids.ts';
import { tryParse } from './lib/json.ts';
import { atTurnEnd } from './lib/turn-end.ts';
import { anthropicMessages } from './protocols/anthropic-messages/index.ts';
import { anthropicMessagesRoutes } from './protocols/anthropic-messages/routes.ts';
import { openaiChat } from './protocols/openai-chat/index.ts';
import { openaiChatRoutes } from './protocols/openai-chat/routes.ts';
import { openaiResponses } from './protocols/openai-responses/index.ts';
import { openaiResponsesRoutes } from './protocols/openai-responses/routes.ts';
import type { Protocol, Routes } from './protocols/protocol.ts';
import { models, routingTable } from './routing/index.ts';
import { countExchange, type ExchangeRecord, logExchange } from './telemetry/exchange.ts';
import { createGatewayMetrics } from './telemetry/gateway-metrics.ts';
import { event, type Log } from './telemetry/log.ts';
import { createUi } from './ui/index.ts';
import { demoTransport } from './upstream/demo/index.ts';
import { answerOf } from './upstream/fetch-transport.ts';
import { UpstreamPool } from './upstream/pool.ts';
import { Slots } from './upstream/slots.ts';
import type { UpstreamRequest } from './upstream/transport.ts';

export const PROTOCOLS: Readonly<Record<ProtocolName, Protocol>> = {
  'anthropic-messages': anthropicMessages,
  'openai-chat': openaiChat,
  'openai-responses': openaiResponses,
};

/** For the command line, which names no feature. */
export const PAIRING = { mend: mendBody, repair };

export interface ComposeOptions {
  readonly config: Config;
  readonly environment: Environment;
  readonly log: Log;
  readonly version: string;
  /** False: no feature sees what the client said or what is answered. */
  readonly repair?: boolean;
  /** False: nothing that is said becomes a memory, as for exchanges that only try something. */
  readonly remembers?: boolean;
}

export interface Composed {
  readonly app: App;
  /** Puts another configuration in force; open exchanges keep theirs. */
  reload(config: Config): void;
  /** Opens the state on disk, which would else be opened when it is first needed; tells of trouble with it. */
  openState(): void;
  /** From now on `/readyz` says that this process is leaving. */
  drain(): void;
  /** Writes down what is still in memory. */
  close(): Promise<void>;
}

/** Everything that depends on the configuration; a reload makes it anew, of what there was before. */
interface Settings {
  readonly snapshot: Snapshot;
  readonly upstreams: UpstreamPool;
  readonly access: Access;
  readonly bodyBytes: number;
}

function settingsOf(config: Config, environment: Environment, last?: Settings): Settings {
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
  const slots = last?.snapshot.slots ?? new Slots(limits.concurrency);
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
  const path = url.slice('demo:'.length).replace(/\?.*$/, '');
  return transport({ path, headers, body, signal: abort.signal });
}

export function compose(options: ComposeOptions): Composed {
  const { environment, log } = options;
  let settings = settingsOf(options.config, environment);
  let draining = false;
  const metrics = createGatewayMetrics(options.version);
  const responses = deferred(() =>
    openResponseStore({
      path: join(environment.home, 'state', 'responses.db'),
      warn: (message) => event(log, 'responses.store.problem', { message }, 'warn'),
    }),
  );
  const store = responses.value;
  const state = responseState(store);
  const recorder = recorderFor(options.config, log);
  const room = memoryRoom(
    {
      log,
      metrics,
      recorder: {
        eraseSpace: (space) => {
          features.forgetTurns();
          store.eraseSpace(space);
          return recorder.eraseSpace(space);
        },
      },
      upstream: (provider) => settings.upstreams.of(provider),
      keeps: options.remembers !== false,
    },
    options.config,
  );

  const tell = (record: ExchangeRecord) => {
    countExchange(metrics, record);
    logExchange(log, record);
  };
  const shared = {
    protocols: PROTOCOLS,
    snapshot: () => settings.snapshot,
    onRetry: ({ target, error }: Pick<Failed, 'target' | 'error'>) =>
      metrics.retries.add(1, target?.provider ?? '', error.kind),
    onEnd: (summary: Summary) => atTurnEnd(new Ended(summary, tell)),
  };
  // What the gateway itself asks of a model passes no features: nothing it says could call for more.
  const bare = createGateway({
    ...shared,
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
    ...shared,
    mend: options.repair === false ? undefined : mendBody,
    extras(exchange, ask, recording) {
      const found = options.repair === false ? NOTHING : features.of(exchange, ask, recording);
      const own = state.extras(exchange, ask, found.space);
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
    onRefused: (request: Request, protocol: Protocol, id: string, error: GatewayError) => {
      atTurnEnd(new Ended(refusedRecord(request, protocol, id, error), tell));
    },
  };
  const serve = serveWith(exchanges, gateway);
  const memoryDoor: Parameters<typeof room.api>[0] = (handle) =>
    serveWith({ ...exchanges, onRefused: room.refused }, handle);
  const stored =
    (handle: (id: string, owner: string, url: URL) => unknown) => (request: Request, id: string) =>
      serveWith(exchanges, async ({ owner }) =>
        Response.json(handle(id, owner, new URL(request.url))),
      )(new Request(request.url, { headers: request.headers }), openaiResponses);

  const ui = createUi({
    ...workbenchTools(compose, PROTOCOLS, environment, options.version),
    version: options.version,
    access,
    config: () => settings.snapshot.table.config,
    root: resolve(options.config.samples.dir),
    mend: mendBody,
    watch: (watcher) => recorder.watch(watcher),
  });

  const routes: Routes = {
    ...openaiChatRoutes(serve),
    ...anthropicMessagesRoutes({ serve, countTokens: serveWith(exchanges, counter) }),
    ...openaiResponsesRoutes({
      serve,
      search: serveWith(exchanges, async ({ body, signal }) => {
        const value = tryParse(new TextDecoder().decode(body));
        if (value === undefined) throw invalid('The request body is not valid JSON.');
        const answer = features.codexSearch(value, signal);
        if (answer === undefined) throw new GatewayError('not_found', 'No search is configured.');
        return Response.json(await answer);
      }),
      retrieve: stored(state.retrieve),
      remove: stored(state.remove),
      inputItems: stored(state.inputItems),
      refuse: (_request, status, message) =>
        errorResponse(openaiResponses, new GatewayError('invalid_request', message, { status }), {
          requestId: requestId(),
          target: undefined,
          notes: undefined,
        }),
    }),
    ...healthRoutes(() => (draining ? 'shutting down' : undefined)),
  };
  // Loaded and put together when somebody first asks for it: no model request needs it.
  let others: Promise<Pick<App, 'fetch'>> | undefined;
  const otherApp = () =>
    import('./compose-others.ts').then(({ otherRoutes }) =>
      otherRoutes({
        ui,
        memory: room.api(memoryDoor, openaiChat, options.version),
        fallback: openaiChat,
        anthropic: anthropicMessages,
        access,
        version: options.version,
        metrics: () => metrics.render(),
        // A scraper on this machine needs no key; over a network it does.
        metricsOpen: isLoopback(options.config.listen.host),
        models: () =>
          models(settings.snapshot.table.config).map(({ id, provider }) => ({
            id,
            provider,
            created: STARTED,
          })),
      }),
    );

  return {
    app: {
      routes,
      async fetch(request) {
        others ??= otherApp();
        return (await others).fetch(request);
      },
    },
    reload: (config) => {
      features.configure(config);
      recorder.configure(recorderSettings(config));
      settings = settingsOf(config, environment, settings);
      room.configure(config);
    },
    openState: () => {
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
      features.close();
    },
  };
}

const NOTHING: OfExchange = { features: [], space: undefined };

const STARTED = Math.floor(Date.now() / 1000);
