/** Reads `model_prices_and_context_window.json` of LiteLLM (https://github.com/BerriAI/litellm). */

import type { Line, Vendors } from '../models.ts';

type Entry = Readonly<Record<string, unknown>>;

/** The vendors of a provider of the source, and what stands before the model's own name. */
const PROVIDERS: Readonly<Record<string, readonly [vendors: string, prefix?: string]>> = {
  anthropic: ['anthropic'],
  openai: ['openai'],
  'text-completion-openai': ['openai'],
  gemini: ['google', 'gemini/'],
  'vertex_ai-language-models': ['google-vertex', 'vertex_ai/'],
  'vertex_ai-anthropic_models': ['google-vertex', 'vertex_ai/'],
  'vertex_ai-embedding-models': ['google-vertex', 'vertex_ai/'],
  'vertex_ai-mistral_models': ['google-vertex', 'vertex_ai/'],
  'vertex_ai-llama_models': ['google-vertex', 'vertex_ai/'],
  'vertex_ai-deepseek_models': ['google-vertex', 'vertex_ai/'],
  'vertex_ai-qwen_models': ['google-vertex', 'vertex_ai/'],
  'vertex_ai-zai_models': ['google-vertex', 'vertex_ai/'],
  'vertex_ai-openai_models': ['google-vertex', 'vertex_ai/'],
  vertex_ai: ['google-vertex', 'vertex_ai/'],
  bedrock: ['amazon-bedrock'],
  bedrock_converse: ['amazon-bedrock'],
  azure: ['azure', 'azure/'],
  azure_ai: ['azure', 'azure_ai/'],
  deepseek: ['deepseek', 'deepseek/'],
  moonshot: ['moonshotai moonshotai-cn', 'moonshot/'],
  zai: ['zai', 'zai/'],
  bigmodel: ['zhipuai', 'bigmodel/'],
  dashscope: ['alibaba', 'dashscope/'],
  qwen_ai_platform: ['alibaba-cn', 'qwen_ai_platform/'],
  minimax: ['minimax minimax-cn', 'minimax/'],
  xai: ['xai', 'xai/'],
  mistral: ['mistral', 'mistral/'],
  codestral: ['mistral', 'codestral/'],
  cohere: ['cohere', 'cohere/'],
  cohere_chat: ['cohere', 'cohere_chat/'],
  groq: ['groq', 'groq/'],
  together_ai: ['togetherai', 'together_ai/'],
  fireworks_ai: ['fireworks-ai', 'fireworks_ai/'],
  deepinfra: ['deepinfra', 'deepinfra/'],
  cerebras: ['cerebras', 'cerebras/'],
  perplexity: ['perplexity', 'perplexity/'],
  nvidia_nim: ['nvidia', 'nvidia_nim/'],
  inception: ['inception', 'inception/'],
  openrouter: ['openrouter', 'openrouter/'],
};

/** What is not asked for by text has other units, and no price in tokens. */
const MODES = new Set(['chat', 'responses', 'completion', 'embedding', 'moderation', 'rerank']);

const KINDS: Readonly<Record<string, string>> = {
  input_cost_per_token: 'input',
  output_cost_per_token: 'output',
  cache_read_input_token_cost: 'cached',
  cache_creation_input_token_cost: 'cache_write',
  cache_creation_input_token_cost_above_1hr: 'cache_write_1h',
  output_cost_per_reasoning_token: 'reasoning',
  input_cost_per_audio_token: 'input_audio',
  output_cost_per_audio_token: 'output_audio',
  input_cost_per_image_token: 'input_image',
  output_cost_per_image_token: 'output_image',
};
const KEY = new RegExp(
  `^(${Object.keys(KINDS).join('|')})(?:_above_(\\d+)k_tokens)?(?:_(priority|flex|batches|ultrafast|balanced))?$`,
);
/** As the vendors' answers spell them. */
const TIERS: Readonly<Record<string, string>> = { batches: 'batch' };

/** USD per million, without what a binary fraction adds. */
const million = (usd: number): number => Number((usd * 1e6).toPrecision(12));

function pricesOf(entry: Entry): Line | undefined {
  const groups = new Map<
    string,
    { above?: number; service_tier?: string; [kind: string]: unknown }
  >();
  for (const [key, value] of Object.entries(entry)) {
    const [, kind, above, tier] = KEY.exec(key) ?? [];
    if (kind === undefined || typeof value !== 'number' || value < 0) continue;
    const at = `${above ?? ''} ${tier ?? ''}`;
    const group = groups.get(at) ?? {
      ...(above !== undefined && { above: Number(above) * 1000 }),
      ...(tier !== undefined && { service_tier: TIERS[tier] ?? tier }),
    };
    group[KINDS[kind]!] = million(value);
    groups.set(at, group);
  }
  const usual = groups.get(' ') ?? {};
  const { output: text, output_image: images } = usual;
  const isOfImages = entry.mode === 'image_generation' && typeof images === 'number';
  for (const group of groups.values()) {
    const { input_image, output_image, ...kinds } = group;
    if (isOfImages) {
      // What no vendor tells apart counts as images; what it thinks is text. A tier has the same share of both.
      const share = Number(kinds.output ?? Number.NaN) / Number(text ?? Number.NaN);
      const made = output_image ?? Number((images * share).toPrecision(12));
      group.reasoning ??= kinds.output;
      group.input = input_image ?? kinds.input;
      group.output = Number.isNaN(made) ? undefined : made;
    }
    delete group.input_image;
    delete group.output_image;
  }
  const steps = (entry.tiered_pricing as readonly Entry[] | undefined) ?? [];
  const [first, ...others] = steps.map((step) => ({
    ...pricesOf({ ...step, tiered_pricing: undefined }),
    above: (step.range as readonly number[])[0]!,
  }));
  if (first !== undefined) Object.assign(usual, { ...first, above: undefined });
  if (isOfImages) {
    const { input_cost_per_token, output_cost_per_token } = entry;
    const text = { input_text: input_cost_per_token, output_text: output_cost_per_token };
    for (const [kind, usd] of Object.entries(text)) {
      const price = typeof usd === 'number' ? million(usd) : undefined;
      if (price !== undefined && price !== usual[kind.slice(0, -5)]) usual[kind] = price;
    }
  }
  Object.assign(usual, unitsOf(entry, usual));
  if (usual.input === undefined) return undefined;
  // An hour's price that is none of its own, and reasoning at the price of all output, say nothing.
  const trimmed = (group: Line): Line => {
    const { reasoning, output, ...rest } = group;
    return {
      ...rest,
      ...(output !== undefined && { output }),
      ...(reasoning !== undefined && reasoning !== output && { reasoning }),
    };
  };
  const context = entry.search_context_cost_per_query as
    | Readonly<Record<string, number>>
    | undefined;
  const search = context?.search_context_size_medium;
  const { fast, us } = (entry.provider_specific_entry ?? {}) as Entry;
  const tiers = [...groups.entries()]
    .filter(([at]) => at !== ' ')
    .map(([, group]) => trimmed(group));
  if (typeof fast === 'number') tiers.push(fastTier(trimmed(usual), fast));
  const offPeak = entry.off_peak_pricing as OffPeak | undefined;
  if (offPeak !== undefined) tiers.push(offPeakTier(offPeak));
  // The last that fits counts: longer prompts before shorter ones would hide them, a tier's own step comes last.
  const rank = (tier: Line) =>
    (tier.service_tier === undefined ? 0 : 1e9) + Number(tier.above ?? 0);
  const all = [...others.map(trimmed), ...tiers].toSorted((a, b) => rank(a) - rank(b));
  const kinds: Line = { output: 0, ...trimmed(usual), above: undefined };
  return {
    ...kinds,
    ...(search !== undefined && { search: Number((search * 1000).toPrecision(12)) }),
    ...(all.length > 0 && { tiers: all }),
    ...regionsOf({ ...entry, us }),
    ...(search !== undefined && searchesOf(entry)),
  };
}

/** Prices by the length of sound, or of a text that is spoken, where there are none of tokens. */
function unitsOf(entry: Entry, { input, input_audio }: Line): Line {
  const { mode, input_cost_per_second: second, input_cost_per_character: character } = entry;
  if (input !== undefined || input_audio !== undefined) return {};
  if (mode === 'audio_transcription' && typeof second === 'number')
    return { input: 0, minute: Number((second * 60_000).toPrecision(6)) };
  return mode === 'audio_speech' && typeof character === 'number'
    ? { input: 0, character: million(character) }
    : {};
}

/** Factors where a request is processed in a region, as `Host.region` of vendors and answers name it. */
function regionsOf(entry: Entry): Line {
  const named = {
    us: entry.us ?? entry.regional_processing_uplift_multiplier_us,
    eu: entry.regional_processing_uplift_multiplier_eu,
    regional: entry.regional_endpoint_uplift_multiplier,
  };
  const found = Object.entries(named).filter(([, factor]) => typeof factor === 'number');
  return found.length > 0 ? { regions: Object.fromEntries(found) } : {};
}

/** Google's: the only ones that are billed by the request, and of which some are free. */
function searchesOf({ litellm_provider, web_search_billing_unit, ...entry }: Entry): Line {
  const free = entry.search_free_requests as
    | { readonly count: number; readonly period: 'day' | 'month'; readonly shared_group?: string }
    | undefined;
  const isGoogle = /^(?:gemini|vertex_ai|vertex_ai-language-models)$/.test(
    String(litellm_provider),
  );
  return {
    // "$35 / 1,000 grounded prompts" up to Gemini 2.5 (https://ai.google.dev/gemini-api/docs/pricing).
    ...(isGoogle && web_search_billing_unit !== 'per_query' && { search_per: 'request' }),
    ...(free !== undefined && {
      free_searches: {
        count: free.count,
        per: free.period,
        ...(free.shared_group !== undefined && { group: free.shared_group }),
        // https://ai.google.dev/gemini-api/docs/rate-limits: quotas of a day begin at midnight Pacific time.
        zone: 'America/Los_Angeles',
      },
    }),
  };
}

interface OffPeak extends Entry {
  readonly windows: readonly {
    readonly hours_utc: string | readonly string[];
    /** 1 = Monday … 7; left out: all. */
    readonly weekdays?: readonly number[];
  }[];
}

const WEEKDAYS = ['mon', 'tue', 'wed', 'thu', 'fri', 'sat', 'sun'];

/** The usual prices are those of the dear hours. */
function offPeakTier({ windows, weekday_timezone, ...prices }: OffPeak): Line {
  // Hours in one zone on days of another are no windows of ours; no vendor that is used here has them.
  if (weekday_timezone !== undefined && weekday_timezone !== 'UTC')
    throw new Error(`off-peak hours on days of ${String(weekday_timezone)}`);
  const time = windows.flatMap(({ hours_utc, weekdays }) =>
    [hours_utc].flat().map((hours) => ({
      hours: hours.replace(/-00:00$/, '-24:00'),
      ...(weekdays !== undefined && { days: weekdays.map((day) => WEEKDAYS[day - 1]) }),
    })),
  );
  const { input, output, cached } = pricesOf(prices) ?? {};
  return { time, input, output, ...(cached !== undefined && { cached }) };
}

/** Anthropic's fast mode multiplies every price. */
const fastTier = (usual: Line, factor: number): Line => ({
  service_tier: 'fast',
  ...Object.fromEntries(
    Object.entries(usual).flatMap(([kind, price]) =>
      typeof price === 'number' ? [[kind, Number((price * factor).toPrecision(12))]] : [],
    ),
  ),
});

function kindsOf(entry: Entry): string {
  const named = entry.supported_modalities as readonly string[] | undefined;
  const has = (kind: string, ...flags: readonly string[]) =>
    named?.includes(kind) === true || flags.some((flag) => entry[`supports_${flag}`] === true);
  return [
    'text',
    ...(has('image', 'vision', 'image_input') ? ['image'] : []),
    ...(has('pdf', 'pdf_input') ? ['pdf'] : []),
    ...(has('audio', 'audio_input') ? ['audio'] : []),
    ...(has('video', 'video_input') ? ['video'] : []),
  ].join(' ');
}

const DAY = /^\d{4}-\d{2}-\d{2}$/;

function lineOf(entry: Entry, ownName: (id: string) => string): Line {
  const number = (key: string) => {
    const value = entry[key];
    return typeof value === 'number' && value > 0 ? Math.floor(value) : undefined;
  };
  const text = (key: string) => {
    const value = entry[key];
    return typeof value === 'string' ? value : undefined;
  };
  const usd = pricesOf(entry);
  const ends = text('deprecation_date');
  const next = text('successor_model');
  return Object.fromEntries(
    Object.entries({
      context: number('max_input_tokens') ?? number('max_tokens'),
      output: entry.mode === 'embedding' ? undefined : number('max_output_tokens'),
      can: `${entry.supports_function_calling === true ? 't' : ''}${entry.supports_reasoning === true ? 'r' : ''}`,
      in: kindsOf(entry),
      cache: number('prompt_cache_min_tokens'),
      usd,
      ends: ends !== undefined && DAY.test(ends) ? ends : undefined,
      next: next === undefined ? undefined : ownName(next),
    }).filter(([, value]) => value !== undefined),
  );
}

/** Without what names the route to a model and not the model. */
function ownNameOf(id: string, prefix: string | undefined): string {
  return prefix !== undefined && id.startsWith(prefix) ? id.slice(prefix.length) : id;
}

/** Names of a region, or of another way to the same model, beside the vendor's own. */
const REGIONAL =
  /^(?:bedrock|bedrock_mantle|sample_spec|(?:us|eu|global|gov|us-gov|apac|regional)(?=\/))\//;

export function litellmVendors(source: Readonly<Record<string, unknown>>): Vendors {
  const out: Record<string, Record<string, Line>> = {};
  const prefixed = new Set<string>();
  const entries = Object.entries(source).filter(
    (pair): pair is [string, Entry] => typeof pair[1] === 'object' && pair[1] !== null,
  );
  const aliases = entries.filter(([, { alias_of }]) => typeof alias_of === 'string');
  const known = new Map(entries);
  const add = (id: string, entry: Entry) => {
    const [vendors, prefix] = PROVIDERS[String(entry.litellm_provider)] ?? [];
    if (vendors === undefined) return;
    const mode = entry.mode ?? 'chat';
    const isSound = mode === 'audio_transcription' || mode === 'audio_speech';
    if (!MODES.has(String(mode)) && entry.input_cost_per_token === undefined && !isSound) return;
    const name = ownNameOf(id, prefix);
    if (REGIONAL.test(name) || name.length > 120) return;
    const line = lineOf(entry, (next) => ownNameOf(next, prefix));
    const isUsed = !isSound && (line.context !== undefined || line.ends !== undefined);
    if (line.usd === undefined && !isUsed) return;
    for (const vendor of vendors.split(' ')) {
      out[vendor] ??= {};
      // A name with its provider's prefix is the newer spelling, wherever it stands.
      const key = `${vendor} ${name}`;
      if (name !== id) prefixed.add(key);
      const known = out[vendor][name];
      out[vendor][name] =
        name === id && prefixed.has(key) ? { ...line, ...known } : { ...known, ...line };
    }
  };
  for (const [id, entry] of entries) if (entry.alias_of === undefined) add(id, entry);
  for (const [id, { alias_of }] of aliases) {
    const target = known.get(String(alias_of));
    if (target !== undefined) add(id, target);
  }
  return out;
}
