/** Everything that the routes of the server use: made once for a process, configured anew by a reload. */

import { join, resolve } from 'node:path';
import { configuredKeys } from '../admin/configured-keys.ts';
import type { AdminOptions } from '../admin/plugin.ts';
import type { ModelEntry } from '../codecs/codec.ts';
import { codexModels } from '../codecs/openai-responses/codex-models.ts';
import { openaiResponses } from '../codecs/openai-responses/index.ts';
import { needsKey } from '../config/sections/auth.ts';
import { factsOf, priceOf } from '../config/vendors/catalogue.ts';
import { GatewayError, invalid } from '../conversation/errors.ts';
import type { EndpointName } from '../conversation/models/endpoint-names.ts';
import { targetName } from '../conversation/target.ts';
import type { Endpoint } from '../endpoints/endpoint.ts';
import { createEndpoints } from '../endpoints/pipeline.ts';
import { openResponseStore } from '../features/response-store/index.ts';
import { repairBody } from '../features/tool-pairing/index.ts';
import { createTokenCounter } from '../gateway/count-tokens/count-tokens.ts';
import { errorResponse } from '../gateway/error-response.ts';
import { createGateway } from '../gateway/gateway.ts';
import type { FailedOutcome, Gateway, Summary } from '../gateway/types.ts';
import { JwtTokens } from '../keys/jwt-tokens.ts';
import { KeyChanges } from '../keys/key-changes.ts';
import { type Principal, WITHOUT_KEY } from '../keys/principal.ts';
import { RunTimeKeys } from '../keys/run-time-keys.ts';
import type { ReadonlyHeaders } from '../lib/http/headers.ts';
import { isLoopback } from '../lib/http/local-address.ts';
import { tryParse } from '../lib/json/json.ts';
import { memberOf } from '../lib/json/json-members.ts';
import { atTickEnd } from '../lib/loop/tick-end.ts';
import { lazy } from '../lib/store/lazy.ts';
import { requestId } from '../lib/text/ids.ts';
import { printableLine } from '../lib/text/printable-text.ts';
import { openLimits } from '../limits/open-limits.ts';
import { spendReports } from '../money/reports.ts';
import { mayReach, modelsWith, openProviders, targetFor } from '../routing/index.ts';
import { Connections } from '../server/connections.ts';
import { ErrorResponses } from '../server/errors.ts';
import { formSource, isForm } from '../server/form-source.ts';
import type { AppOptions, CreateApp } from '../server/hopgate-app.ts';
import { type ReceiveSettings, receive, rested } from '../server/receive.ts';
import { Sockets } from '../server/websocket/sockets.ts';
import { countExchange, logExchange } from '../telemetry/exchange.ts';
import { createGatewayMetrics } from '../telemetry/gateway-metrics.ts';
import { event } from '../telemetry/log.ts';
import { createUi } from '../ui/index.ts';
import { restReports } from '../upstream/health/report.ts';
import { healthSnapshot, STATE_VALUES } from '../upstream/health/snapshot.ts';
import { askForModels, ModelLists } from '../upstream/model-list.ts';
import { refusedKeys } from '../upstream/refused-keys.ts';
import { askThrough } from './ask-model.ts';
import { CODECS } from './codecs.ts';
import { configured, connectionLimits, socketLimits } from './configured.ts';
import { EndedExchange, type ReportExchange, refusedRecord } from './exchange-log.ts';
import { createFeatures, NO_FEATURES } from './features.ts';
import { sampleServices } from './in-process.ts';
import { memoryService } from './memory.ts';
import { accountServices, paying } from './operations/accounts.ts';
import { recorderFor, recorderSettings } from './recorder.ts';
import { compacted } from './responses/compact.ts';
import { responseState } from './responses/response-state.ts';
import { CONVERSATIONS, notServed, storedResponses } from './responses/stored-responses.ts';
import { warmUp } from './responses/warm-up.ts';
import { logDamage, logExposed } from './state.ts';
import { joined, streamValidator } from './stream-validator.ts';
import { traceRecording } from './telemetry/exchange-trace.ts';
import { Telemetry } from './telemetry/index.ts';

/** @param createApp for the gateways without a port by which the page replays samples */
export function createServices(options: AppOptions, createApp: CreateApp) {
  const { environment, log, version } = options;
  const runTimeKeys = new RunTimeKeys({
    path: join(environment.home, 'state', 'keys.db'),
    warn: (message) => event(log, 'keys.problem', { message }, 'warn'),
  });
  const tokens = new JwtTokens({
    onFailure: (message) => event(log, 'auth.jwks.failed', { message }, 'warn'),
    fetch: (url, init) => fetch(url, init),
    now: () => performance.now(),
  });
  const metrics = createGatewayMetrics(version);
  const onChange = restReports({
    rests: (change) => event(log, 'target.rests', { ...change }, 'warn'),
    back: (change) => event(log, 'target.back', { ...change }),
  });
  const outliving = { runTimeKeys, tokens, onChange };
  let current = configured(options.config, environment, outliving);
  const health = { snapshot: () => healthSnapshot(current.upstreams.known) };
  const services = () => current.services;
  const config = () => current.services.table.config;
  let draining = false;
  const shared = options.config.workers > 1;
  let told: ReadonlySet<string> = new Set();
  const renderMetrics = () => {
    const { targets } = health.snapshot();
    // A target that a reload took away must not rest for ever.
    for (const target of told) metrics.targetState.set(STATE_VALUES.serving, target);
    for (const { target, state } of targets) metrics.targetState.set(STATE_VALUES[state], target);
    told = new Set(targets.map(({ target }) => target));
    return metrics.render();
  };
  const telemetry = new Telemetry(options.config, { log, metrics, version });
  const connections = new Connections(connectionLimits(options.config));
  const limits = openLimits({
    home: environment.home,
    log,
    metrics,
    channel: options.limitsChannel,
    shared: options.limits,
  });
  // A gateway that only tries something (a replay, a bisection) leaves nothing to look at.
  const recorder = recorderFor(options.config, log, options.remembers !== false);

  const openedResponses = lazy(() =>
    openResponseStore({
      shared,
      path: join(environment.home, 'state', 'responses.db'),
      warn: (message) => event(log, 'responses.store.problem', { message }, 'warn'),
    }),
  );
  const responseStore = openedResponses.value;
  const stateOf = responseState({ store: responseStore, shared });
  const logNoDamage = logDamage(log);

  const money = accountServices(
    {
      path: join(environment.home, 'state', 'spend.db'),
      log,
      metrics,
      guard: limits.guard,
    },
    options.config,
  );

  const memory = memoryService(
    {
      log,
      metrics,
      recorder: {
        eraseSpace: (space) => {
          features.eraseSpace(space);
          responseStore.eraseSpace(space);
          return recorder.eraseSpace(space);
        },
      },
      upstream: (provider) => current.upstreams.of(provider),
      ownPayer: money.own,
      keeps: options.remembers !== false,
    },
    options.config,
  );

  // The gateway, and what it reports.
  const report: ReportExchange = (record, summary) => {
    countExchange(metrics, record);
    logExchange(log, record);
    if (summary !== undefined) telemetry.ended(record, summary);
  };
  const gatewayOptions = {
    protocols: CODECS,
    services,
    accounts: money.accounts,
    onRetry: ({ target, error }: Pick<FailedOutcome, 'target' | 'error'>) => {
      metrics.retries.add(1, target?.provider ?? '', error.kind);
      const tooLarge = error.kind === 'context_overflow' || error.kind === 'too_large';
      if (tooLarge && target !== undefined) {
        event(log, 'upstream.passed', { target: targetName(target), reason: error.kind });
      }
    },
    onHedge: (provider: string) => metrics.retries.add(1, provider, 'slow'),
    onKeyRefused: refusedKeys((provider, key, status) =>
      event(log, 'upstream.key_refused', { provider, key, status }, 'warn'),
    ),
    onEnd: (summary: Summary) => {
      rested(connections, summary.exchange);
      atTickEnd(new EndedExchange(summary, report, telemetry.vendorOf));
    },
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
      get memory() {
        return memory.memory;
      },
    },
    options.config,
  );
  const gateway = createGateway({
    ...gatewayOptions,
    repairBody: options.repair === false ? undefined : repairBody,
    featuresFor(exchange, request, recording, payer) {
      const found =
        options.repair === false ? NO_FEATURES : features.of(exchange, request, recording, payer);
      const own = stateOf(exchange, request, found.space);
      return own === undefined ? found : { ...own, features: [...own.features, ...found.features] };
    },
    record: (exchange) =>
      joined(
        joined(recorder.begin(exchange), traceRecording(exchange)),
        streamValidator(config().validate, exchange, log, metrics),
      ),
    onStream: (open) => metrics.streamsActive.add(open ? 1 : -1),
  });

  // From an HTTP request to the gateway.
  const { as } = options;
  const access = as === undefined ? () => current.access : () => () => as;
  const receiving: ReceiveSettings = {
    access,
    bodyBytes: () => current.bodyBytes,
    trace: telemetry.begin,
    connections,
    onRefused: (request, codec, id, error, owner) => {
      const record = refusedRecord(request, codec, id, error, owner);
      atTickEnd(new EndedExchange(record, report, telemetry.vendorOf));
    },
  };
  /** The same, under the name of an endpoint. */
  const endpointRefused =
    (name: EndpointName): ReceiveSettings['onRefused'] =>
    (request, _codec, id, error, owner) =>
      receiving.onRefused(request, { name }, id, error, owner);
  const received = (handle: Gateway) => receive(receiving, handle);
  const serve = receive(receiving, gateway, { goesOn: true });
  const sockets = new Sockets({
    serve,
    warmUp: received(warmUp({ store: responseStore, shared, repairBody, config })),
    access,
    onRefused: receiving.onRefused,
    connections,
    limits: () => socketLimits(config()),
  });
  const endpoints = createEndpoints({
    ...gatewayOptions,
    record: (recorded, exchange) => joined(recorder.begin(recorded), traceRecording(exchange)),
    onStream: (open) => metrics.streamsActive.add(open ? 1 : -1),
    folder: join(environment.home, 'state', 'forms'),
  });
  const formOf = (request: Request, headers: ReadonlyHeaders) =>
    isForm(headers)
      ? formSource(request, headers, config().limits.formBytes, connections)
      : undefined;
  const countTokens = createTokenCounter({ protocols: CODECS, services });
  const stored = storedResponses({
    store: responseStore,
    shared,
    upstream: (name) => {
      const provider = memberOf(config().providers, name);
      return provider && current.upstreams.of(provider);
    },
    count: countTokens,
  });
  const byId = (handle: typeof stored.retrieve) => (request: Request, id: string) =>
    received((exchange) => handle(exchange, id))(request, openaiResponses);
  const refused = (message: string) => received(() => Promise.reject(notServed(message)));

  const errors = new ErrorResponses({
    fallback: CODECS['openai-chat'],
    anthropic: CODECS['anthropic-messages'],
    google: CODECS['google-gemini'],
    access,
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
    mend: repairBody,
    watch: (watcher) => recorder.watch(watcher),
    recorder,
  });
  const modelLists = new ModelLists(askForModels(environment.proxies));
  const modelEntry = (id: string, name: string, target: ModelTarget | undefined): ModelEntry => {
    const provider = target && memberOf(config().providers, target.provider);
    const common = { id, provider: name, created: STARTED };
    if (provider === undefined) return common;
    const { model } = target!;
    const facts = factsOf(provider, model, modelLists.factsOf(provider, model));
    const price = priceOf(provider, model);
    return { ...common, ...(facts && { facts }), ...(price && { price }) };
  };

  return {
    version,
    connections,
    sockets,
    errors,
    ui,
    health,
    /** The gateway with all features. The exchange goes on behind the response. */
    serve,
    serveEndpoint(request: Request, endpoint: Endpoint) {
      const { name } = endpoint;
      const refused = endpointRefused(name);
      const options = { goesOn: true, entry: name, formOf };
      const handle: Gateway = (exchange) => endpoints(exchange, endpoint);
      return receive(
        { ...receiving, onRefused: refused },
        handle,
        options,
      )(request, CODECS['openai-chat']);
    },
    countTokens: received(countTokens),
    responses: {
      search: received(
        paying(money.accounts, async ({ body: bytes, principal, signal }, payer) => {
          const body = tryParse(new TextDecoder().decode(bytes));
          if (body === undefined) throw invalid('The request body is not valid JSON.');
          const answer = features.codexSearch({ body, principal, signal, payer });
          if (answer === undefined)
            throw new GatewayError('not_found', 'No search is configured.', { code: 'no_search' });
          return Response.json(await answer);
        }),
      ),
      socket: (request: Request) => sockets.upgrade(request, openaiResponses),
      retrieve: byId(stored.retrieve),
      remove: byId(stored.remove),
      inputItems: byId(stored.inputItems),
      cancel: byId(stored.cancel),
      inputTokens: received(stored.counted),
      compact: received(compacted({ store: responseStore, shared, gateway })),
      conversations: refused(CONVERSATIONS),
      refuse(status: number, message: string) {
        const answer = errorResponse(
          openaiResponses,
          new GatewayError('invalid_request', message, { status }),
          { requestId: requestId(), target: undefined, notes: undefined },
        );
        if (status === 405) answer.headers.set('allow', 'POST');
        return answer;
      },
    },
    memoryApi: memory.api(
      (handle) =>
        receive(
          { ...receiving, onRefused: memory.refused },
          paying(money.accounts, (exchange, payer) => handle(exchange, payer)),
        ),
      CODECS['openai-chat'],
      version,
    ),
    get admin(): AdminOptions {
      return {
        admin: (headers) => current.admin(headers),
        keys: new KeyChanges({
          file: runTimeKeys,
          routes: () => config().routes.map(({ name }) => name),
        }),
        configured: () => configuredKeys(config().auth.keys),
        reports: {
          ...spendReports(money.journal),
          budgets: async () =>
            Response.json(
              await limits.budgets([
                ...config().budgets,
                ...config().auth.keys.flatMap(({ budgets }) => budgets),
              ]),
            ),
        },
        onChange: (change) => event(log, 'keys.changed', { ...change }),
        onFailure: ({ status, message, cause }) =>
          event(log, 'admin.failed', { status, message, cause: String(cause) }, 'error'),
      };
    },
    async models(principal: Principal) {
      const listed = await modelLists.of(openProviders(config()));
      const { table } = services();
      return modelsWith(config(), listed)
        .filter(({ id }) => principal === WITHOUT_KEY || mayReach(principal, id, table))
        .map(({ id, provider, target }) =>
          modelEntry(id, provider, target ?? targetFor(table, id)?.target),
        );
    },
    codexModels,
    model(id: string, principal: Principal) {
      const { table } = services();
      const target = targetFor(table, id)?.target;
      if (target === undefined || !mayReach(principal, id, table)) return undefined;
      return modelEntry(id, target.provider, target);
    },
    metricsText: () => {
      const own = renderMetrics();
      return options.metricsOfAll?.(own) ?? own;
    },
    // Prometheus on this machine needs no key; over a network it does.
    metricsOpen: isLoopback(options.config.listen.host),
    noPage(request: Request, pathname: string) {
      const message = `There is no page ${printableLine(pathname, 200)} in the manual.`;
      const error = new GatewayError('not_found', message, { code: 'not_found' });
      return errors.response(request, error);
    },
    usage: limits.usage,
    unready: () => (draining ? 'shutting down' : undefined),

    lifecycle: {
      reload(config: AppOptions['config']) {
        features.configure(config);
        recorder.configure(recorderSettings(config));
        money.configure(config);
        connections.configure(connectionLimits(config));
        current = configured(config, environment, outliving, current);
        memory.configure(config);
        if (as === undefined && needsKey(config.auth)) runTimeKeys.follow();
        telemetry.configure(config);
      },
      metrics: renderMetrics,
      workerLimits: limits.workerLimits,
      handOver: limits.handOver,
      openStores() {
        logExposed(log, [environment.home, options.config.samples.dir]);
        openedResponses.create();
        money.journal.open();
        // A gateway that only tries something is asked in the name of one principal.
        if (as === undefined && needsKey(config().auth)) runTimeKeys.follow();
        features.openStores();
        telemetry.open();
      },
      drain() {
        draining = true;
        void ui.close();
      },
      async close() {
        await ui.close();
        await recorder.close();
        await memory.close();
        openedResponses.created?.close();
        money.journal.close();
        limits.close();
        runTimeKeys.close();
        await features.close();
        await telemetry.close();
        logNoDamage();
      },
    },
  };
}

/** Where a listed name leads. */
type ModelTarget = { readonly provider: string; readonly model: string };

const STARTED = Math.floor(Date.now() / 1000);
