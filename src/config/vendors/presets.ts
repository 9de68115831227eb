/** The usual vendors: their addresses, protocols, models, and the variables in which their keys stand. */

import type { ProtocolName } from '../../conversation/protocol-names.ts';

/** How a provider wants its key: which header carries it. */
export const AUTH_STYLES = ['bearer', 'x-api-key', 'api-key', 'x-goog-api-key', 'none'] as const;
export type AuthStyle = (typeof AUTH_STYLES)[number];

/** Clouds that serve the models of several vendors, each with credentials and addresses of its own. */
export const PLATFORM_NAMES = ['vertex', 'bedrock'] as const;
export type PlatformName = (typeof PLATFORM_NAMES)[number];

export interface Endpoint {
  readonly baseUrl: string;
  readonly profile: string;
}

export interface Preset {
  /** The protocol when the file names none: one of `endpoints`, except for vendors without a fixed address. */
  readonly protocol: ProtocolName;
  readonly endpoints: Readonly<Partial<Record<ProtocolName, Endpoint>>>;
  /** The profile where `endpoints` has none for the protocol. */
  readonly profile: string;
  /** The first of these that is set holds the key. Empty for local servers. */
  readonly variables: readonly string[];
  /** Names and globs of this vendor's models. */
  readonly models: readonly string[];
  readonly auth?: AuthStyle;
  /** Its address follows from the platform's own keys. */
  readonly platform?: PlatformName;
  /** Searched for on this machine when nothing is configured. */
  readonly local?: boolean;
}

const chat = (
  baseUrl: string,
  profile: string,
  variables: readonly string[],
  models: readonly string[],
  anthropicUrl?: string,
): Preset => ({
  protocol: 'openai-chat',
  profile,
  endpoints: {
    'openai-chat': { baseUrl, profile },
    ...(anthropicUrl === undefined
      ? {}
      : { 'anthropic-messages': { baseUrl: anthropicUrl, profile: `${profile}-anthropic` } }),
  },
  variables,
  models,
});

/** A server on this machine: speaks OpenAI Chat, needs no key, and serves whatever model it has loaded. */
const local = (port: number, profile: string): Preset => ({
  ...chat(`http://127.0.0.1:${port}/v1`, profile, [], ['*']),
  local: true,
});

/** Those of the other endpoints: embeddings, moderations, images, audio. */
const OPENAI_OTHERS = ['text-embedding-*', 'omni-moderation-*', 'dall-e-*', 'whisper-*', 'tts-*'];
const OPENAI_MODELS = ['gpt-*', 'chatgpt-*', 'codex-*', 'o1*', 'o3*', 'o4*', ...OPENAI_OTHERS];
const GLM_KEYS = ['ZHIPU_API_KEY', 'ZHIPUAI_API_KEY', 'GLM_API_KEY'];
const GLM_MODELS = ['glm-4.7', 'glm-4.6', 'glm-4.5v', 'glm-*'];
const KIMI_MODELS = ['kimi-k2.5', 'kimi-*', 'moonshot-*'];
const KIMI_KEYS = ['MOONSHOT_API_KEY', 'KIMI_API_KEY'];
const QWEN_MODELS = ['qwen3-max', 'qwen3-coder-plus', 'qwen*', 'qwq*', 'qvq*'];
const MINIMAX_MODELS = ['MiniMax-M2.5', 'MiniMax-*'];

/** The vendors by name. `discover.ts` says for which of them a key in the environment is enough, and in which order. */
export const PRESETS: Readonly<Record<string, Preset>> = {
  anthropic: {
    protocol: 'anthropic-messages',
    profile: 'anthropic',
    endpoints: {
      'anthropic-messages': { baseUrl: 'https://api.anthropic.com', profile: 'anthropic' },
    },
    variables: ['ANTHROPIC_API_KEY'],
    models: ['claude-opus-4-7', 'claude-sonnet-4-5', 'claude-haiku-4-5', 'claude-*'],
  },
  openai: {
    protocol: 'openai-responses',
    profile: 'openai',
    endpoints: {
      'openai-responses': { baseUrl: 'https://api.openai.com/v1', profile: 'openai' },
      'openai-chat': { baseUrl: 'https://api.openai.com/v1', profile: 'openai-chat' },
    },
    variables: ['OPENAI_API_KEY'],
    models: ['gpt-5.5', 'gpt-5.1', 'gpt-5-mini', ...OPENAI_MODELS],
  },
  'openai-chat': chat(
    'https://api.openai.com/v1',
    'openai-chat',
    ['OPENAI_API_KEY'],
    ['gpt-5.5', 'gpt-5.1', 'gpt-5-mini', ...OPENAI_MODELS],
  ),
  glm: chat(
    'https://open.bigmodel.cn/api/paas/v4',
    'glm',
    GLM_KEYS,
    GLM_MODELS,
    'https://open.bigmodel.cn/api/anthropic',
  ),
  'glm-coding': chat(
    'https://open.bigmodel.cn/api/coding/paas/v4',
    'glm',
    GLM_KEYS,
    GLM_MODELS,
    'https://open.bigmodel.cn/api/anthropic',
  ),
  zai: chat(
    'https://api.z.ai/api/paas/v4',
    'glm',
    ['ZAI_API_KEY'],
    GLM_MODELS,
    'https://api.z.ai/api/anthropic',
  ),
  'zai-coding': chat(
    'https://api.z.ai/api/coding/paas/v4',
    'glm',
    ['ZAI_API_KEY'],
    GLM_MODELS,
    'https://api.z.ai/api/anthropic',
  ),
  deepseek: chat(
    'https://api.deepseek.com',
    'deepseek',
    ['DEEPSEEK_API_KEY'],
    ['deepseek-chat', 'deepseek-reasoner', 'deepseek-*'],
    'https://api.deepseek.com/anthropic',
  ),
  kimi: chat(
    'https://api.moonshot.ai/v1',
    'kimi',
    KIMI_KEYS,
    KIMI_MODELS,
    'https://api.moonshot.ai/anthropic',
  ),
  'kimi-cn': chat(
    'https://api.moonshot.cn/v1',
    'kimi',
    KIMI_KEYS,
    KIMI_MODELS,
    'https://api.moonshot.cn/anthropic',
  ),
  'kimi-coding': {
    ...chat('https://api.kimi.com/coding/v1', 'kimi', ['KIMI_API_KEY'], KIMI_MODELS),
    protocol: 'anthropic-messages',
    endpoints: {
      'anthropic-messages': { baseUrl: 'https://api.kimi.com/coding', profile: 'kimi-anthropic' },
      'openai-chat': { baseUrl: 'https://api.kimi.com/coding/v1', profile: 'kimi' },
    },
  },
  qwen: chat(
    'https://dashscope.aliyuncs.com/compatible-mode/v1',
    'qwen',
    ['DASHSCOPE_API_KEY', 'QWEN_API_KEY'],
    QWEN_MODELS,
  ),
  'qwen-intl': chat(
    'https://dashscope-intl.aliyuncs.com/compatible-mode/v1',
    'qwen',
    ['DASHSCOPE_API_KEY', 'QWEN_API_KEY'],
    QWEN_MODELS,
  ),
  minimax: chat(
    'https://api.minimax.io/v1',
    'minimax',
    ['MINIMAX_API_KEY'],
    MINIMAX_MODELS,
    'https://api.minimax.io/anthropic',
  ),
  'minimax-cn': chat(
    'https://api.minimaxi.com/v1',
    'minimax',
    ['MINIMAX_API_KEY'],
    MINIMAX_MODELS,
    'https://api.minimaxi.com/anthropic',
  ),
  gemini: {
    protocol: 'google-gemini',
    profile: 'google-gemini',
    endpoints: {
      'google-gemini': {
        baseUrl: 'https://generativelanguage.googleapis.com/v1beta',
        profile: 'google-gemini',
      },
      'openai-chat': {
        baseUrl: 'https://generativelanguage.googleapis.com/v1beta/openai',
        profile: 'gemini',
      },
    },
    variables: ['GEMINI_API_KEY', 'GOOGLE_API_KEY'],
    models: ['gemini-2.5-pro', 'gemini-2.5-flash', 'gemini-*', 'gemma-*'],
  },
  xai: chat('https://api.x.ai/v1', 'xai', ['XAI_API_KEY'], ['grok-4', 'grok-*']),
  mistral: chat(
    'https://api.mistral.ai/v1',
    'mistral',
    ['MISTRAL_API_KEY'],
    [
      'mistral-large-latest',
      'codestral-latest',
      'mistral-*',
      'codestral-*',
      'devstral-*',
      'magistral-*',
      'ministral-*',
      'pixtral-*',
    ],
  ),
  groq: chat(
    'https://api.groq.com/openai/v1',
    'groq',
    ['GROQ_API_KEY'],
    ['openai/gpt-oss-*', 'llama-*', 'meta-llama/*', 'moonshotai/*'],
  ),
  // Names with a vendor before a slash.
  openrouter: chat(
    'https://openrouter.ai/api/v1',
    'openrouter',
    ['OPENROUTER_API_KEY'],
    ['openrouter/auto', '*/*'],
  ),
  together: chat('https://api.together.xyz/v1', 'together', ['TOGETHER_API_KEY'], ['*/*']),
  azure: {
    protocol: 'openai-chat',
    profile: 'azure',
    endpoints: {},
    variables: ['AZURE_OPENAI_API_KEY', 'AZURE_API_KEY'],
    models: OPENAI_MODELS,
    auth: 'api-key',
  },
  'vertex-claude': {
    platform: 'vertex',
    protocol: 'anthropic-messages',
    profile: 'vertex-claude',
    endpoints: {},
    variables: [],
    models: ['claude-*'],
  },
  'vertex-gemini': {
    platform: 'vertex',
    protocol: 'google-gemini',
    profile: 'google-gemini',
    endpoints: {},
    variables: [],
    models: ['gemini-*'],
  },
  bedrock: {
    platform: 'bedrock',
    protocol: 'anthropic-messages',
    profile: 'bedrock-claude',
    endpoints: {},
    variables: ['AWS_BEARER_TOKEN_BEDROCK'],
    models: ['anthropic.claude-*', '*.anthropic.claude-*'],
  },
  ollama: local(11434, 'ollama'),
  lmstudio: local(1234, 'lmstudio'),
  llamacpp: local(8080, 'llamacpp'),
  vllm: local(8000, 'vllm'),
  sglang: local(30000, 'sglang'),
};

/** Other names that people give these vendors. */
export const PRESET_ALIASES: Readonly<Record<string, string>> = {
  claude: 'anthropic',
  zhipu: 'glm',
  bigmodel: 'glm',
  'z.ai': 'zai',
  moonshot: 'kimi',
  dashscope: 'qwen',
  alibaba: 'qwen',
  google: 'gemini',
  grok: 'xai',
  'lm-studio': 'lmstudio',
  'llama.cpp': 'llamacpp',
  'llama-cpp': 'llamacpp',
};

/** The preset of a name, aliases followed; undefined when there is none. */
export function presetOf(name: string): Preset | undefined {
  const key = Object.hasOwn(PRESET_ALIASES, name) ? PRESET_ALIASES[name]! : name;
  return Object.hasOwn(PRESETS, key) ? PRESETS[key] : undefined;
}

/** Every name that {@link presetOf} knows. */
export const presetNames = (): readonly string[] => [
  ...Object.keys(PRESETS),
  ...Object.keys(PRESET_ALIASES),
];
