/** The features of an exchange, in the order in which they act; the stores and tools that they share. */

import { join } from 'node:path';
import type { Config } from '../config/config.ts';
import type { Environment } from '../config/environment.ts';
import { invalid } from '../conversation/errors.ts';
import type { Reply } from '../conversation/events.ts';
import type { Memory } from '../conversation/memory.ts';
import type { Conversation } from '../conversation/types.ts';
import type { ConversationParts } from '../features/chat-apps/index.ts';
import type { Feature } from '../features/feature.ts';
import { type LeakReport, leakedCalls } from '../features/leaked-calls/index.ts';
import { openSessionLedger, sessionLedger } from '../features/reasoning-memory/index.ts';
import { afterRefusal } from '../features/refusal-retry/index.ts';
import {
  liveRegistry,
  mayDeclareHosted,
  memoryLedger,
  openHopLedger,
  serverTools,
  type ToolRegistry,
} from '../features/server-tools/index.ts';
import type { ServerTool } from '../features/server-tools/tool.ts';
import { httpTool } from '../features/server-tools/tools/http/index.ts';
import { mcpTools } from '../features/server-tools/tools/mcp/index.ts';
import { webFetchTool } from '../features/server-tools/tools/web-fetch/index.ts';
import {
  modelAnswer,
  searchConversation,
} from '../features/server-tools/tools/web-search/ask-model.ts';
import {
  answerCodexSearch,
  readCodexSearch,
} from '../features/server-tools/tools/web-search/codex-search.ts';
import { webSearch } from '../features/server-tools/tools/web-search/index.ts';
import { pairing } from '../features/tool-pairing/index.ts';
import { openSentShort, toolResults } from '../features/tool-results/index.ts';
import { vendorFit } from '../features/vendor-fit/index.ts';
import {
  openDescriptionStore,
  seenBy,
  type VisionFeature,
  type VisionOptions,
  visionFeature,
} from '../features/vision/index.ts';
import type { ClientRequest } from '../gateway/client-request.ts';
import type { Exchange } from '../gateway/exchange.ts';
import type { Json, JsonObject } from '../lib/json/json.ts';
import { lazy } from '../lib/store/lazy.ts';
import { docsIndex } from '../manual/index.ts';
import type { Recording, ToolRun } from '../samples/recording.ts';
import type { GatewayMetrics } from '../telemetry/gateway-metrics.ts';
import { event, type Log } from '../telemetry/log.ts';
import {
  type ConversationSetup,
  conversationOf,
  strayHeaders,
  turnLedger,
  withConversationTools,
} from './chat-apps.ts';

/** Asks a model (`provider/model`) through this very gateway, as an exchange of its own. */
export type AskModel = (
  target: string,
  conversation: Conversation,
  signal: AbortSignal,
) => Promise<Reply>;

export interface FeaturesOptions {
  readonly environment: Environment;
  readonly log: Log;
  readonly metrics: GatewayMetrics;
  readonly version: string;
  readonly ask: AskModel;
  /** Undefined while `memory.enabled` is off: read it anew for each exchange, a reload changes it. */
  readonly memory: Memory | undefined;
  /** May the gateway key of this name ('' without auth) use this memory space, by the configuration in force? */
  mayUse(owner: string, space: string): boolean;
}

export interface FeaturesOfExchange {
  readonly features: readonly Feature[];
  /** The memory space that the request uses. */
  readonly space: string | undefined;
}

export interface Features {
  /** What acts on one exchange, under the configuration that is in force now. */
  of(exchange: Exchange, ask: ClientRequest, recording: Recording | undefined): FeaturesOfExchange;
  /** Codex's own search endpoint: `{output}` for its body; undefined when no search is configured. */
  codexSearch(body: Json, signal: AbortSignal): Promise<JsonObject> | undefined;
  /** Forgets the images of a memory space, and what was recalled for turns that are under way. */
  eraseSpace(space: string): void;
  /** Takes another configuration over. @throws Error in words when its tools cannot be made */
  configure(config: Config): void;
  /** Opens the files that are otherwise opened when they are first needed; tells of trouble with them. */
  openState(): void;
  /** Resolves when no tool server runs any more. */
  close(): Promise<void>;
}

interface Tools {
  readonly registry: ReturnType<typeof liveRegistry>;
  close(): Promise<void>;
}

interface ToolsOfExchange {
  readonly registry: ToolRegistry;
  readonly chat: ConversationParts | undefined;
  readonly recording: Recording | undefined;
}

/** Memory spaces whose eyes are kept ready. */
const MOST_VISIONS = 100;

export function composeFeatures(options: FeaturesOptions, initial: Config): Features {
  const { environment, log, metrics } = options;
  const state = (name: string) => join(environment.home, 'state', name);
  const warn = (message: string) => event(log, 'state.problem', { message }, 'warn');
  const stores = {
    hops: lazy(() => openHopLedger({ path: state('hops.db'), warn })),
    answers: lazy(() => openSessionLedger({ path: state('session.db'), warn })),
    short: lazy(() => openSentShort({ path: state('sent-short.db'), warn })),
    descriptions: lazy(() => openDescriptionStore({ path: state('descriptions.db'), warn })),
  };
  const hops = stores.hops.value;
  const answers = stores.answers.value;
  const short = stores.short.value;
  const descriptions = stores.descriptions.value;
  const told = (name: string, fields: JsonObject) => event(log, name, { ...fields });

  let config = initial;
  let tools = makeTools(initial);

  function makeTools({ serverTools: wanted }: Config): Tools {
    const own: ServerTool[] = [];
    if (wanted.webSearch !== undefined) {
      const engines = wanted.webSearch.engines.map((engine) => ({
        ...engine,
        keys: engine.keys.map((key) => key.reveal()),
      }));
      own.push(
        webSearch(
          { ...wanted.webSearch, engines },
          {
            fetch: (url, init) => fetch(url, init),
            docs: docsIndex(initial.listen),
            askModel: ({ target }) =>
              target === undefined
                ? undefined
                : async (prompt, signal) =>
                    modelAnswer(
                      await options.ask(target, searchConversation(prompt, target), signal),
                    ),
          },
        ),
      );
    }
    if (wanted.webFetch !== undefined) own.push(webFetchTool(wanted.webFetch));
    own.push(...wanted.http.map((tool) => httpTool(tool)));
    const mcp = mcpTools({ servers: wanted.mcp, log: told, version: options.version });
    return { registry: liveRegistry(own, mcp), close: () => mcp.close() };
  }

  const leaked = (every: boolean) => (leak: LeakReport) => {
    const { family, outcome, target } = leak;
    metrics.leakedCalls.add(1, family, outcome);
    if (outcome === 'recovered' && !every) return;
    const fields = { family, outcome, provider: target.provider, model: target.model };
    event(log, 'leaked_call', fields, 'error');
  };
  const leaks = leakedCalls(leaked(false));
  const leaksOfTools = leakedCalls(leaked(false), { everyBody: true });
  // A chat app shows what it gets as it comes: every leak is an error there, also one that was mended.
  const leakedInChat = leaked(true);
  const leaksOfChats = leakedCalls(leakedInChat, { everyAnswer: true });
  let turns = memoryLedger();
  const seeing = {
    allow: initial.serverTools.webFetch?.allow ?? [],
    settings: () => config.serverTools.vision,
    log: (name, fields) => event(log, name, fields),
    ask: async (target, conversation, signal) => {
      const reply = await options.ask(target, conversation, signal);
      const said = reply.blocks.flatMap((block) => (block.type === 'text' ? [block.text] : []));
      return { text: said.join(''), usage: reply.usage };
    },
  } satisfies Omit<VisionOptions, 'store'>;
  const vision = visionFeature({ ...seeing, store: descriptions });
  /** Those of memory spaces, the last ones that were used. */
  const visions = new Map<string, VisionFeature>();
  // The file is opened when an image comes.
  const seenIn = (space: string): VisionOptions['store'] => ({
    get: (key) => descriptions.of(space).get(key),
    put: (key, text) => descriptions.of(space).put(key, text),
  });
  const visionIn = (space: string): VisionFeature => {
    const own = visions.get(space) ?? visionFeature({ ...seeing, store: seenIn(space) });
    visions.delete(space);
    visions.set(space, own);
    if (visions.size > MOST_VISIONS) visions.delete(visions.keys().next().value!);
    return own;
  };
  const conversation: ConversationSetup = {
    get memory() {
      return options.memory;
    },
    get settings() {
      return config.conversation;
    },
    mayUse: options.mayUse,
    log,
    onMarkup: (target) => leakedInChat({ family: 'dsml', outcome: 'removed', target }),
  };
  const results = toolResults({ limit: () => config.limits.toolText, ledger: short });
  const fit = vendorFit();

  return {
    of(exchange, ask, recording) {
      const chat = conversationOf(exchange, ask, conversation);
      if (chat?.space !== undefined) recording?.space?.(chat.space);
      const registry = withConversationTools(tools.registry, chat?.tools ?? []);
      const adds = registry.starting || registry.tools.some(({ inject }) => inject !== 'declared');
      // Calls are recovered before tools run; a vendor's wishes are fitted to a history that is sound.
      const features: Feature[] = [
        chat?.chat === true ? leaksOfChats : adds ? leaksOfTools : leaks,
      ];
      if (chat !== undefined) features.push(...chat.before);
      // Without any tool the loop has nothing to offer, to hold or to restore, and only a vendor that runs
      // one of its own may pause a turn that is to be continued.
      const runs = registry.tools.length > 0 || registry.starting === true;
      if (runs || mayDeclareHosted(ask.bytes)) {
        features.push(exchangeTools(exchange, ask, { registry, chat, recording }));
      }
      // Reasoning about what was recalled must not outlive its space.
      if (chat?.space === undefined) {
        features.push(sessionLedger({ ledger: answers, owner: exchange.owner }));
      }
      const eyes = chat?.space === undefined ? vision : visionIn(chat.space);
      const looks = recording === undefined ? undefined : (run: ToolRun) => recording.tool?.(run);
      features.push(seenBy(eyes, looks), afterRefusal, pairing, results, fit);
      if (chat !== undefined) features.push(...chat.behind);
      const stray = strayHeaders(exchange.headers);
      if (stray !== undefined) features.push(stray);
      return { features, space: chat?.space };
    },
    codexSearch(body, signal) {
      const tool = tools.registry.named('web_search');
      const search = readCodexSearch(body);
      if (tool === undefined) return undefined;
      if (search === undefined)
        throw invalid('No search query was given.', 'commands.search_query');
      return answerCodexSearch(search, tool, { signal, log: told });
    },
    eraseSpace(space) {
      turns = memoryLedger();
      visions.delete(space);
      descriptions.eraseSpace(space);
    },
    configure(next) {
      const made = makeTools(next);
      void tools.close();
      tools = made;
      config = next;
    },
    openState() {
      for (const store of Object.values(stores)) store.make();
    },
    async close() {
      await tools.close();
      for (const store of Object.values(stores)) store.made?.close();
    },
  };

  function exchangeTools(
    { owner }: Exchange,
    ask: ClientRequest,
    { registry, chat, recording }: ToolsOfExchange,
  ): Feature {
    const scope = JSON.stringify([owner, chat?.scope ?? '']);
    return serverTools({
      registry,
      ledger: chat === undefined ? hops : turnLedger(hops, turns, chat.tools, scope),
      client: ask.protocol.name,
      owner,
      forced: chat?.forced,
      events: chat?.toolEvents,
      limits: { rounds: config.limits.toolRounds },
      log: told,
      onRun: (run) => recording?.tool?.(run),
    });
  }
}
