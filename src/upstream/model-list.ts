/** Fetches a vendor's own list of models with a short deadline, and caches it. */

import type { Secret } from '../config/secret.ts';
import type { ProviderConfig } from '../config/sections/providers.ts';
import type { ModelFacts } from '../conversation/models/model-entry.ts';
import type { ProtocolName } from '../conversation/protocol-names.ts';
import { LOOP_MARK } from '../lib/http/loop-mark.ts';
import { isObject, type Json, type JsonObject, tryParse } from '../lib/json/json.ts';
import { Abort } from '../lib/loop/abort.ts';
import { sessionHeaderAt } from '../vendors/index.ts';
import { networkTo, type PoolOptions } from './pool.ts';
import { sessionName } from './request-headers.ts';
import { sameConfig } from './same-config.ts';
import { readFirst } from './transport.ts';

/** Where each protocol has its list, behind the base URL. */
export const LIST_PATH: Readonly<Record<ProtocolName, string>> = {
  'openai-chat': '/models',
  'openai-responses': '/models',
  'anthropic-messages': '/v1/models',
  'google-gemini': '/models',
};

/** Bytes of a list; the longest one known (OpenRouter's) has half a million. */
const MAX_BYTES = 8 * 1024 * 1024;
const MAX_MODELS = 10_000;
const MAX_ID = 256;
const DEADLINE_MS = 2000;
/** How long a list counts as new, and how long a vendor that gave none is left alone. */
const FRESH_MS = 5 * 60_000;
const REST_MS = 30_000;
/** Keys that are tried for one list. */
const MAX_KEYS = 3;

/** A request's headers for this provider, its key included. */
export function vendorHeaders(
  { auth, baseUrl, headers, protocol }: ProviderConfig,
  key: Secret | undefined,
): Headers {
  const out = new Headers({ accept: 'application/json', 'content-type': 'application/json' });
  if (protocol === 'anthropic-messages') out.set('anthropic-version', '2023-06-01');
  if (key !== undefined && auth !== 'none') {
    const value = key.reveal();
    const bearer = auth === 'bearer';
    out.set(bearer ? 'authorization' : auth, bearer ? `Bearer ${value}` : value);
  }
  const session = sessionHeaderAt(baseUrl);
  if (session !== undefined) out.set(session, sessionName(0));
  for (const [name, value] of Object.entries(headers)) out.set(name, value.reveal());
  return out;
}

/** The URL of a path at this provider, with its own query. @throws TypeError where base_url is none */
export function vendorUrl({ baseUrl, query }: ProviderConfig, path: string): URL {
  const url = new URL(baseUrl + path);
  for (const [name, value] of Object.entries(query)) url.searchParams.set(name, value.reveal());
  return url;
}

/** The names in a list, as `model` of a request wants them; undefined when it is no list. */
export const modelIds = (json: Json | undefined): readonly string[] | undefined =>
  modelsIn(json)?.names;

/** The models that a vendor lists: names as `model` of a request wants them, and its facts about each. */
export interface VendorList {
  readonly names: readonly string[];
  /** Of those of which it says anything. */
  readonly facts: ReadonlyMap<string, ModelFacts>;
}

/** The models in a list; undefined when it is no list. */
export function modelsIn(json: Json | undefined): VendorList | undefined {
  const data = isObject(json) ? (json.data ?? json.models) : json;
  if (!Array.isArray(data)) return undefined;
  const names = new Set<string>();
  const facts = new Map<string, ModelFacts>();
  for (const entry of data as readonly Json[]) {
    const id = isObject(entry) ? (entry.id ?? entry.name) : undefined;
    if (typeof id !== 'string' || !isObject(entry) || names.size >= MAX_MODELS) continue;
    // Gemini's list has resource names, its requests do without the first part.
    const name = id.replace(/^models\//, '');
    if (!isName(name)) continue;
    names.add(name);
    const stated = statedFacts(entry);
    if (stated !== undefined) facts.set(name, stated);
  }
  return { names: [...names], facts };
}

/** What vendors call the window and the longest answer: OpenRouter, Mistral, Groq, vLLM, Anthropic, Gemini. */
const CONTEXT_KEYS = [
  'context_length',
  'max_context_length',
  'context_window',
  'max_model_len',
  'max_input_tokens',
  'inputTokenLimit',
];
const OUTPUT_KEYS = [
  'max_output_tokens',
  'max_completion_tokens',
  'outputTokenLimit',
  // Only Anthropic's list has it; a parameter of that name stands in no other.
  'max_tokens',
];

function statedFacts(entry: JsonObject): ModelFacts | undefined {
  const first = (keys: readonly string[]) =>
    keys.map((key) => entry[key]).find((value) => typeof value === 'number' && value > 0);
  const context = first(CONTEXT_KEYS) as number | undefined;
  const output = first(OUTPUT_KEYS) as number | undefined;
  if (context === undefined && output === undefined) return undefined;
  return { ...(context !== undefined && { context }), ...(output !== undefined && { output }) };
}

const isName = (id: string) => id !== '' && id.length <= MAX_ID && !/\p{Cc}/u.test(id);

/**
 * The model list of a provider; undefined where the provider gives none. Never rejects.
 * @param passed the gateways that the request which wants it has passed
 */
export type ListModels = (
  provider: ProviderConfig,
  passed: readonly string[],
) => Promise<VendorList | undefined>;

/**
 * Asks over the network, the way that requests to this provider go.
 * @param gatewayId of this gateway, as its requests name it; left out: they do not
 */
export function askForModels(proxied: PoolOptions['proxied'], gatewayId?: string): ListModels {
  return async (provider, passed) => {
    if (provider.baseUrl === 'demo:') return { names: ['demo'], facts: new Map() };
    // A platform has no list of the models that an account may use.
    if (provider.platform !== undefined || !URL.canParse(provider.baseUrl)) return undefined;
    const abort = new Abort();
    abort.follow(AbortSignal.timeout(DEADLINE_MS));
    const send = networkTo(provider, proxied);
    const keys = provider.keys.length === 0 ? [undefined] : provider.keys.slice(0, MAX_KEYS);
    try {
      for (const key of keys) {
        const headers = vendorHeaders(provider, key);
        // The bytes are counted as they come.
        headers.set('accept-encoding', 'identity');
        if (gatewayId !== undefined) headers.set(LOOP_MARK, [...passed, gatewayId].join(', '));
        const url = vendorUrl(provider, LIST_PATH[provider.protocol]).href;
        const answer = await send({ url, method: 'GET', headers, abort });
        if (answer.status === 200) {
          const chunks: Uint8Array[] = [];
          await readFirst(answer.body, MAX_BYTES, (chunk) => chunks.push(chunk));
          return modelsIn(tryParse(new TextDecoder().decode(Buffer.concat(chunks))));
        }
        answer.body.cancel();
        if (answer.status !== 401 && answer.status !== 403) return undefined;
      }
    } catch {
      // What the configuration names is listed all the same; `hopgate doctor` says what is wrong.
    }
    return undefined;
  };
}

interface Known {
  readonly provider: ProviderConfig;
  list: VendorList | undefined;
  /** Milliseconds since 1970 from which on it is asked again. */
  dueAt: number;
  asking: Promise<void> | undefined;
}

/** The latest list of each provider. A list that is only old is given at once. */
export class ModelLists {
  readonly #known = new Map<string, Known>();

  constructor(
    private readonly request: ListModels,
    private readonly now: () => number = Date.now,
  ) {}

  /**
   * By provider: its last list; a provider that never gave one is left out.
   * @param passed the gateways that the request which wants them has passed
   */
  async of(
    providers: readonly ProviderConfig[],
    passed: readonly string[] = [],
  ): Promise<ReadonlyMap<string, readonly string[]>> {
    const out = new Map<string, readonly string[]>();
    const take = ({ provider, list }: Known) => {
      if (list !== undefined) out.set(provider.name, list.names);
    };
    const all = providers.map((provider) => this.#refreshed(provider, passed));
    all.forEach(take);
    // One that has a list is asked behind the answer that is given from it.
    const first = all.filter(({ provider }) => !out.has(provider.name));
    await Promise.all(first.map(({ asking }) => asking));
    first.forEach(take);
    return out;
  }

  /** What the vendor said of a model in its last list; never waits, and asks nothing. */
  factsOf(provider: ProviderConfig, model: string): ModelFacts | undefined {
    const known = this.#known.get(provider.name);
    if (known === undefined || !sameConfig(known.provider, provider)) return undefined;
    return known.list?.facts.get(model);
  }

  #refreshed(provider: ProviderConfig, passed: readonly string[]): Known {
    let known = this.#known.get(provider.name);
    if (known === undefined || !sameConfig(known.provider, provider)) {
      known = { provider, list: undefined, dueAt: 0, asking: undefined };
      this.#known.set(provider.name, known);
    }
    if (known.asking === undefined && this.now() >= known.dueAt) {
      known.asking = this.#fill(known, passed);
    }
    return known;
  }

  async #fill(known: Known, passed: readonly string[]): Promise<void> {
    const list = await this.request(known.provider, passed);
    if (list !== undefined) known.list = list;
    known.dueAt = this.now() + (list === undefined ? REST_MS : FRESH_MS);
    known.asking = undefined;
  }
}
