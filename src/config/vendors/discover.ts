/** Providers without a file: from keys in the environment and from servers on this machine; else the demo. */

import { readUpTo } from '../../lib/http/read-up-to.ts';
import type { Environment } from '../environment.ts';
import { PRESETS } from './presets.ts';

/** Asks a server something; the global `fetch` will do. */
export type Fetch = (url: string, init: { signal: AbortSignal }) => Promise<Response>;

/** What was found, in the words of the file. */
export interface Discovery {
  readonly kind: 'discovered' | 'demo';
  readonly providers: Readonly<Record<string, unknown>>;
  readonly routes: readonly unknown[];
}

/** A provider in the words of the file. */
export interface Found {
  readonly name: string;
  readonly entry: Readonly<Record<string, unknown>>;
  /** Which names go there. */
  readonly models: readonly string[];
}

/** Vendors whose key alone says where to go, the first one taking what no other does. */
const BY_KEY = [
  'anthropic',
  'openai',
  'glm',
  'zai',
  'deepseek',
  'kimi',
  'qwen',
  'minimax',
  'gemini',
  'xai',
  'mistral',
  'groq',
  'openrouter',
  'together',
];
const LOCAL = ['ollama', 'lmstudio', 'llamacpp', 'vllm'];
/** Ports that newer releases of a server listen on by default. */
const OTHER_PORTS: Readonly<Record<string, readonly number[]>> = { llamacpp: [9931] };

/** Names that agents ask for unless told otherwise; they go to whatever model there is. */
const AGENT_DEFAULTS = ['claude-*', 'gpt-*', 'codex-*', 'o1*', 'o3*', 'o4*', 'gemini-*'];

const PROBE_MS = 300;

/**
 * Keys in the environment, then (given a `fetch`) servers on this machine, all asked at once and
 * given 300 ms. With nothing found: the built-in provider `demo`, which takes any name.
 */
export async function discover(environment: Environment, fetch?: Fetch): Promise<Discovery> {
  const servers = fetch === undefined ? [] : await probe(fetch);
  return describe([...keyed(environment), ...servers]);
}

/** The same without asking any server. */
export const discoverKeys = (environment: Environment): Discovery => describe(keyed(environment));

function keyed(environment: Environment): readonly Found[] {
  return BY_KEY.flatMap((name): Found[] => {
    const preset = PRESETS[name]!;
    const has = preset.variables.some((variable) => environment.variable(variable) !== undefined);
    return has ? [{ name, entry: { preset: name }, models: preset.models }] : [];
  });
}

/** Local servers that answer like one, with the models that they have; those without any are left out. */
export async function probe(fetch: Fetch): Promise<readonly Found[]> {
  const places = LOCAL.flatMap((preset) => {
    const base = PRESETS[preset]!.endpoints['openai-chat']!.baseUrl;
    const others = (OTHER_PORTS[preset] ?? []).map((port) => ({
      name: `${preset}-${port}`,
      base: base.replace(/:\d+/, `:${port}`),
      entry: { preset, base_url: base.replace(/:\d+/, `:${port}`) },
    }));
    return [{ name: preset, base, entry: { preset } }, ...others];
  });
  const answers = await Promise.all(
    places.map(async ({ name, base, entry }): Promise<Found[]> => {
      const models = await listModels(`${base}/models`, fetch);
      return models.length === 0 ? [] : [{ name, entry: { ...entry, models }, models }];
    }),
  );
  return answers.flat();
}

async function listModels(url: string, fetch: Fetch): Promise<readonly string[]> {
  const signal = AbortSignal.timeout(PROBE_MS);
  // Raced, since a server may accept and then never answer, or never end its answer.
  const late = new Promise<readonly string[]>((resolve) =>
    signal.addEventListener('abort', () => resolve([]), { once: true }),
  );
  const answer = async () => readModels(await fetch(url, { signal }));
  return Promise.race([answer().catch(() => []), late]);
}

// The longest lists of models are some hundred KB.
const LIST_BYTES = 16 * 1024 * 1024;

async function readModels(response: Response): Promise<readonly string[]> {
  // Another hopgate may stand on the port: sending requests round in a circle helps nobody.
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

const isPattern = (model: string) => /[*?]/.test(model);

function describe(found: readonly Found[]): Discovery {
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
  if (Object.hasOwn(providers, 'openai')) {
    // The same vendor speaks both of its protocols: nothing needs converting.
    const chat = PRESETS['openai-chat']!;
    providers['openai-chat'] = { preset: 'openai-chat', models: chat.models.filter(isPattern) };
    routes.push({
      name: 'openai-chat (discovered)',
      when: { model: chat.models, protocol: 'openai-chat' },
      to: ['openai-chat/*'],
    });
  }
  for (const { name, models } of found) {
    routes.push({ name: `${name} (discovered)`, when: { model: models }, to: [`${name}/*`] });
  }
  const model = found.flatMap((one) =>
    one.models.filter((known) => !isPattern(known)).map((known) => `${one.name}/${known}`),
  )[0];
  if (model !== undefined) {
    routes.push({ name: 'agents’ own names', when: { model: AGENT_DEFAULTS }, to: [model] });
  }
  routes.push({ name: 'anything else', to: [`${first.name}/*`] });
  return { kind: 'discovered', providers, routes };
}
