/** The checked content of a file as a Config. */

import { isIP } from 'node:net';
import { join } from 'node:path';
import { withoutTrailing } from '../lib/text/trim-end.ts';
import type {
  Config,
  ConfigSource,
  Listen,
  ProviderConfig,
  SearchEngine,
  SearchEngineType,
  ServerToolsConfig,
} from './config.ts';
import { type Environment, expandHome } from './environment.ts';
import type { Path } from './file/document.ts';
import { warnOfKeys } from './key-warnings.ts';
import { Secret } from './secret.ts';
import { DEFAULT_TOOL_TEXT } from './sections/features.ts';
import type { FileConfig } from './sections/index.ts';
import { resolveMemory } from './sections/resolve-memory.ts';
import {
  checkVariable,
  type Findings,
  listOf,
  ms,
  resolveProfiles,
  resolveProvider,
  resolveRetry,
} from './sections/resolve-providers.ts';
import {
  checkTarget,
  type Names,
  resolveAliases,
  resolveRoutes,
} from './sections/resolve-routes.ts';
import { resolveReachingTools } from './sections/resolve-server-tools.ts';
import { isLoopback } from './servable.ts';

/** The Config, frozen through and through; of use only when no problem was found. */
export function resolveConfig(
  file: FileConfig,
  source: ConfigSource,
  environment: Environment,
  findings: Findings,
): Config {
  const profiles = resolveProfiles(file, findings);
  const providers: Record<string, ProviderConfig> = {};
  for (const [name, own] of Object.entries(file.providers)) {
    const provider = resolveProvider(name, own, file, profiles, environment, findings);
    if (provider !== undefined) providers[name] = provider;
  }
  // Those with a problem of their own as well, so that routes to them are not blamed too.
  const names: Names = new Set(Object.keys(file.providers));
  const path = (written: string | undefined, fallback: string) =>
    written === undefined
      ? join(environment.home, fallback)
      : expandHome(written, environment.userHome);
  const listen = resolveListen(file.listen, findings);
  checkKeys(file, findings);
  const keys = file.auth.keys.map((key, index) =>
    typeof key === 'string'
      ? { name: `key ${index + 1}`, key: new Secret(key), sees: 'own' as const }
      : {
          name: key.name,
          key: new Secret(key.key),
          sees: key.sees,
          ...(key.spaces === undefined ? {} : { spaces: key.spaces }),
        },
  );
  warnOfKeys(file, findings);
  if (keys.length === 0 && !isLoopback(listen.host)) {
    findings.warnings.push({
      path: ['listen'],
      message:
        'everybody who reaches this address can spend your keys: set auth.keys, or listen on 127.0.0.1',
    });
  }
  return freeze({
    source,
    listen,
    providers,
    routes: resolveRoutes(file, names, findings, providers),
    aliases: resolveAliases(file, names, findings),
    modelList: { claudeAliases: file.model_list.claude_aliases },
    categories: {
      longcontextTokens: file.categories.longcontext_tokens,
      backgroundModels: file.categories.background_models,
      codingTools: file.categories.coding_tools,
    },
    auth: { keys },
    samples: {
      mode: file.samples.mode,
      dir: path(file.samples.dir, 'samples'),
      keepDays: file.samples.keep_days,
      keepFailedDays: file.samples.keep_failed_days,
      maxBytes: file.samples.max_bytes,
      maxCount: file.samples.max_count,
      redact: file.samples.redact,
    },
    serverTools: resolveServerTools(file, names, environment, findings),
    limits: {
      toolRounds: file.limits.tool_rounds,
      bodyBytes: file.limits.body_bytes,
      toolText: file.limits.tool_text ?? environment.toolTextLimit ?? DEFAULT_TOOL_TEXT,
      concurrency: file.limits.concurrency,
      idleConnectionMs: ms(file.limits.idle_connection),
      idleBodyMs: ms(file.limits.idle_body),
      unfinishedBytes: file.limits.unfinished_bytes,
      drainDelayMs: ms(file.limits.drain_delay),
      drainMs: ms(file.limits.drain),
    },
    retry: resolveRetry(undefined, file.retry),
    keepAliveMs: ms(file.keep_alive),
    workers: file.workers,
    validate: file.validate,
    memory: resolveMemory(file, path(file.memory.path, 'memory.db'), findings),
    conversation: file.conversation,
    log: file.log,
    profiles,
  });
}

// What `printf %s "$UNSET" | sha256sum` gives.
const NOTHING = `sha256:${new Bun.CryptoHasher('sha256').update('').digest('hex')}`;

/** Gateway keys that would let anybody in, or nobody, and names that say nothing. */
function checkKeys(file: FileConfig, findings: Findings): void {
  const names = new Set<string>();
  for (const [index, entry] of file.auth.keys.entries()) {
    const plain = typeof entry === 'string';
    const path: Path = ['auth', 'keys', index, ...(plain ? [] : ['key'])];
    const key = (plain ? entry : entry.key).trim();
    const problem = (message: string) => findings.problems.push({ path, message });
    if (key === '') problem('is blank');
    else if (key.toLowerCase() === NOTHING) {
      problem('is the digest of nothing: the key was empty when it was made');
    } else if (/^sha256:/i.test(key) && !/^sha256:[0-9a-f]{64}$/i.test(key)) {
      problem('begins with sha256: and must go on with the 64 hexadecimal digits of a digest');
    }
    if (plain) continue;
    if (names.has(entry.name)) {
      findings.warnings.push({
        path: ['auth', 'keys', index, 'name'],
        message: `another key has the name ${JSON.stringify(entry.name)}: what is stored belongs to both, and each may only what both may`,
      });
    }
    names.add(entry.name);
  }
}

/** `host:port`, `:port`, `[::1]:port`, a host, or a port. */
export function parseListen(written: string | number): Listen | undefined {
  const parts = /^(?:(\[[^\]]+\]|[^:]*):)?(\d+)$/.exec(String(written).trim());
  if (parts === null) {
    const host = String(written).trim();
    return isHost(host) ? { host, port: 5520 } : undefined;
  }
  const port = Number(parts[2]);
  const host = parts[1]?.replace(/^\[|\]$/g, '') || '127.0.0.1';
  if (parts[1]?.startsWith('[') === true && !host.includes(':')) return undefined;
  if (host === '*') return { host: '0.0.0.0', port };
  return port <= 65535 && isHost(host) ? { host, port } : undefined;
}

/** A name or an address that there can be; whether it is one of this machine shows when it is listened on. */
function isHost(host: string): boolean {
  if (host.includes(':')) return isIP(host) === 6;
  return /^[\d.]+$/.test(host) ? isIP(host) === 4 : /^[A-Za-z0-9_.-]+$/.test(host);
}

function resolveListen(written: string | number, findings: Findings): Listen {
  const listen = parseListen(written);
  if (listen !== undefined) return listen;
  findings.problems.push({
    path: ['listen'],
    message: 'must be host:port, such as 127.0.0.1:5520',
  });
  return { host: '127.0.0.1', port: 5520 };
}

/** Where search engines' keys are usually kept. */
const ENGINE_VARIABLES: Readonly<Partial<Record<SearchEngineType, readonly string[]>>> = {
  tavily: ['TAVILY_API_KEY'],
  brave: ['BRAVE_API_KEY', 'BRAVE_SEARCH_API_KEY'],
  exa: ['EXA_API_KEY'],
  serper: ['SERPER_API_KEY'],
  jina: ['JINA_API_KEY'],
  zhipu: ['ZHIPU_API_KEY', 'ZHIPUAI_API_KEY', 'ZAI_API_KEY'],
};
const KEYED = new Set<SearchEngineType>(['tavily', 'brave', 'exa', 'serper', 'zhipu']);

function resolveServerTools(
  file: FileConfig,
  providers: Names,
  environment: Environment,
  findings: Findings,
): ServerToolsConfig {
  const { web_search: search, vision } = file.server_tools;
  const root: Path = ['server_tools'];
  if (vision !== undefined) {
    checkTarget(vision.target, [...root, 'vision', 'target'], providers, findings);
  }
  const engines = (search?.engines ?? []).map((engine, index): SearchEngine => {
    const path: Path = [...root, 'web_search', 'engines', index];
    if (engine.type === 'searxng' && engine.base_url === undefined) {
      findings.problems.push({ path, message: 'searxng needs the key "base_url"' });
    }
    if (engine.type === 'model') {
      if (engine.target === undefined) {
        findings.problems.push({ path, message: 'type model needs the key "target"' });
      } else checkTarget(engine.target, [...path, 'target'], providers, findings);
    }
    const variable = ENGINE_VARIABLES[engine.type]?.find(
      (name) => environment.variable(name) !== undefined,
    );
    const keys =
      listOf(engine.keys) ?? (variable === undefined ? [] : [environment.variable(variable)!]);
    if (engine.keys === undefined && variable !== undefined) {
      checkVariable(variable, keys[0]!, path, findings);
    }
    if (keys.length === 0 && KEYED.has(engine.type)) {
      findings.warnings.push({ path, message: `${engine.type} has no key` });
    }
    return {
      name: engine.name ?? engine.type,
      type: engine.type,
      baseUrl: engine.base_url && withoutTrailing(engine.base_url, '/'),
      keys: keys.map((key) => new Secret(key)),
      target: engine.target,
      options: engine.options,
    };
  });
  return {
    ...(search === undefined
      ? {}
      : {
          webSearch: {
            inject: search.inject,
            engines,
            maxResults: search.max_results,
            timeoutMs: ms(search.timeout),
          },
        }),
    ...(vision === undefined
      ? {}
      : {
          vision: { target: vision.target, prompt: vision.prompt, timeoutMs: ms(vision.timeout) },
        }),
    ...resolveReachingTools(file, environment, findings),
  };
}

/** Freezes plain data all the way down. */
export function freeze<T>(value: T): T {
  if (typeof value !== 'object' || value === null || Object.isFrozen(value)) return value;
  Object.freeze(value);
  for (const child of Object.values(value)) freeze(child);
  return value;
}
