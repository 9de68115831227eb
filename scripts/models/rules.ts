/** Rules for requests to single models: facts by profile and glob, which `scripts/models.ts` writes into the file of models. */

import type { Facts } from '../../src/conversation/profile-facts.ts';

/** Facts of all models that match the glob, at the providers that have one of these profiles. Later ones override earlier ones. */
export interface ModelRule {
  readonly profiles: readonly string[];
  readonly glob: string;
  readonly facts: Facts;
}

type Table = Readonly<Record<string, Facts>>;

const rules = (profiles: string, table: Table): readonly ModelRule[] =>
  Object.entries(table).map(([glob, facts]) => ({ profiles: profiles.split(' '), glob, facts }));

const SEES = { images: true } as const;
/** Models that do not reason; vendors refuse the setting instead of ignoring it. */
const NEVER_REASONS = { reasoningParam: 'none', thinkingDefault: 'off' } as const;

// Anthropic ----------------------------------------------------------------------------------------------------------

/**
 * From Opus and Sonnet 4.6 on: "This model does not support assistant message prefill. The
 * conversation must end with a user message."
 */
const noPrefill = { assistantLast: false } as const;
/** From Opus 4.7 on: adaptive thinking only, and no sampling settings at all. */
const newest = {
  budgetThinking: false,
  ...noPrefill,
  dropParams: ['temperature', 'top_p', 'top_k'],
} as const;
const older = { adaptiveThinking: false, systemTurns: false } as const;
/**
 * From Opus 4.1 on: "`temperature` and `top_p` cannot both be specified for this model. Please use only
 * one."
 */
const one = { temperatureWithTopP: false } as const;
/** https://platform.claude.com/docs/en/build-with-claude/effort */
const EFFORTS = ['low', 'medium', 'high', 'xhigh', 'max'] as const;
/** "tool_choice: type "tool" and "any" are not supported for this model." */
const unforced = { toolChoices: ['auto', 'none'] } as const;
/**
 * From Fable 5.1 on a thinking block belongs to the prefix that it was made behind
 * (https://platform.claude.com/docs/en/build-with-claude/preserved-thinking).
 */
const BOUND: Facts = { boundThinking: 'changed' };
/** ""thinking.type.disabled" is not supported for this model." */
const alwaysThinks = { thinkingDefault: 'always', efforts: EFFORTS, ...unforced } as const;

/** Adaptive thinking exists from the generation of Opus 4.6 on, system turns from the next one on. */
const CLAUDE: Table = {
  '*claude-*-4-5*': { ...older, ...one },
  '*claude-*-4-1*': { ...older, ...one },
  '*claude-*-4-0*': older,
  '*claude-*-4-20*': older,
  '*claude-*-4@*': older,
  '*claude-3*': { ...older, defaultMaxTokens: 8192 },
  '*claude-3-5*': { ...NEVER_REASONS, maxOutput: 8192 },
  '*claude-3-opus*': { ...NEVER_REASONS, defaultMaxTokens: 4096, maxOutput: 4096 },
  '*claude-3-haiku*': { ...NEVER_REASONS, defaultMaxTokens: 4096, maxOutput: 4096 },
  '*claude-*-4-6*': {
    ...one,
    ...noPrefill,
    efforts: ['low', 'medium', 'high', 'max'],
    systemTurns: false,
  },
  '*claude-opus-4-7*': newest,
  '*claude-opus-4-8*': newest,
  '*claude-opus-5*': { ...newest, thinkingDefault: 'on' },
  // https://platform.claude.com/docs/en/models/opus-5-5/whats-new-opus-5-5
  '*claude-opus-5-5*': alwaysThinks,
  '*claude-sonnet-5*': { ...newest, thinkingDefault: 'on' },
  // https://platform.claude.com/docs/en/models/sonnet-5-5/whats-new-sonnet-5-5
  '*claude-sonnet-5-5*': { efforts: EFFORTS, thinkingOff: 'between_tools', ...unforced },
  '*claude-haiku-5*': { ...newest, thinkingDefault: 'on' },
  '*claude-fable-*': { ...newest, ...alwaysThinks },
  '*claude-mythos-*': { ...newest, ...alwaysThinks },
};

/** From Opus 4.7 on Bedrock refuses flags of what has become ordinary; what others stood for is taken without one. */
const bedrockFlags: Facts = {
  betas: ['interleaved-thinking-2025-05-14'],
  betaFields: ['output_config.effort', 'output_config.format', 'tools.*.strict'],
  renameBetas: {},
};

// OpenAI -------------------------------------------------------------------------------------------------------------

/** Reasoning models accept no stop sequences, and sampling settings only when they do not reason. */
const reasoning = { samplingWhileThinking: false, maxStops: 0 } as const;
const always = { ...reasoning, thinkingDefault: 'always' } as const;
/**
 * "Function tools with reasoning_effort are not supported for … in /v1/chat/completions. To use function tools, use
 * /v1/responses or set reasoning_effort to 'none'." (https://github.com/BerriAI/litellm/pull/34569: also without any)
 */
const noChatTools = { chatToolsWhileThinking: false } as const;

const GPT: Table = {
  'o1*': { ...always, efforts: ['low', 'medium', 'high'] },
  'o3*': { ...always, efforts: ['low', 'medium', 'high'] },
  'o4*': { ...always, efforts: ['low', 'medium', 'high'] },
  'gpt-5*': reasoning,
  'gpt-5': { ...always, efforts: ['minimal', 'low', 'medium', 'high'] },
  'gpt-5-*': { ...always, efforts: ['minimal', 'low', 'medium', 'high'] },
  // "Unsupported parameter: 'reasoning.effort' is not supported with this model."
  'gpt-3.5*': NEVER_REASONS,
  'gpt-4*': NEVER_REASONS,
  'chatgpt-4o*': NEVER_REASONS,
  'gpt-5-chat*': { ...NEVER_REASONS, maxStops: 4 },
  'gpt-5-codex*': { efforts: ['low', 'medium', 'high'] },
  'gpt-5-pro*': { efforts: ['high'] },
  // Reasoning must be requested…
  'gpt-5.1*': { thinkingDefault: 'off' },
  'gpt-5.2*': { thinkingDefault: 'off' },
  'gpt-5.3*': { thinkingDefault: 'off' },
  'gpt-5.4*': {
    thinkingDefault: 'off',
    efforts: ['none', 'low', 'medium', 'high', 'xhigh'],
    ...noChatTools,
  },
  // …is on by default…
  'gpt-5.5*': {
    thinkingDefault: 'on',
    efforts: ['none', 'low', 'medium', 'high', 'xhigh'],
    ...noChatTools,
  },
  'gpt-5.6*': {
    thinkingDefault: 'on',
    efforts: ['none', 'low', 'medium', 'high', 'xhigh', 'max'],
    ...noChatTools,
  },
  // …or cannot be switched off.
  'gpt-5.1-codex*': { thinkingDefault: 'always' },
  'gpt-5.?-chat*': { thinkingDefault: 'always', efforts: ['medium'] },
  'gpt-5.?-pro*': { thinkingDefault: 'always', efforts: ['medium', 'high', 'xhigh'] },
  // https://github.com/bolna-ai/bolna/pull/1019, https://github.com/dcdpr/jp/pull/1086: measured against the API.
  'gpt-6*': {
    ...always,
    dropParams: ['temperature', 'top_p', 'top_logprobs', 'logprobs'],
    efforts: ['low', 'medium', 'high', 'xhigh', 'max'],
    ...noChatTools,
  },
  // https://github.com/onyx-dot-app/onyx/issues/15008
  'gpt-6-sol*': {
    thinkingDefault: 'on',
    efforts: ['none', 'low', 'medium', 'high', 'xhigh', 'max'],
  },
  'gpt-6-luna*': {
    thinkingDefault: 'on',
    efforts: ['none', 'low', 'medium', 'high', 'xhigh', 'max'],
  },
  'gpt-6.1-terra*': {
    thinkingDefault: 'on',
    efforts: ['none', 'low', 'medium', 'high', 'xhigh', 'max'],
  },
};

/** `max` is Responses' own (https://github.com/BerriAI/litellm-docs/pull/1173). */
const GPT_CHAT: Table = {
  'gpt-6*': { efforts: ['low', 'medium', 'high', 'xhigh'] },
  'gpt-6-sol*': { efforts: ['none', 'low', 'medium', 'high', 'xhigh'] },
  'gpt-6-luna*': { efforts: ['none', 'low', 'medium', 'high', 'xhigh'] },
  'gpt-6.1-terra*': { efforts: ['none', 'low', 'medium', 'high', 'xhigh'] },
};

// Makers whose models reason and want their reasoning back -------------------------------------------------------------

const GLM_SEES: Table = { 'glm-*v': SEES, 'glm-*v-*': SEES };

const GLM: Table = {
  ...GLM_SEES,
  'glm-4': { thinkingDefault: 'off' },
  'glm-4-*': { thinkingDefault: 'off' },
  'glm-5.2*': { reasoningParam: 'reasoning_effort' },
  'glm-5.3*': {
    reasoningParam: 'reasoning_effort',
    thinkingDefault: 'always',
    efforts: ['low', 'high', 'max'],
  },
};

const deepseekV4: Facts = {
  ...SEES,
  thinkingDefault: 'on',
  efforts: ['high', 'max'],
  reasoningReplay: 'all',
};

const DEEPSEEK: Table = {
  'deepseek-v4*': deepseekV4,
  // Names of the newest V4.
  'deepseek-flash*': deepseekV4,
  'deepseek-pro*': deepseekV4,
  'deepseek-reasoner*': { thinkingDefault: 'always', reasoningReplay: 'calls' },
};

/** Sampling settings are fixed while these models reason; any other value is an error. */
const kimiThinks = {
  thinkingDefault: 'on',
  reasoningReplay: 'calls',
  dropParams: ['temperature', 'top_p', 'presence_penalty', 'frequency_penalty', 'n'],
} as const;
/** Always reasons; "low", "high" and "max" only (https://platform.kimi.ai/docs/guide/use-reasoning-effort). */
const k3 = { thinkingDefault: 'always', efforts: ['low', 'high', 'max'] } as const;

const KIMI: Table = {
  'kimi-k2-*': { images: false },
  'kimi-k2-thinking*': { thinkingDefault: 'always', reasoningReplay: 'calls' },
  'kimi-k2.?*': kimiThinks,
  // "remove the K2.x `thinking` configuration and use top-level `reasoning_effort`": the same page.
  'kimi-k3*': { ...kimiThinks, ...k3, reasoningParam: 'reasoning_effort' },
  'kimi-latest*': { ...kimiThinks, ...k3, reasoningParam: 'reasoning_effort' },
  'kimi-thinking*': { thinkingDefault: 'always', reasoningReplay: 'calls' },
  'kimi-for-coding*': { thinkingDefault: 'on', reasoningReplay: 'calls' },
  'moonshot-v1-*': { images: false },
  'moonshot-v1-*vision*': SEES,
};

const KIMI_MESSAGES: Table = {
  'kimi-k2-*': { images: false },
  // https://github.com/anomalyco/models.dev/pull/3310
  'kimi-k3*': { ...k3, adaptiveThinking: true, budgetThinking: false },
};

const QWEN: Table = {
  'qwen3-*b': { thinkingDefault: 'on' },
  'qwen3-*-a*b': { thinkingDefault: 'on' },
  'qwen3.?*': { ...SEES, thinkingDefault: 'on' },
  'qwen3.7-max*': { images: false },
  '*vl*': SEES,
  '*omni*': SEES,
  'qwen3-coder*': { thinkingDefault: 'off', toolChoices: ['auto', 'none', 'tool'] },
  '*-instruct*': { thinkingDefault: 'off' },
  '*-thinking*': { thinkingDefault: 'always' },
  'qwq*': { thinkingDefault: 'always' },
  'qvq*': { ...SEES, thinkingDefault: 'always' },
};

const MINIMAX: Table = {
  'MiniMax-M2*': { thinkingDefault: 'always' },
  'MiniMax-M3*': { ...SEES, thinkingDefault: 'always' },
};

// Google -------------------------------------------------------------------------------------------------------------

const gemini25 = {
  thinkingDefault: 'on',
  efforts: ['none', 'minimal', 'low', 'medium', 'high'],
} as const;
const geminiThinks = {
  thinkingDefault: 'always',
  efforts: ['minimal', 'low', 'medium', 'high'],
} as const;

// https://ai.google.dev/gemini-api/docs/generate-content/thinking#thinking-levels
const notMinimal = { efforts: ['low', 'medium', 'high'] } as const;

const GEMINI_CHAT: Table = {
  'gemini-2.5-flash*': gemini25,
  'gemini-2.5-flash-lite*': { thinkingDefault: 'off' },
  'gemini-2.5-pro*': geminiThinks,
  'gemini-3*': geminiThinks,
  'gemini-3*-pro*': notMinimal,
  'gemini-3.7-flash*': notMinimal,
  'gemini-4*': geminiThinks,
  'gemini-flash*': geminiThinks,
};

const gemini3: Facts = {
  ...geminiThinks,
  thinkingLevels: true,
  callSignatures: true,
  imagesInResults: true,
};

const GEMINI: Table = {
  // "Thinking is not enabled for models/…"
  'gemini-1*': { reasoningParam: 'none', thinkingDefault: 'off', formatWithFunctions: false },
  'gemini-2.0*': { reasoningParam: 'none', thinkingDefault: 'off', formatWithFunctions: false },
  'gemma-*': { reasoningParam: 'none', thinkingDefault: 'off' },
  // "Function calling with a response mime type: 'application/json' is unsupported"
  'gemini-2.5*': { formatWithFunctions: false, ...gemini25 },
  'gemini-2.5-flash-lite*': { thinkingDefault: 'off' },
  'gemini-2.5-pro*': geminiThinks,
  'gemini-3*': gemini3,
  'gemini-3*-pro*': notMinimal,
  'gemini-3.7-flash*': notMinimal,
  'gemini-4*': gemini3,
  // `-latest`: the newest of the line.
  'gemini-flash*': gemini3,
};

// Others -------------------------------------------------------------------------------------------------------------

/** xAI's reasoning models refuse these. */
const grokReasons = {
  dropParams: ['presence_penalty', 'frequency_penalty', 'stop'],
  thinkingDefault: 'always',
} as const;

const GROK: Table = {
  // "Model … does not support parameter reasoningEffort.": tried on every model by
  // https://github.com/NousResearch/hermes-agent/pull/23435
  'grok-2*': NEVER_REASONS,
  'grok-3*': NEVER_REASONS,
  'grok-3-mini*': {
    reasoningParam: 'reasoning_effort',
    efforts: ['low', 'high'],
    thinkingDefault: 'always',
  },
  'grok-code*': { ...grokReasons, reasoningParam: 'none' },
  // Of the generation only the newest take an effort.
  'grok-4*': grokReasons,
  'grok-4': { reasoningParam: 'none' },
  'grok-4-*': { reasoningParam: 'none' },
  'grok-4.1*': { reasoningParam: 'none' },
  'grok-4.20*': { reasoningParam: 'none' },
  'grok-4.20-multi-agent*': {
    reasoningParam: 'reasoning_effort',
    efforts: ['low', 'medium', 'high', 'xhigh'],
  },
  'grok-4.3*': {
    reasoningParam: 'reasoning_effort',
    thinkingDefault: 'on',
    efforts: ['none', 'low', 'medium', 'high'],
  },
  // https://docs.x.ai/developers/model-capabilities/text/reasoning: cannot be switched off; `xhigh` from 4.6 on.
  'grok-4.5*': { efforts: ['low', 'medium', 'high'] },
  'grok-4.6*': { efforts: ['low', 'medium', 'high', 'xhigh'] },
  'grok-4.7*': { efforts: ['low', 'medium', 'high', 'xhigh'] },
  '*non-reasoning*': { dropParams: [], ...NEVER_REASONS },
};

const GROQ: Table = {
  // "reasoning_effort is not supported with this model" (https://console.groq.com/docs/reasoning).
  '*llama*': NEVER_REASONS,
  '*gemma*': NEVER_REASONS,
  '*kimi-k2*': NEVER_REASONS,
  'allam*': NEVER_REASONS,
  '*compound*': NEVER_REASONS,
  '*llama-4*': { images: true },
  // "`reasoning_effort` must be one of `none` or `default`".
  '*qwen3-32b*': {
    reasoningParam: 'reasoning_effort',
    thinkingDefault: 'on',
    efforts: ['none'],
  },
  '*gpt-oss*': { efforts: ['low', 'medium', 'high'], thinkingDefault: 'always' },
};

/** Mistral's: "Unexpected role 'user' after role 'tool'", and ids of exactly nine letters and digits. */
const mistral = { userAfterTool: false, callIds: 'nine-alphanumeric' } as const;

/** What only some models' chat templates refuse: every server ships the same templates. */
const TEMPLATES: Table = {
  '*mistral*': mistral,
  '*ministral*': mistral,
  '*mixtral*': mistral,
  '*magistral*': mistral,
  '*devstral*': mistral,
  '*codestral*': mistral,
  '*pixtral*': mistral,
  // "This model only supports single tool-calls at once!"
  '*llama-3*': { parallelCalls: false },
  '*llama3*': { parallelCalls: false },
  // Its template has the ids in the prompt: github.com/MoonshotAI/Kimi-K2 docs/tool_call_guidance.md
  '*kimi-k2*': { callIds: 'functions' },
};

/** Ollama: `"llama3.2" does not support thinking`. */
const OLLAMA_PLAIN = [
  'llama2*',
  'llama3*',
  'codellama*',
  'tinyllama*',
  'mistral*',
  'mixtral*',
  'codestral*',
  'devstral*',
  'gemma',
  'gemma:*',
  'gemma2*',
  'gemma3*',
  'phi3*',
  'phi4',
  'phi4:*',
  'phi4-mini',
  'qwen2*',
  'deepseek-coder*',
  'starcoder*',
];

export const MODEL_RULES: readonly ModelRule[] = [
  ...rules('anthropic vertex-claude bedrock-claude', CLAUDE),
  // Mythos does not check it; the clouds do not take the flag that goes with it.
  ...rules('anthropic', {
    '*claude-opus-5-5*': BOUND,
    '*claude-sonnet-5-5*': BOUND,
    '*claude-haiku-5-5*': BOUND,
    '*claude-fable-5-?*': BOUND,
  }),
  ...rules('bedrock-claude', {
    '*claude-opus-4-7*': bedrockFlags,
    '*claude-opus-4-8*': bedrockFlags,
  }),
  ...rules('openai openai-chat azure azure-responses', GPT),
  ...rules('openai-chat', GPT_CHAT),
  ...rules('glm glm-coding zai', GLM),
  ...rules('glm-anthropic', GLM_SEES),
  ...rules('deepseek', DEEPSEEK),
  ...rules('deepseek-anthropic', {
    'deepseek-v4*': SEES,
    'deepseek-flash*': SEES,
    'deepseek-pro*': SEES,
  }),
  ...rules('kimi', KIMI),
  ...rules('kimi-anthropic', KIMI_MESSAGES),
  ...rules('qwen', QWEN),
  ...rules('minimax', MINIMAX),
  ...rules('gemini', GEMINI_CHAT),
  ...rules('google-gemini', GEMINI),
  ...rules('xai', GROK),
  ...rules('groq', GROQ),
  // The catalogue's 4,096 is not a limit of the API.
  ...rules('mistral', { 'codestral*': { maxOutput: 256_000 } }),
  ...rules('together ollama lmstudio llamacpp vllm sglang', TEMPLATES),
  ...rules('ollama', Object.fromEntries(OLLAMA_PLAIN.map((glob) => [glob, NEVER_REASONS]))),
];
