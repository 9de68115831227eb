/** The features in the order in which they act on an exchange, with the stores that they share. */

import type { Config } from '../config/config.ts';
import type { Payer } from '../conversation/account/payer.ts';
import type { Target } from '../conversation/target.ts';
import { mentionsTools } from '../conversation/tools/mentions-tools.ts';
import { uniqueCallIds, vendorCallIds } from '../features/call-ids/index.ts';
import { clientTools } from '../features/client-tools/index.ts';
import { compaction } from '../features/compaction/index.ts';
import type { Feature } from '../features/feature.ts';
import { ForcedChoice } from '../features/forced-choice/index.ts';
import { heldParts } from '../features/held-parts/index.ts';
import { type LeakReport, leakedCalls } from '../features/leaked-calls/index.ts';
import { legacyFunctions, legacyHistory } from '../features/legacy-functions/index.ts';
import { PromptCache, RequestTails } from '../features/prompt-cache/index.ts';
import { reasoningMemory } from '../features/reasoning-memory/index.ts';
import { refusalRetry } from '../features/refusal-retry/index.ts';
import { permittedTools } from '../features/server-tools/index.ts';
import { clientToolNames, vendorToolNames } from '../features/tool-names/index.ts';
import { toolPairing } from '../features/tool-pairing/index.ts';
import { toolResults } from '../features/tool-results/index.ts';
import { vendorFit } from '../features/vendor-fit/index.ts';
import { prefillEcho } from '../features/vendor-fit/prefill-echo.ts';
import { type VisionFeature, withReadAhead, withRunReport } from '../features/vision/index.ts';
import type { ClientRequest } from '../gateway/client-request.ts';
import { sidePayer } from '../gateway/tries/side-calls.ts';
import type { Exchange, ExchangeFeatures } from '../gateway/types.ts';
import { containsAny, needles } from '../lib/bytes/bytes.ts';
import type { JsonObject } from '../lib/json/json.ts';
import type { Recording } from '../samples/recording.ts';
import type { HashedName } from '../state/erasures.ts';
import type { GatewayMetrics } from '../telemetry/gateway-metrics.ts';
import { event, type Log } from '../telemetry/log.ts';
import { secretsOf } from '../upstream/secrets.ts';
import { conversationOf, strayHeaders, withConversationTools } from './chat-apps.ts';
import type { ExchangeSetup, FeaturesOptions } from './exchange-setup.ts';
import {
  type CodexSearch,
  configuredTools,
  searchForCodex,
  serverToolsOf,
} from './server-tools.ts';
import { visionBySpace } from './vision.ts';

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
  /** Resolves when every tool server has ended. */
  close(): Promise<void>;
}

const reported = (vision: VisionFeature, recording: Recording): Feature =>
  withRunReport(vision, (run) => recording.tool?.(run));

/** Makes the feature for one exchange; undefined where it has nothing to do. */
type MakeFeature = (setup: ExchangeSetup) => Feature | readonly Feature[] | undefined;

/** Clients that ask for compactions, or send what was compacted. */
const COMPACTING: ReadonlySet<string> = new Set(['openai-responses', 'anthropic-messages']);

const FUNCTION_CALL = needles('"function_call"');

/** Does a request of Chat have functions, declared or called? Those beside tools are not looked for. */
const usesFunctions = (request: ClientRequest): boolean =>
  request.has('functions') || (!request.has('tools') && containsAny(request.bytes, FUNCTION_CALL));

export function createFeatures(options: FeaturesOptions, initial: Config): Features {
  const { log, metrics, ledgers } = options;
  let config = initial;
  let tools = configuredTools(initial, options);
  const leakedCalls = leakedCallsByUse(log, metrics);
  const vision = visionBySpace(options, ledgers.descriptions, () => config.serverTools);
  const textLimit = () => config.limits.toolText;
  const { short } = ledgers.begin();
  const shortened =
    short.prefetch === undefined ? toolResults({ limit: textLimit, ledger: short }) : undefined;
  const fitted = vendorFit();
  let afterRefusal = refusalRetry();
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

  const serverTools = {
    get rounds() {
      return config.limits.toolRounds;
    },
    get secrets() {
      return secretsOf(config);
    },
    log,
  };

  /**
   * The order in which features act on a request; events of the answer come to them in the same order.
   * Calls are recovered before tools run, and a vendor's wishes are fitted to a history that is sound.
   */
  const order: readonly MakeFeature[] = [
    () => prefillEcho,
    ({ exchange }) => (COMPACTING.has(exchange.protocol.name) ? compaction : undefined),
    ({ exchange }) => (exchange.protocol.name === 'openai-responses' ? clientTools : undefined),
    ({ exchange, request }) =>
      exchange.protocol.name === 'openai-chat' && mentionsTools(request.bytes)
        ? usesFunctions(request)
          ? legacyFunctions
          : legacyHistory
        : undefined,
    () => uniqueCallIds,
    leakedCalls.feature,
    () => clientToolNames,
    ({ chat }) => chat?.before,
    (setup) => {
      const feature = serverToolsOf(setup, serverTools);
      setup.ledgers.restoredBy(feature);
      return feature;
    },
    // Reasoning about what was recalled must not outlive its space.
    ({ exchange: { owner }, chat, ledgers: { answers, restored } }) =>
      chat?.space === undefined ? reasoningMemory({ ledger: answers, restored, owner }) : undefined,
    () => heldParts,
    ({ exchange: { owner }, chat, recording, ledgers: { restored } }) => {
      const own = vision.of(chat?.space, owner);
      const prefetch = vision.prefetchOf(chat?.space, owner);
      const ahead = prefetch === undefined ? own : withReadAhead(own, { prefetch, restored });
      return recording === undefined ? ahead : reported(ahead, recording);
    },
    // In rounds that the client does not see, calls keep ids that differ.
    ({ registry }) => (registry.tools.length === 0 ? vendorCallIds : undefined),
    () => afterRefusal,
    () => toolPairing,
    ({ ledgers: { short, restored } }) =>
      shortened ?? toolResults({ limit: textLimit, ledger: short, restored }),
    () => fitted,
    () => vendorToolNames,
    ({ exchange }) => new PromptCache(exchange, tails),
    () => new ForcedChoice(),
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
        ledgers: ledgers.begin(),
      };
      const features: Feature[] = [];
      for (const make of order) {
        const made = make(setup);
        if (made === undefined) continue;
        if ('name' in made) features.push(made);
        else features.push(...made);
      }
      const { beforeEnd } = setup.ledgers;
      return { features, space: chat?.space, ...(beforeEnd && { beforeEnd }) };
    },
    codexSearch: (search) => searchForCodex(tools.registry, search, log),
    eraseSpace(space) {
      ledgers.eraseSpace(space);
      vision.eraseSpace(space);
    },
    configure(next) {
      const made = configuredTools(next, options);
      void tools.close();
      tools = made;
      config = next;
      afterRefusal = refusalRetry();
    },
    openStores: () => ledgers.open(),
    async close() {
      await tools.close();
      await ledgers.close();
    },
  };
}

function leakedCallsByUse(log: Log, metrics: GatewayMetrics) {
  const report =
    ({ logsAll }: { logsAll: boolean }) =>
    ({ family, outcome, target }: LeakReport) => {
      metrics.leakedCalls.add(1, family, outcome);
      if (outcome === 'recovered' && !logsAll) return;
      const fields = { family, outcome, provider: target.provider, model: target.model };
      event(log, 'leaked_call', fields, 'error');
    };
  const plain = leakedCalls(report({ logsAll: false }));
  const withTools = leakedCalls(report({ logsAll: false }), { everyBody: true });
  // A chat app shows text as it comes: each leak is an error there, even a recovered one.
  const reportChat = report({ logsAll: true });
  const chatApps = leakedCalls(reportChat, { everyAnswer: true });
  return {
    feature: ({ chat, registry }: ExchangeSetup) => {
      if (chat?.chat === true) return chatApps;
      const addsTools =
        registry.starting || registry.tools.some(({ inject }) => inject !== 'declared');
      return addsTools ? withTools : plain;
    },
    /** Markup of a leaked call was taken out of a reply. */
    onMarkup: (target: Target) => reportChat({ family: 'dsml', outcome: 'removed', target }),
  };
}
