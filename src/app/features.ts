/** The features in the order in which they act on an exchange, with the stores that they share. */

import { join } from 'node:path';
import type { Config } from '../config/config.ts';
import type { Payer } from '../conversation/account/payer.ts';
import { uniqueCallIds, vendorCallIds } from '../features/call-ids/index.ts';
import { compaction } from '../features/compaction/index.ts';
import type { Feature } from '../features/feature.ts';
import { forcedChoice } from '../features/forced-choice/index.ts';
import { PromptCache, RequestTails } from '../features/prompt-cache/index.ts';
import { openSessionLedger, reasoningMemory } from '../features/reasoning-memory/index.ts';
import { refusalRetry } from '../features/refusal-retry/index.ts';
import { memoryLedger, openHopLedger, permittedTools } from '../features/server-tools/index.ts';
import { toolPairing } from '../features/tool-pairing/index.ts';
import { openShortResultLedger, toolResults } from '../features/tool-results/index.ts';
import { vendorFit } from '../features/vendor-fit/index.ts';
import { openDescriptionStore, withReadAhead, withRunReport } from '../features/vision/index.ts';
import type { ClientRequest } from '../gateway/client-request.ts';
import { sidePayer } from '../gateway/tries/side-calls.ts';
import type { Exchange, ExchangeFeatures } from '../gateway/types.ts';
import type { JsonObject } from '../lib/json/json.ts';
import type { Recording } from '../samples/recording.ts';
import type { HashedName } from '../state/erasures.ts';
import { lazy } from '../state/lazy.ts';
import { event } from '../telemetry/log.ts';
import { secretsOf } from '../upstream/secrets.ts';
import { conversationOf, strayHeaders, withConversationTools } from './chat-apps.ts';
import type { ExchangeSetup, FeaturesOptions } from './exchange-setup.ts';
import { leakedCallsByUse } from './leaked-calls.ts';
import {
  type CodexSearch,
  configuredTools,
  searchForCodex,
  serverToolsOf,
} from './server-tools.ts';
import { ownKey, visionBySpace } from './vision.ts';

export interface FeaturesOfExchange {
  readonly features: readonly Feature[];
  /** The memory space that the request uses. */
  readonly space: string | undefined;
  /** As {@link ExchangeFeatures.beforeEnd}. */
  readonly beforeEnd?: ExchangeFeatures['beforeEnd'];
}

export const NO_FEATURES: FeaturesOfExchange = { features: [], space: undefined };

export interface Features {
  /** What acts on one exchange, under the configuration that is in force now. */
  of(
    exchange: Exchange,
    request: ClientRequest,
    recording: Recording | undefined,
    payer: Payer | undefined,
  ): FeaturesOfExchange;
  /** Codex' own search endpoint: `{output}` for its body; undefined when no search is configured. */
  codexSearch(search: CodexSearch): Promise<JsonObject> | undefined;
  /** Forgets the images of a memory space, and what was recalled for open turns. */
  eraseSpace(space: string | HashedName): void;
  /** Takes over another configuration. @throws Error with a message when its tools cannot be made */
  configure(config: Config): void;
  /** Opens the files that are otherwise opened on first use; logs trouble with them. */
  openStores(): void;
  /** Resolves when no tool server runs any more. */
  close(): Promise<void>;
}

/** Makes the feature for one exchange; undefined where it has nothing to do. */
type MakeFeature = (setup: ExchangeSetup) => Feature | readonly Feature[] | undefined;

export function createFeatures(options: FeaturesOptions, initial: Config): Features {
  const { environment, log, metrics } = options;
  const path = (name: string) => join(environment.home, 'state', name);
  const warn = (message: string) => event(log, 'state.problem', { message }, 'warn');
  const stores = {
    hops: lazy(() => openHopLedger({ path: path('hops.db'), warn })),
    answers: lazy(() => openSessionLedger({ path: path('session.db'), warn })),
    short: lazy(() => openShortResultLedger({ path: path('sent-short.db'), warn })),
    descriptions: lazy(() => openDescriptionStore({ path: path('descriptions.db'), warn })),
  };
  let config = initial;
  let tools = configuredTools(initial, options);
  let turns = memoryLedger();
  const leakedCalls = leakedCallsByUse(log, metrics);
  const { shared } = options;
  const descriptions = shared?.descriptions ?? stores.descriptions.value;
  const vision = visionBySpace(options, descriptions, () => config.serverTools);
  const textLimit = () => config.limits.toolText;
  const shortened = toolResults({ limit: textLimit, ledger: stores.short.value });
  const fitted = vendorFit();
  const tails = new RequestTails();
  const chatApp = {
    get memory() {
      return options.memory;
    },
    get settings() {
      return config.conversation;
    },
    log,
    onMarkup: leakedCalls.onMarkup,
  };

  /**
   * The order in which features act on a request; events of the answer come to them in the same order.
   * Calls are recovered before tools run, and a vendor's wishes are fitted to a history that is sound.
   */
  const order: readonly MakeFeature[] = [
    ({ exchange }) => (exchange.protocol.name === 'openai-responses' ? compaction : undefined),
    () => uniqueCallIds,
    leakedCalls.feature,
    ({ chat }) => chat?.before,
    (setup) => {
      const { chat, state } = setup;
      const sharedTurns = state?.turns(chat?.space);
      const feature = serverToolsOf(setup, {
        disk: state?.hops ?? stores.hops.value,
        turns: sharedTurns ?? turns,
        ahead: sharedTurns && { disk: state!.hops.prefetch, turns: sharedTurns.prefetch },
        rounds: config.limits.toolRounds,
        secrets: secretsOf(config),
        log,
      });
      state?.restoredBy(feature);
      return feature;
    },
    // Reasoning about what was recalled must not outlive its space.
    ({ exchange: { owner }, chat, state }) =>
      chat?.space === undefined
        ? reasoningMemory({
            ledger: state?.answers ?? stores.answers.value,
            ahead: state?.ahead(state.answers.prefetch),
            owner,
          })
        : undefined,
    ({ exchange: { owner }, chat, recording, state }) => {
      const space = chat?.space;
      const own = vision.of(space, owner);
      const ahead = state?.ahead((keys) => {
        const stored = space === undefined ? keys.map((key) => ownKey(key, owner)) : keys;
        return shared!.descriptions.prefetch(stored, space);
      });
      return withRunReport(
        ahead === undefined ? own : withReadAhead(own, ahead),
        recording && ((run) => recording.tool?.(run)),
      );
    },
    // In rounds that the client does not see, calls keep ids that differ.
    ({ registry }) => (registry.tools.length === 0 ? vendorCallIds : undefined),
    () => refusalRetry,
    () => toolPairing,
    ({ state }) =>
      state === undefined
        ? shortened
        : toolResults({
            limit: textLimit,
            ledger: state.short,
            ahead: state.ahead(state.short.prefetch),
          }),
    () => fitted,
    ({ exchange }) => new PromptCache(exchange, tails),
    forcedChoice,
    ({ chat }) => chat?.after,
    ({ exchange }) => strayHeaders(exchange.headers),
  ];

  return {
    of(exchange, request, recording, payer) {
      const chat = conversationOf(exchange, request, chatApp);
      if (chat?.space !== undefined) recording?.space?.(chat.space);
      const registry = withConversationTools(
        permittedTools(tools.registry, exchange.principal.policy),
        chat?.tools ?? [],
      );
      const setup: ExchangeSetup = {
        exchange,
        request,
        recording,
        chat,
        registry,
        payer: sidePayer(payer, exchange.trace),
        state: shared?.begin(),
      };
      const features: Feature[] = [];
      for (const make of order) {
        const made = make(setup);
        if (made === undefined) continue;
        if ('name' in made) features.push(made);
        else features.push(...made);
      }
      const { state } = setup;
      return { features, space: chat?.space, ...(state && { beforeEnd: state.beforeEnd }) };
    },
    codexSearch: (search) => searchForCodex(tools.registry, search, log),
    eraseSpace(space) {
      turns = memoryLedger();
      vision.eraseSpace(space);
    },
    configure(next) {
      const made = configuredTools(next, options);
      void tools.close();
      tools = made;
      config = next;
    },
    openStores() {
      if (shared !== undefined) return;
      for (const store of Object.values(stores)) store.create();
    },
    async close() {
      await tools.close();
      for (const store of Object.values(stores)) store.created?.close();
      await shared?.close();
    },
  };
}
