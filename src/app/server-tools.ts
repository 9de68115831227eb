import type { Config } from '../config/config.ts';
import type { Payer } from '../conversation/account/payer.ts';
import { invalid } from '../conversation/errors.ts';
import {
  checkTool,
  liveRegistry,
  mayDeclareHosted,
  type ServerToolsFeature,
  serverTools,
  type ToolRegistry,
} from '../features/server-tools/index.ts';
import type { ServerTool } from '../features/server-tools/tool.ts';
import { httpTool } from '../features/server-tools/tools/http/index.ts';
import { mcpTools } from '../features/server-tools/tools/mcp/index.ts';
import { webFetchTool } from '../features/server-tools/tools/web-fetch/index.ts';
import { webSearch } from '../features/server-tools/tools/web-search/index.ts';
import {
  answerCodexSearch,
  modelAnswer,
  readCodexSearch,
  searchConversation,
} from '../features/server-tools/tools/web-search/model-search.ts';
import type { Principal } from '../keys/principal.ts';
import type { Json, JsonObject } from '../lib/json/json.ts';
import { event, type Log } from '../telemetry/log.ts';
import { turnLedger } from './chat-apps.ts';
import type { ExchangeSetup, FeaturesOptions } from './exchange-setup.ts';

export interface ConfiguredTools {
  readonly registry: ReturnType<typeof liveRegistry>;
  /** Ends the tool servers. */
  close(): Promise<void>;
}

const logTo = (log: Log) => (name: string, fields: JsonObject) => event(log, name, { ...fields });

/** @throws Error with a message when a tool cannot be made */
export function configuredTools(
  { serverTools: wanted, listen }: Config,
  { log, version, ask }: Pick<FeaturesOptions, 'log' | 'version' | 'ask'>,
): ConfiguredTools {
  const tools: ServerTool[] = [];
  if (wanted.webSearch !== undefined) {
    const engines = wanted.webSearch.engines.map((engine) => ({
      ...engine,
      keys: engine.keys.map((key) => key.reveal()),
    }));
    const options = {
      fetch: (url: string | URL | Request, init?: RequestInit) => fetch(url, init),
      docs: {
        // The manual is loaded with the first search in it.
        async search(query: string, count: number) {
          const { docsIndex } = await import('../manual/index.ts');
          return docsIndex(listen).search(query, count);
        },
      },
      askModel: ({ target }: { target?: string | undefined }) =>
        target === undefined
          ? undefined
          : async (prompt: string, signal: AbortSignal, payer: Payer | undefined) =>
              modelAnswer(await ask(target, searchConversation(prompt, target), signal, payer)),
    };
    tools.push(webSearch({ ...wanted.webSearch, engines }, options));
  }
  if (wanted.webFetch !== undefined) tools.push(webFetchTool(wanted.webFetch));
  tools.push(...wanted.http.map((tool) => httpTool(tool)));
  const mcp = mcpTools({ servers: wanted.mcp, log: logTo(log), version });
  return { registry: liveRegistry(tools, mcp), close: () => mcp.close() };
}

export interface ServerToolsSettings {
  /** Hops of one turn at most. */
  readonly rounds: number;
  /** The credentials of the configuration: they are masked in results. */
  readonly secrets: readonly string[];
  readonly log: Log;
}

/**
 * Undefined where there is no tool: the loop has nothing to offer, to hold or to restore. A vendor that runs
 * tools of its own may pause a turn, which is continued.
 */
export function serverToolsOf(
  setup: ExchangeSetup,
  settings: ServerToolsSettings,
): ServerToolsFeature | undefined {
  const { request, registry } = setup;
  const runs = registry.tools.length > 0 || registry.starting === true;
  if (!runs && !mayDeclareHosted(request.bytes, request.protocol.name)) return undefined;
  return loopOf(setup, settings);
}

function loopOf(
  { exchange, request, registry, chat, recording, payer, ledgers }: ExchangeSetup,
  { rounds, secrets, log }: ServerToolsSettings,
): ServerToolsFeature {
  const scope = JSON.stringify([exchange.owner, chat?.scope ?? '']);
  return serverTools({
    registry,
    ledger:
      chat === undefined
        ? ledgers.hops
        : turnLedger(ledgers.hops, ledgers.turns(chat.space), chat.tools, scope),
    client: request.protocol.name,
    owner: exchange.owner,
    payer,
    forced: chat?.forced,
    events: chat?.toolEvents,
    limits: { rounds },
    secrets,
    log: logTo(log),
    onRun: (run) => recording?.tool?.(run),
  });
}

/** A request to Codex' own search endpoint. */
export interface CodexSearch {
  readonly payer: Payer;
  readonly body: Json;
  readonly principal: Principal;
  readonly signal: AbortSignal;
}

/** The answer to Codex' own search endpoint; undefined when no search is configured. @throws GatewayError */
export function searchForCodex(
  registry: ToolRegistry,
  { body, principal, signal, payer }: CodexSearch,
  log: Log,
): Promise<JsonObject> | undefined {
  checkTool(principal.policy, 'web_search');
  const tool = registry.named('web_search');
  const search = readCodexSearch(body);
  if (tool === undefined) return undefined;
  if (search === undefined) throw invalid('No search query was given.', 'commands.search_query');
  return answerCodexSearch(search, tool, { signal, payer, log: logTo(log) });
}
