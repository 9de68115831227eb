/** The features of an exchange, in the order in which they act; the stores and tools that they share. */

import { join } from 'node:path';
import type { Config } from './config/config.ts';
import type { Environment } from './config/environment.ts';
import { invalid } from './conversation/errors.ts';
import type { Reply } from './conversation/events.ts';
import type { Conversation } from './conversation/types.ts';
import { docsIndex } from './docs/index.ts';
import { afterRefusal } from './features/after-refusal/index.ts';
import type { Feature } from './features/feature.ts';
import { leakedCalls } from './features/leaked-calls/index.ts';
import { pairing } from './features/pairing/index.ts';
import { liveRegistry, openHopLedger, serverTools } from './features/servertool/index.ts';
import type { ServerTool } from './features/servertool/tool.ts';
import { httpTool } from './features/servertool/tools/http-tool.ts';
import { mcpTools } from './features/servertool/tools/mcp.ts';
import { webFetchTool } from './features/servertool/tools/web-fetch.ts';
import {
  modelAnswer,
  searchConversation,
} from './features/servertool/tools/web-search/ask-model.ts';
import {
  answerCodexSearch,
  readCodexSearch,
} from './features/servertool/tools/web-search/codex-search.ts';
import { webSearch } from './features/servertool/tools/web-search/index.ts';
import { openSessionLedger, sessionLedger } from './features/session-ledger/index.ts';
import { openSentShort, toolResults } from './features/tool-results/index.ts';
import { vendorFit } from './features/vendor-fit/index.ts';
import { openDescriptionStore, visionFeature } from './features/vision/index.ts';
import type { Ask } from './gateway/ask.ts';
import type { Exchange } from './gateway/exchange.ts';
import type { Json, JsonObject } from './lib/json.ts';
import type { GatewayMetrics } from './telemetry/gateway-metrics.ts';
import { event, type Log } from './telemetry/log.ts';

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
}

export interface Features {
  /** What acts on one exchange, under the configuration that is in force now. */
  of(exchange: Exchange, ask: Ask): readonly Feature[];
  /** Codex's own search endpoint: `{output}` for its body; undefined when no search is configured. */
  codexSearch(body: Json, signal: AbortSignal): Promise<JsonObject> | undefined;
  /** Takes another configuration over. @throws Error in words when its tools cannot be made */
  configure(config: Config): void;
  close(): void;
}

interface Tools {
  readonly registry: ReturnType<typeof liveRegistry>;
  close(): void;
}

export function composeFeatures(options: FeaturesOptions, initial: Config): Features {
  const { environment, log, metrics } = options;
  const state = (name: string) => join(environment.home, 'state', name);
  const warn = (message: string) => event(log, 'state.problem', { message }, 'warn');
  const hops = openHopLedger({ path: state('hops.db'), warn });
  const answers = openSessionLedger({ path: state('session.db'), warn });
  const short = openSentShort({ path: state('sent-short.db'), warn });
  const descriptions = openDescriptionStore({ path: state('descriptions.db'), warn });
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
    return { registry: liveRegistry(own, mcp), close: () => void mcp.close() };
  }

  const leaks = leakedCalls(({ family, outcome, target }) => {
    metrics.leakedCalls.add(1, family, outcome);
    if (outcome === 'recovered') return;
    const fields = { family, outcome, provider: target.provider, model: target.model };
    event(log, 'leaked_call', fields, 'error');
  });
  const vision = visionFeature({
    store: descriptions,
    allow: initial.serverTools.webFetch?.allow ?? [],
    settings: () => config.serverTools.vision,
    log: (name, fields) => event(log, name, fields),
    ask: async (target, conversation, signal) => {
      const reply = await options.ask(target, conversation, signal);
      return reply.blocks.flatMap((block) => (block.type === 'text' ? [block.text] : [])).join('');
    },
  });
  const results = toolResults({ limit: () => config.limits.toolText, ledger: short });
  const fit = vendorFit();

  return {
    of(exchange, ask) {
      const { registry } = tools;
      // Without any tool the loop has nothing to offer, to hold or to restore.
      const idle = registry.tools.length === 0 && registry.starting !== true;
      const server = idle ? [] : [exchangeTools(exchange, ask)];
      // Calls are recovered before tools run; a vendor's wishes are fitted to a history that is sound.
      const memory = sessionLedger({ ledger: answers, owner: exchange.owner });
      return [leaks, ...server, memory, vision, afterRefusal, pairing, results, fit];
    },
    codexSearch(body, signal) {
      const tool = tools.registry.named('web_search');
      const search = readCodexSearch(body);
      if (tool === undefined) return undefined;
      if (search === undefined)
        throw invalid('No search query was given.', 'commands.search_query');
      return answerCodexSearch(search, tool, { signal, log: told });
    },
    configure(next) {
      const made = makeTools(next);
      tools.close();
      tools = made;
      config = next;
    },
    close() {
      tools.close();
      hops.close();
      answers.close();
      short.close();
      descriptions.close();
    },
  };

  function exchangeTools(exchange: Exchange, ask: Ask): Feature {
    return serverTools({
      registry: tools.registry,
      ledger: hops,
      client: ask.protocol.name,
      owner: exchange.owner,
      limits: { rounds: config.limits.toolRounds },
      log: told,
    });
  }
}
