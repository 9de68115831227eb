/** Everything that the routes of the server use: made once for a process, configured again by a reload. */

import { join, resolve } from 'node:path';
import type { AdminOptions } from '../admin/plugin.ts';
import type { Codec, EmbedMethod } from '../codecs/codec.ts';
import { openaiResponses } from '../codecs/openai-responses/index.ts';
import { codexModels } from '../codecs/openai-responses/plugin.ts';
import type { Asked } from '../codecs/serve.ts';
import { needsKey } from '../config/sections/auth.ts';
import { GatewayError } from '../conversation/errors.ts';
import type { EndpointName } from '../conversation/models/endpoint-names.ts';
import { mayGetVendorIds, mayNameVendorIds } from '../conversation/vendor-ids.ts';
import type { Operation } from '../endpoints/batches/operations.ts';
import { createBatches } from '../endpoints/batches/pipeline.ts';
import { type Endpoint, embeddingsBy } from '../endpoints/endpoint.ts';
import { createEndpoints } from '../endpoints/pipeline.ts';
import type { Feature } from '../features/feature.ts';
import { checkHostedTools } from '../features/server-tools/index.ts';
import { IssuedIds, NamedIds } from '../features/vendor-ids/index.ts';
import type { ClientRequest } from '../gateway/client-request.ts';
import { createTokenCounter } from '../gateway/count-tokens/count-tokens.ts';
import { createGateway } from '../gateway/gateway.ts';
import { Histories } from '../gateway/histories/histories.ts';
import { AnswerSessions } from '../gateway/tries/answer-sessions.ts';
import { learntFacts } from '../gateway/tries/learnt-targets.ts';
import type { Gateway } from '../gateway/types.ts';
import { JwtTokens } from '../keys/jwt-tokens.ts';
import type { Principal } from '../keys/principal.ts';
import { ClientAddresses } from '../lib/http/client-address.ts';
import type { ReadonlyHeaders } from '../lib/http/headers.ts';
import { passedGateways } from '../lib/http/loop-mark.ts';
import { memberOf } from '../lib/json/json-members.ts';
import { tickEnd } from '../lib/loop/tick-end.ts';
import { homeMark } from '../lib/process/running.ts';
import { secretBase36 } from '../lib/text/ids.ts';
import { printableLine } from '../lib/text/printable-text.ts';
import { openLimits } from '../limits/open-limits.ts';
import { spentBy } from '../money/reports.ts';
import { refuseLoop } from '../server/auth.ts';
import { Connections } from '../server/connections.ts';
import { Cors } from '../server/cors.ts';
import { ErrorResponses } from '../server/errors.ts';
import { formSource, isForm } from '../server/form-source.ts';
import type { AppOptions, CreateApp } from '../server/hopgate-app.ts';
import { type ReceiveSettings, receive } from '../server/receive.ts';
import { Sockets } from '../server/websocket/sockets.ts';
import { nameHash } from '../state/erasures.ts';
import { NO_HINTS, ValkeyHints } from '../state/key-value/hints.ts';
import { createGatewayMetrics } from '../telemetry/gateway-metrics.ts';
import { event } from '../telemetry/log.ts';
import { createUi } from '../ui/index.ts';
import { cooldownLog } from '../upstream/health/cooldown-log.ts';
import { CooldownHints } from '../upstream/health/hints.ts';
import type { CooldownChange } from '../upstream/health/place.ts';
import { healthSnapshot } from '../upstream/health/snapshot.ts';
import { askForModels, ModelLists } from '../upstream/model-list.ts';
import { secretsOf } from '../upstream/secrets.ts';
import type { Upstream } from '../upstream/upstream.ts';
import { askThrough } from './ask-model.ts';
import { CODECS } from './codecs.ts';
import { configured, connectionLimits, keptBytes, socketLimits } from './configured.ts';
import { createFeatures, NO_FEATURES } from './features.ts';
import { sampleServices } from './in-process.ts';
import { Ledgers } from './ledgers.ts';
import { memoryService } from './memory.ts';
import { modelCatalogue } from './model-catalogue.ts';
import { accountServices, paying } from './operations/accounts.ts';
import { adminOptions, keyNames, openReports } from './operations/admin.ts';
import { engineServices } from './operations/engines.ts';
import { keyServices } from './operations/keys.ts';
import { replicaServices } from './operations/replicas.ts';
import { sampleReplicas } from './operations/sample-replicas.ts';
import { openVendorObjects, originOf } from './operations/vendor-objects.ts';
import { recorderFor, recorderSettings, retentionOf } from './recorder.ts';
import { mendBody } from './responses/mend-body.ts';
import { openResponses } from './responses/open-responses.ts';
import { responseState } from './responses/response-state.ts';
import { codexSearch, responsesRoutes } from './responses/routes.ts';
import { warmUp } from './responses/warm-up.ts';
import { logDamage, logExposed } from './state.ts';
import { joined, streamValidator } from './stream-validator.ts';
import { exchangeReports, logUnknownPaths, targetStates } from './telemetry/exchange-reports.ts';
import { traceRecording } from './telemetry/exchange-trace.ts';
import { Telemetry } from './telemetry/index.ts';

/** @param createApp for the gateways without a port by which the page replays samples */
export function createServices(options: AppOptions, createApp: CreateApp) {
  const { environment, log, version } = options;
  const tokens = new JwtTokens({
    onFailure: (message) => event(log, 'auth.jwks.failed', { message }, 'warn'),
    fetch: (url, init) => fetch(url, init),
    now: () => performance.now(),
  });
  const metrics = createGatewayMetrics(version);
  const engines = engineServices(options.config, { log, metrics });
  const { keys: runTimeKeys, report: keysReport } = keyServices(environment.home, engines, log);
  // The id of this process in the table of replicas, in leases and in the cache. 62 random bits: never used again.
  const replica = secretBase36(12);
  // A gateway that only tries something (a replay, a bisection) is none of the replicas, and leaves nothing for them.
  const remembers = options.remembers !== false;
  const replicas =
    engines.database !== undefined && options.as === undefined && remembers
      ? replicaServices(engines.database, options.config, { id: replica, version, log })
      : undefined;
  const logCooldown = cooldownLog((kind, cooldown) =>
    kind === 'began'
      ? event(log, 'target.rests', { ...cooldown }, 'warn')
      : event(log, 'target.back', { ...cooldown }),
  );
  const cache = remembers ? engines.cache : undefined;
  const hints = cache === undefined ? NO_HINTS : new ValkeyHints({ cache, replica });
  const cooldownHints = new CooldownHints(hints, () => current.upstreams);
  const outliving = {
    gatewayId: replica,
    runTimeKeys,
    tokens,
    onCooldown(upstream: Upstream, change: CooldownChange) {
      logCooldown(upstream.config.name, change);
      cooldownHints.tell(upstream, change);
    },
    replicas: () => hints.replicas,
  };
  let current = configured(options.config, environment, outliving);
  const health = {
    snapshot: () => {
      const learnt = learntFacts(Object.values(current.services.table.config.providers));
      const snapshot = healthSnapshot(current.upstreams.known);
      return learnt.length === 0 ? snapshot : { ...snapshot, learnt };
    },
    engines: () => ({
      engines: engines.report(),
      keys: keysReport(),
      replicas: replicas?.report(),
    }),
  };
  const services = () => current.services;
  const config = () => current.services.table.config;
  let draining = false;
  const showTargets = targetStates(metrics.targetState);
  const renderMetrics = async () => {
    // Exchanges are counted at the end of their tick; without this wait the newest is missing.
    await tickEnd();
    showTargets(health.snapshot().targets);
    engines.measure();
    return metrics.render();
  };
  const telemetry = new Telemetry(options.config, { log, metrics, version });
  const connections = new Connections(connectionLimits(options.config));
  const addresses = new ClientAddresses(connections, options.config.listen);
  const cors = new Cors(options.config.listen);
  const limits = openLimits({
    home: environment.home,
    log,
    metrics,
    channel: options.limitsChannel,
    shared: options.limits,
    engines: { ...engines, replica, onError: options.config.engines.onError },
  });
  // A gateway that only tries something (a replay, a bisection) leaves nothing to look at.
  const recorder = recorderFor(options.config, log, options.remembers !== false, (ids) =>
    sharing.purged(ids),
  );

  const responsesStore = openResponses({
    home: environment.home,
    log,
    metrics,
    workers: options.config.workers > 1,
    engines,
  });
  const continued = new AnswerSessions();
  const stateOf = responseState({ store: responsesStore, sessions: continued });
  const logNoDamage = logDamage(log);
  const sharing = sampleReplicas({
    engines,
    home: environment.home,
    root: resolve(options.config.samples.dir),
    recorder: () => recorder,
    retention: () => retentionOf(config()),
    eraseHere(space, until) {
      features.eraseSpace(space);
      return responsesStore
        .forgetSpace(nameHash(space), until)
        .then(() => recorder.eraseSpace(space, until));
    },
    warn: (message) => event(log, 'samples.problem', { message }, 'warn'),
    onPending: (count) => metrics.samplesPending.set(count),
  });

  const money = accountServices(
    {
      path: join(environment.home, 'state', 'spend.db'),
      log,
      metrics,
      guard: limits.guard,
      database: engines.database,
      isWorker: options.limitsChannel !== undefined,
    },
    options.config,
  );

  const memory = memoryService(
    {
      log,
      metrics,
      recorder: sharing,
      upstream: (provider) => current.upstreams.of(provider),
      ownPayer: money.own,
      engines,
      keeps: options.remembers !== false,
    },
    options.config,
  );

  // The gateway, and what it reports.
  const reports = exchangeReports({ log, metrics, telemetry, connections, addresses });
  const gatewayOptions = {
    protocols: CODECS,
    services,
    histories: new Histories(() => keptBytes(config()).historyBytes),
    accounts: money.accounts,
    continued,
    ...reports.ofGateway,
  };
  // What the gateway itself asks of a model passes no features: an answer there must not ask for more.
  const bareGateway = createGateway({
    ...gatewayOptions,
    featuresFor: () => undefined,
    record: traceRecording,
    onStream: () => {},
  });
  const features = createFeatures(
    {
      environment,
      log,
      metrics,
      version,
      ask: askThrough(bareGateway),
      ledgers: new Ledgers({
        cache,
        seal: engines.seal,
        home: environment.home,
        log,
        metrics,
      }),
      get memory() {
        return memory.memory;
      },
    },
    options.config,
  );
  const vendorObjects = openVendorObjects(environment.home, engines);
  const vendorIds = (owner: string, request: ClientRequest): readonly Feature[] => {
    const ids: Feature[] = [];
    const { bytes } = request;
    if (mayNameVendorIds(bytes)) ids.push(new NamedIds(owner, bytes, vendorObjects.foreign));
    const asks = () => mayGetVendorIds(bytes, request.decoded);
    // Without keys all clients are one owner.
    if (owner !== '' && asks()) {
      ids.push(new IssuedIds((...learnt) => vendorObjects.learn(owner, ...learnt), asks));
    }
    return ids;
  };
  const gateway = createGateway({
    ...gatewayOptions,
    repairBody: options.repair === false ? undefined : mendBody,
    featuresFor(exchange, request, recording, payer, session) {
      checkHostedTools(exchange.principal.policy, request);
      const found =
        options.repair === false ? NO_FEATURES : features.of(exchange, request, recording, payer);
      const own = stateOf(exchange, request, found.space, session);
      const ids = vendorIds(exchange.owner, request);
      if (own === undefined && ids.length === 0) return found;
      return {
        ...found,
        ...own,
        features: [...ids, ...(own?.features ?? []), ...found.features],
      };
    },
    record: (exchange) =>
      joined(
        joined(recorder.begin(exchange), traceRecording(exchange, telemetry.keepsContent)),
        streamValidator(config().validate, exchange, log, metrics),
      ),
    onStream: (open) => metrics.streamsActive.add(open ? 1 : -1),
  });

  // From an HTTP request to the gateway.
  const { as } = options;
  // A gateway that only tries something is asked in the name of one principal.
  const needsKeys = () => as === undefined && needsKey(config().auth);
  const access = as === undefined ? () => current.access : () => () => as;
  const receiving: ReceiveSettings = {
    access,
    gatewayId: replica,
    bodyBytes: () => current.bodyBytes,
    trace: telemetry.begin,
    connections,
    address: (request, headers) => addresses.of(request, headers),
    onRefused: reports.refused,
  };
  /** The same, under the name of an endpoint. */
  const endpointRefused =
    (name: EndpointName): ReceiveSettings['onRefused'] =>
    (request, _codec, ...refusal) =>
      receiving.onRefused(request, { name }, ...refusal);
  const received = (handle: Gateway) => receive(receiving, handle);
  const serve = receive(receiving, gateway, { goesOn: true });
  const sockets = new Sockets({
    serve,
    warmUp: received(
      paying(
        money.accounts,
        false,
        warmUp({ store: responsesStore, repairBody: mendBody, config }),
      ),
    ),
    access,
    onRefused: receiving.onRefused,
    connections,
    address: (request) => addresses.of(request),
    limits: () => socketLimits(config()),
  });
  const endpoints = createEndpoints({
    ...gatewayOptions,
    foreignIds: vendorObjects.foreign,
    record: (recorded, exchange) => joined(recorder.begin(recorded), traceRecording(exchange)),
    onStream: (open) => metrics.streamsActive.add(open ? 1 : -1),
    folder: join(environment.home, 'state', 'forms'),
  });
  const batches = createBatches({
    ...gatewayOptions,
    objects: vendorObjects.objects,
    learnIds: vendorObjects.learn,
    foreignIds: vendorObjects.foreign,
    onStream: (open) => metrics.streamsActive.add(open ? 1 : -1),
    folder: join(environment.home, 'state', 'forms'),
  });
  const formOf = (request: Request, headers: ReadonlyHeaders, key: string) =>
    isForm(headers)
      ? formSource(request, headers, config().limits.formBytes, connections, key)
      : undefined;
  const atEndpoint = (endpoint: Endpoint) => {
    const { name } = endpoint;
    const onRefused = endpointRefused(name);
    const options = { goesOn: true, entry: name, formOf };
    return receive(
      { ...receiving, onRefused },
      (exchange) => endpoints(exchange, endpoint),
      options,
    );
  };
  const countTokens = createTokenCounter({
    protocols: CODECS,
    services,
    foreignIds: vendorObjects.foreign,
  });
  const responses = responsesRoutes({
    store: responsesStore,
    learnIds: vendorObjects.learn,
    upstream: (name) => {
      const provider = memberOf(config().providers, name);
      return provider && current.upstreams.of(provider);
    },
    secrets: () => secretsOf(config()),
    count: countTokens,
    received,
    limited: (handle, costs) => received(paying(money.accounts, costs, handle)),
    gateway,
    upgrade: (request) => sockets.upgrade(request, openaiResponses),
    search: paying(money.accounts, true, (exchange, payer) =>
      codexSearch(exchange, payer, features),
    ),
  });

  const errors = new ErrorResponses({
    fallback: CODECS['openai-chat'],
    anthropic: CODECS['anthropic-messages'],
    google: CODECS['google-gemini'],
    access,
    onUnknownPath: logUnknownPaths(log, (request) => addresses.of(request)),
  });
  const ui = createUi({
    ...sampleServices(
      (inner) => createApp({ ...inner, limits: limits.limits }),
      environment,
      version,
    ),
    version,
    access,
    config,
    root: resolve(options.config.samples.dir),
    mend: mendBody,
    watch: (watcher) => recorder.watch(watcher),
    recorder,
    replicas: sharing,
    keys: keyNames(runTimeKeys),
    reports: openReports({ current: () => current, keys: runTimeKeys, spend: money.spend }),
  });
  const catalogue = modelCatalogue({
    services,
    lists: new ModelLists(askForModels(environment.proxies, replica)),
  });

  return {
    version,
    connections,
    addresses,
    cors,
    sockets,
    errors,
    ui,
    health,
    /** The gateway with all features. The exchange goes on behind the response. */
    serve,
    embed: (request: Request, codec: Codec, asked: Asked, method: EmbedMethod) =>
      atEndpoint(embeddingsBy(method))(request, codec, asked),
    serveEndpoint: (request: Request, endpoint: Endpoint) =>
      atEndpoint(endpoint)(request, CODECS['openai-chat']),
    serveOperation(request: Request, operation: Operation, id: string) {
      const { name, api } = operation;
      const isAnthropic =
        (api ?? (errors.isAnthropic(request) ? 'anthropic' : 'openai')) !== 'openai';
      const options = { goesOn: true, entry: name, formOf };
      const handle: Gateway = (exchange) =>
        batches(exchange, { operation, id, origin: originOf(request) });
      return receive(
        { ...receiving, onRefused: endpointRefused(name) },
        handle,
        options,
      )(request, CODECS[isAnthropic ? 'anthropic-messages' : 'openai-chat']);
    },
    countTokens: received(paying(money.accounts, true, countTokens)),
    responses,
    memoryApi: memory.api(
      (handle) =>
        receive(
          { ...receiving, onRefused: memory.refused },
          paying(money.accounts, false, (exchange, payer) => handle(exchange, payer)),
        ),
      CODECS['openai-chat'],
      version,
    ),
    get admin(): AdminOptions {
      return adminOptions({
        current: () => current,
        keys: runTimeKeys,
        spend: money.spend,
        limits,
        log,
        address: (request) => addresses.of(request),
      });
    },
    async models(principal: Principal, headers: Headers) {
      refuseLoop(headers, replica);
      const guard = await limits.guard(principal, false);
      try {
        return await catalogue.list(principal, passedGateways(headers));
      } finally {
        guard?.end();
      }
    },
    model: catalogue.find,
    codexModels,
    metricsText: async () => {
      const own = await renderMetrics();
      return options.metricsOfAll?.(own) ?? own;
    },
    isOperator: (headers: Headers) =>
      (needsKeys() && config().auth.metrics === 'open') || current.isAdmin(headers),
    seesAll: ({ sees }: Principal) => sees === 'all' || config().auth.metrics === 'keys',
    noPage(request: Request, pathname: string) {
      const message = `There is no page ${printableLine(pathname, 200)} in the manual.`;
      const error = new GatewayError('not_found', message, { code: 'not_found' });
      return errors.response(request, error);
    },
    usage: async (principal: Principal) => ({
      ...(await limits.usage(principal)),
      spent: await spentBy(money.spend, principal.id, Date.now()).catch(() => null),
    }),
    homeMark: () => homeMark(environment.home),
    unready: () => (draining ? 'shutting down' : needsKeys() ? runTimeKeys.unready : undefined),

    lifecycle: {
      reload(config: AppOptions['config']) {
        features.configure(config);
        recorder.configure(recorderSettings(config));
        money.configure(config);
        connections.configure(connectionLimits(config));
        addresses.configure(config.listen);
        cors.configure(config.listen);
        current = configured(config, environment, outliving, current);
        memory.configure(config);
        replicas?.configure(config);
        if (needsKeys()) runTimeKeys.follow();
        telemetry.configure(config);
      },
      metrics: renderMetrics,
      workerLimits: limits.workerLimits,
      handOver: limits.handOver,
      openStores() {
        logExposed(log, [environment.home, options.config.samples.dir]);
        engines.open();
        cooldownHints.open();
        replicas?.open();
        responsesStore.open();
        money.open();
        if (needsKeys()) runTimeKeys.follow();
        features.openStores();
        sharing.open();
        telemetry.open();
      },
      drain() {
        draining = true;
        void ui.close();
      },
      async close() {
        await ui.close();
        await recorder.close();
        await sharing.close();
        await memory.close();
        await responsesStore.close();
        vendorObjects.close();
        await money.close();
        await limits.close();
        await replicas?.close();
        await runTimeKeys.close();
        await hints.close();
        // What it still has to say goes to the engines.
        await features.close();
        await engines.close();
        await telemetry.close();
        logNoDamage();
      },
    },
  };
}
