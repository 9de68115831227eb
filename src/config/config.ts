/** The configuration as the program uses it: validated, defaults filled, times in ms, secrets wrapped, frozen. */

import type { JsonObject } from '../lib/json/json.ts';
import type { Secret } from './secret.ts';
import type { ProfileFacts } from './vendors/profile-schema.ts';

export type ProtocolName = 'anthropic-messages' | 'openai-chat' | 'openai-responses';

/** Where a configuration came from. */
export type ConfigSource =
  | { readonly kind: 'file'; readonly path: string }
  /** No file (or one without providers): keys of the environment and local servers. */
  | { readonly kind: 'discovered'; readonly path?: string }
  /** Nothing was found: the built-in `demo`. */
  | { readonly kind: 'demo'; readonly path?: string };

export interface Config {
  readonly source: ConfigSource;
  readonly listen: Listen;
  /** By name, in the order of the file. Never empty. */
  readonly providers: Readonly<Record<string, ProviderConfig>>;
  readonly routes: readonly RouteConfig[];
  /** Name that a client may ask for → `provider/model`, a plain model name, or another alias. */
  readonly aliases: Readonly<Record<string, string>>;
  readonly modelList: { readonly claudeAliases: boolean };
  /** What the built-in classifier takes for a long context, and so on. */
  readonly categories: CategorySettings;
  readonly auth: { readonly keys: readonly AuthKey[] };
  readonly samples: SamplesConfig;
  readonly serverTools: ServerToolsConfig;
  readonly limits: LimitsConfig;
  readonly retry: RetryConfig;
  /** Silence on a client's stream after which a ping is sent; 0 = never. */
  readonly keepAliveMs: number;
  /** Processes that share the port; 1 = one. */
  readonly workers: number;
  /** Which streams are checked against their protocol as clients get them. */
  readonly validate: 'off' | 'sample' | 'all';
  readonly memory: MemoryConfig;
  readonly conversation: ConversationConfig;
  readonly log: { readonly level: LogLevel; readonly format: 'auto' | 'json' | 'pretty' };
  /** Vendor facts by profile name: the built-in table with the file's overrides laid over it. */
  readonly profiles: Readonly<Record<string, ProfileFacts>>;
}

export type LogLevel = 'trace' | 'debug' | 'info' | 'warn' | 'error' | 'silent';

export interface Listen {
  readonly host: string;
  /** 0 picks a free one. */
  readonly port: number;
}

/** How a provider wants its key. */
export type AuthStyle = 'bearer' | 'x-api-key' | 'api-key' | 'none';

export interface ProviderConfig {
  readonly name: string;
  readonly protocol: ProtocolName;
  /** Without a trailing slash. `demo:` is the built-in provider. */
  readonly baseUrl: string;
  /** May be empty (local servers). */
  readonly keys: readonly Secret[];
  readonly auth: AuthStyle;
  /** `name: 'none'` when there is none. */
  readonly profile: ProfileFacts;
  /** Model names as they go on the wire; `*` = any. May be empty: only named by routes. */
  readonly models: readonly string[];
  /** Sent with every request, over what the gateway would send. */
  readonly headers: Readonly<Record<string, Secret>>;
  /** Appended to the URL; may hold a key. */
  readonly query: Readonly<Record<string, Secret>>;
  /** What its models cost, exact names before globs; empty where nobody said. */
  readonly prices: readonly ModelPrice[];
  readonly timeouts: TimeoutsConfig;
  readonly retry: RetryConfig;
  readonly answers: AnswerLimits;
  readonly transport: TransportConfig;
}

/** USD per million tokens. */
export interface ModelPrice {
  /** A model's name or a glob, as the vendor spells it. */
  readonly model: string;
  readonly input: number;
  readonly output: number;
  /** Prompt tokens read from the vendor's cache. */
  readonly cached: number;
  /** Prompt tokens written to it, and those written for one hour. */
  readonly cacheWrite: number;
  readonly cacheWrite1h: number;
}

/** Milliseconds; 0 = no limit. */
export interface TimeoutsConfig {
  /** Until a new connection stands, TLS included. */
  readonly connectMs: number;
  /** Until the response headers are here. */
  readonly firstByteMs: number;
  /** Between two chunks of a stream. */
  readonly idleMs: number;
  /** Of an answer that has begun: without a word of it, whatever keeps the connection alive. */
  readonly contentMs: number;
  readonly totalMs: number;
}

/** How large an upstream's answer may be (`limits` of the file). */
export interface AnswerLimits {
  /** Of an answer that is read as a whole, and of the text of one that is translated; decompressed. */
  readonly bytes: number;
  /** Of one event of a stream, and of all that says nothing. */
  readonly frameBytes: number;
  /** Of all header lines, those of informational answers included. */
  readonly headerBytes: number;
  /** How many header lines there may be. */
  readonly headers: number;
}

export interface RetryConfig {
  /** Tries on one target before the next one, the first included. */
  readonly attempts: number;
  readonly baseDelayMs: number;
  readonly maxDelayMs: number;
  /** The longest time that a key is left alone, whatever Retry-After says. */
  readonly maxCooldownMs: number;
}

export interface TransportConfig {
  /** `http://…` proxy for this provider; may hold a password. */
  readonly proxy?: Secret;
  readonly http2: boolean;
  /** Requests at the same time; 0 = no limit. */
  readonly concurrency: number;
  readonly tls: {
    readonly verify: boolean;
    readonly caFile?: string;
    readonly certFile?: string;
    readonly keyFile?: string;
  };
}

export interface RouteConfig {
  /** `route 1` and so on when the file gives none. */
  readonly name: string;
  readonly when?: WhenConfig;
  readonly to: readonly RouteTo[];
  /** Which of its exchanges are kept; left out: as `samples.mode` says. */
  readonly samples?: SampleMode;
}

export interface RouteTo {
  /** `provider/model`; `provider/*` keeps the asked name. */
  readonly target: string;
  readonly weight?: number;
}

/** Whole numbers, both ends included. */
export interface NumberRange {
  readonly min: number;
  /** Infinity when open. */
  readonly max: number;
}

/** All that are given must hold. Lists: any of them. Globs know `*` and `?` and ignore case. */
export interface WhenConfig {
  /** Globs, or `/regular expressions/`. */
  readonly model?: readonly string[];
  readonly protocol?: readonly ProtocolName[];
  readonly category?: readonly Category[];
  readonly tokens?: NumberRange;
  readonly stream?: boolean;
  /** How many; `true` in the file is 1 and more, `false` none. */
  readonly images?: NumberRange;
  readonly documents?: NumberRange;
  /** The client's own tools and hosted ones together. */
  readonly tools?: NumberRange;
  /** Globs over the names of the client's own tools. */
  readonly toolNames?: readonly string[];
  /** Globs over canonical names of hosted tools. */
  readonly hostedTools?: readonly string[];
  readonly thinking?: boolean;
  readonly effort?: readonly string[];
  readonly background?: boolean;
  /** Header name (lower case) → globs over its value; false: the header is absent. */
  readonly headers?: Readonly<Record<string, readonly string[] | false>>;
  /** Globs over the text of the last user turn. */
  readonly text?: readonly string[];
  readonly time?: TimeWindow;
}

export interface TimeWindow {
  /** Minutes of the day; `from > to` runs over midnight. */
  readonly from: number;
  readonly to: number;
  /** 0 = Sunday … 6; all when left out. A window over midnight belongs to the day it begins on. */
  readonly days?: readonly number[];
  /** IANA name; the machine's own when left out. */
  readonly zone?: string;
}

export const CATEGORIES = [
  'vision',
  'websearch',
  'longcontext',
  'background',
  'thinking',
  'coding',
  'tools',
  'default',
] as const;
export type Category = (typeof CATEGORIES)[number];

export interface CategorySettings {
  /** Tokens above which a request is `longcontext`. */
  readonly longcontextTokens: number;
  /** Globs of model names that agents use for small side jobs. */
  readonly backgroundModels: readonly string[];
  /** Globs of tool names that mean "this agent edits files". */
  readonly codingTools: readonly string[];
}

export interface AuthKey {
  readonly name: string;
  readonly key: Secret;
  /** Whose recorded exchanges it is shown. */
  readonly sees: 'own' | 'all';
  /** Globs over memory spaces, case told apart; every space when left out. */
  readonly spaces?: readonly string[];
}

export type SampleMode = 'off' | 'errors' | 'all';

export interface SamplesConfig {
  readonly mode: SampleMode;
  readonly dir: string;
  /** Days; 0 = for ever. */
  readonly keepDays: number;
  /** Days for exchanges in which something failed; 0 = for ever. */
  readonly keepFailedDays: number;
  /** Bytes of all samples together; 0 = no limit. */
  readonly maxBytes: number;
  /** How many that did not fail, and how many that did; 0 = no limit. */
  readonly maxCount: number;
  /** Content that is blanked in kept bodies. */
  readonly redact: readonly ('texts' | 'images')[];
}

export type SearchEngineType =
  | 'searxng'
  | 'tavily'
  | 'brave'
  | 'exa'
  | 'serper'
  | 'jina'
  | 'zhipu'
  | 'duckduckgo'
  | 'model'
  /** The manual inside the program. */
  | 'docs';

export interface SearchEngine {
  readonly name: string;
  readonly type: SearchEngineType;
  readonly baseUrl?: string;
  readonly keys: readonly Secret[];
  /** `type: model`: the provider/model that searches with its own hosted tool. */
  readonly target?: string;
  /** Engine-specific parameters, sent as they are. */
  readonly options: Readonly<Record<string, string | number | boolean>>;
}

export interface WebSearchConfig {
  /** force: always offered; selective: when the request looks like it needs one; declared: when the client declared it. */
  readonly inject: 'force' | 'selective' | 'declared';
  /** In fallback order. */
  readonly engines: readonly SearchEngine[];
  readonly maxResults: number;
  readonly timeoutMs: number;
}

export interface WebFetchConfig {
  readonly inject: 'force' | 'selective' | 'declared';
  /** For one page, redirects included. */
  readonly timeoutMs: number;
  readonly maxBytes: number;
  /** Characters handed to the model at a time. */
  readonly maxText: number;
  readonly maxRedirects: number;
  /** Pages for one request. */
  readonly maxUses?: number;
  /** Hosts and address blocks that may be fetched although they are not public. */
  readonly allow: readonly string[];
}

/** A tool that is one HTTP request. */
export interface HttpToolConfig {
  readonly name: string;
  /** Offered where the latest words of the user hold one of these; always when left out. */
  readonly keywords?: readonly string[];
  readonly description: string;
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  /** `{name}` behind the host stands for that argument. */
  readonly url: string;
  /** JSON Schema of the arguments, with `x-in` and `x-name` on its properties. */
  readonly schema: JsonObject;
  /** By lower-case name. */
  readonly headers: Readonly<Record<string, Secret>>;
  readonly query: Readonly<Record<string, Secret>>;
  readonly timeoutMs: number;
  readonly maxBytes: number;
}

/** An MCP server: a program (`command`) or an address (`url`), never both. */
export interface McpServerConfig {
  readonly name: string;
  /** Offered where the latest words of the user hold one of these; always when left out. */
  readonly keywords?: readonly string[];
  readonly command?: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, Secret>>;
  readonly cwd: string;
  readonly url?: string;
  readonly headers: Readonly<Record<string, Secret>>;
  /** Names or globs; all of them when left out. */
  readonly tools?: readonly string[];
  /** For one call, and for the start. */
  readonly timeoutMs: number;
}

export interface ServerToolsConfig {
  readonly webSearch?: WebSearchConfig;
  readonly webFetch?: WebFetchConfig;
  readonly http: readonly HttpToolConfig[];
  readonly mcp: readonly McpServerConfig[];
  readonly vision?: {
    readonly target: string;
    readonly prompt?: string;
    readonly timeoutMs: number;
  };
}

export interface LimitsConfig {
  /** Follow-up hops of server tools. */
  readonly toolRounds: number;
  readonly bodyBytes: number;
  /** Characters of a tool result's text, for vendors that want it short; 0 = no limit. */
  readonly toolText: number;
  /** Requests at the same time over all providers; 0 = no limit. */
  readonly concurrency: number;
  /** A client's connection without a request; 0 = no limit. */
  readonly idleConnectionMs: number;
  /** Until the next 64 KB of a request's body; 0 = no limit. */
  readonly idleBodyMs: number;
  /** Of bodies that are still coming or being decompressed, of all clients together; 0 = no limit. */
  readonly unfinishedBytes: number;
  /** How long SIGTERM lets a server go on as one that is not ready, before it stops listening. */
  readonly drainDelayMs: number;
  /** How long SIGTERM waits for open streams. */
  readonly drainMs: number;
}

/** What models are told of the tools of a chat app's conversation. */
export interface ConversationConfig {
  readonly locale: 'auto' | 'zh' | 'en';
  /** Words in place of the locale's, by name. */
  readonly texts: Readonly<Record<string, string | undefined>>;
}

export interface MemoryConfig {
  readonly enabled: boolean;
  readonly path: string;
  /** Within this time the same words of the same source are captured once. */
  readonly dedupeMs: number;
  readonly limits: {
    /** Characters of a text. */
    readonly text: number;
    /** Of one event. */
    readonly tags: number;
    /** Of one space. */
    readonly events: number;
    /** Bytes of all texts of all spaces. */
    readonly bytes: number;
  };
  readonly embeddings?: {
    readonly provider: string;
    readonly model: string;
    readonly dimensions?: number;
    /** For the query of a recall. */
    readonly timeoutMs: number;
  };
  /** A store elsewhere that takes the database's place. */
  readonly external?: {
    readonly url: string;
    readonly captureUrl: string;
    readonly key?: Secret;
    readonly timeoutMs: number;
  };
}
