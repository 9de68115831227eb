/** Finds providers without a file: keys in the environment and model servers on this machine, or else the demo. */

import { readUpTo } from '../../lib/http/read-up-to.ts';
import { isGlob } from '../../lib/text/glob.ts';
import { PRESETS } from '../../vendors/index.ts';
import type { Environment } from '../environment.ts';

/** Sends a request to a server, as the global `fetch` does. */
export type Fetch = (url: string, init: { signal: AbortSignal }) => Promise<Response>;

/** Providers and routes as the file would have them. */
export interface Discovery {
  readonly kind: 'discovered' | 'demo';
  readonly providers: Readonly<Record<string, unknown>>;
  readonly routes: readonly unknown[];
}

/** A provider that was found, with its entry as the file would have it. */
export interface DiscoveredProvider {
  readonly name: string;
  readonly entry: Readonly<Record<string, unknown>>;
  /** Model names and globs that are routed there. */
  readonly models: readonly string[];
}

const DISCOVERED = Object.entries(PRESETS).filter(([, { discovered }]) => discovered === true);

/** Names that agents ask for by default; they go to whatever model there is. */
const AGENT_DEFAULTS = ['claude-*', 'gpt-*', 'codex-*', 'o1*', 'o3*', 'o4*', 'gemini-*'];

const PROBE_MS = 300;

/**
 * Keys in the environment, then (given a `fetch`) servers on this machine, all asked at once within
 * 300 ms. If there are none: the built-in provider `demo`, which takes any name.
 */
export async function discover(environment: Environment, fetch?: Fetch): Promise<Discovery> {
  const servers = fetch === undefined ? [] : await probe(fetch);
  return describe([...keyed(environment), ...servers]);
}

/** The same without requests to servers. */
export const discoverKeys = (environment: Environment): Discovery => describe(keyed(environment));

function keyed(environment: Environment): readonly DiscoveredProvider[] {
  return DISCOVERED.flatMap(([name, preset]): DiscoveredProvider[] => {
    const has = preset.variables.some((variable) => environment.variable(variable) !== undefined);
    return has ? [{ name, entry: { preset: name }, models: preset.models }] : [];
  });
}

/** The local servers that answer with a model list; those with an empty list are left out. */
export async function probe(fetch: Fetch): Promise<readonly DiscoveredProvider[]> {
  const candidates = DISCOVERED.flatMap(([preset, { local, endpoints, otherPorts = [] }]) => {
    if (local !== true) return [];
    const base = endpoints['openai-chat']!.baseUrl;
    const others = otherPorts.map((port) => ({
      name: `${preset}-${port}`,
      base: base.replace(/:\d+/, `:${port}`),
      entry: { preset, base_url: base.replace(/:\d+/, `:${port}`) },
    }));
    return [{ name: preset, base, entry: { preset } }, ...others];
  });
  const answers = await Promise.all(
    candidates.map(async ({ name, base, entry }): Promise<DiscoveredProvider[]> => {
      const models = await listModels(`${base}/models`, fetch);
      return models.length === 0 ? [] : [{ name, entry: { ...entry, models }, models }];
    }),
  );
  return answers.flat();
}

async function listModels(url: string, fetch: Fetch): Promise<readonly string[]> {
  const signal = AbortSignal.timeout(PROBE_MS);
  // A race: a server may accept the request and never finish its answer.
  const late = new Promise<readonly string[]>((resolve) =>
    signal.addEventListener('abort', () => resolve([]), { once: true }),
  );
  const answer = async () => readModels(await fetch(url, { signal }));
  return Promise.race([answer().catch(() => []), late]);
}

// The longest model lists have some hundred KB.
const LIST_BYTES = 16 * 1024 * 1024;

async function readModels(response: Response): Promise<readonly string[]> {
  // Another hopgate may listen on the port; requests could go round in a circle.
  if (!response.ok || response.headers.has('x-hopgate-request-id')) return [];
  const { bytes, truncated } = await readUpTo(response.body, LIST_BYTES);
  if (truncated) return [];
  const body: unknown = JSON.parse(new TextDecoder().decode(bytes));
  if (typeof body !== 'object' || body === null) return [];
  const { object, data } = body as { object?: unknown; data?: unknown };
  if (object !== 'list' || !Array.isArray(data)) return [];
  return data.flatMap((item: { id?: unknown } | null) =>
    typeof item?.id === 'string' && item.id !== '' ? [item.id] : [],
  );
}

function describe(found: readonly DiscoveredProvider[]): Discovery {
  const first = found[0];
  if (first === undefined) {
    return {
      kind: 'demo',
      providers: {
        demo: { protocol: 'openai-chat', base_url: 'demo:', models: ['demo', '*'] },
      },
      routes: [],
    };
  }
  const providers = Object.fromEntries(found.map(({ name, entry }) => [name, entry]));
  const routes: unknown[] = [];
  for (const { name } of found) {
    const chat = PRESETS[name]?.forChat;
    if (chat === undefined) continue;
    const { models } = PRESETS[chat]!;
    providers[chat] = { preset: chat, models: models.filter(isGlob) };
    routes.push({
      name: `${chat} (discovered)`,
      when: { model: models, protocol: 'openai-chat' },
      to: [`${chat}/*`],
    });
  }
  for (const { name, models } of found) {
    routes.push({ name: `${name} (discovered)`, when: { model: models }, to: [`${name}/*`] });
  }
  const model = found.flatMap((one) =>
    one.models.filter((known) => !isGlob(known)).map((known) => `${one.name}/${known}`),
  )[0];
  if (model !== undefined) {
    routes.push({ name: 'agents’ own names', when: { model: AGENT_DEFAULTS }, to: [model] });
  }
  routes.push({ name: 'anything else', to: [`${first.name}/*`] });
  return { kind: 'discovered', providers, routes };
}
