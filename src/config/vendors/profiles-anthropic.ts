/** Vendor facts of Anthropic: which models think in which way, and what they accept together with it. */

import { BEDROCK_ERRORS } from '../../conversation/vendor-errors/codes.ts';
import { type Facts, NEVER_REASONS, type ProfileFacts } from './profile-schema.ts';

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

/** What holds wherever the models are served. */
const CLAUDE = {
  adaptiveThinking: true,
  systemTurns: true,
  defaultMaxTokens: 32_000,
  temperature: { min: 0, max: 1 },
  // Its models write no other markup.
  leakFamilies: ['anthropic-xml'],
} as const;

/** Adaptive thinking exists from the generation of Opus 4.6 on, system turns from the next one on. */
const MODELS: Readonly<Record<string, Facts>> = {
  'claude-*-4-5*': { ...older, ...one },
  'claude-*-4-1*': { ...older, ...one },
  'claude-*-4-0*': older,
  'claude-*-4-20*': older,
  'claude-*-4@*': older,
  'claude-3*': { ...older, defaultMaxTokens: 8192 },
  'claude-3-5*': { ...NEVER_REASONS, maxOutput: 8192 },
  'claude-3-opus*': { ...NEVER_REASONS, defaultMaxTokens: 4096, maxOutput: 4096 },
  'claude-3-haiku*': { ...NEVER_REASONS, defaultMaxTokens: 4096, maxOutput: 4096 },
  'claude-*-4-6*': {
    ...one,
    ...noPrefill,
    efforts: ['low', 'medium', 'high', 'max'],
    systemTurns: false,
  },
  'claude-opus-4-7*': newest,
  'claude-opus-4-8*': newest,
  'claude-opus-5*': newest,
  'claude-sonnet-5*': newest,
  'claude-haiku-5*': newest,
  'claude-fable-*': { ...newest, toolChoices: ['auto', 'none'] },
  'claude-mythos-*': { ...newest, toolChoices: ['auto', 'none'] },
};

/** Flags that both clouds take. */
const CLOUD_BETAS = [
  'compact-2026-01-12',
  'computer-use-2025-01-24',
  'computer-use-2025-11-24',
  'context-1m-2025-08-07',
  'context-management-2025-06-27',
  'interleaved-thinking-2025-05-14',
  'tool-search-tool-2025-10-19',
];

/** What clients say to Anthropic itself. */
const CLOUD_NAMES = { 'advanced-tool-use-2025-11-20': 'tool-search-tool-2025-10-19' };

/** From Opus 4.7 on Bedrock refuses flags of what has become ordinary. */
const NEWEST_AT_BEDROCK: Facts = {
  ...newest,
  betas: ['interleaved-thinking-2025-05-14'],
  betaFields: ['output_config.effort', 'output_config.format', 'tools.*.strict'],
  renameBetas: {},
};

export const ANTHROPIC_PROFILES: Readonly<Record<string, Omit<ProfileFacts, 'name'>>> = {
  anthropic: {
    ...CLAUDE,
    hostedTools: [
      'web_search',
      'web_fetch',
      'code_execution',
      'tool_search',
      'memory',
      'computer',
      'bash',
      'text_editor',
      'mcp',
    ],
    models: MODELS,
  },
  'vertex-claude': {
    ...CLAUDE,
    hostedTools: ['web_search', 'tool_search', 'memory', 'bash', 'text_editor'],
    // Others: "Unexpected value(s) `…` for the `anthropic-beta` header."
    betas: [...CLOUD_BETAS, 'web-search-2025-03-05', 'claude-code-20250219'],
    betaFields: ['output_config.effort', 'output_config.format', 'tools.*.strict'],
    renameBetas: CLOUD_NAMES,
    models: MODELS,
  },
  'bedrock-claude': {
    ...CLAUDE,
    hostedTools: ['tool_search', 'memory', 'computer', 'bash', 'text_editor'],
    // Others: "invalid beta flag".
    betas: [
      ...CLOUD_BETAS,
      'claude-code-20250219',
      'dev-full-thinking-2025-05-14',
      'effort-2025-11-24',
      'fine-grained-tool-streaming-2025-05-14',
      'output-128k-2025-02-19',
      'token-efficient-tools-2025-02-19',
      'tool-examples-2025-10-29',
    ],
    betaFields: ['output_config.format', 'tools.*.strict'],
    renameBetas: CLOUD_NAMES,
    errors: BEDROCK_ERRORS,
    models: {
      // A model's name there: `us.anthropic.claude-sonnet-4-5-20250929-v1:0`.
      ...Object.fromEntries(Object.entries(MODELS).map(([glob, facts]) => [`*${glob}`, facts])),
      // From here on every flag but these is refused; what others stood for is taken without one.
      '*claude-opus-4-7*': NEWEST_AT_BEDROCK,
      '*claude-opus-4-8*': NEWEST_AT_BEDROCK,
    },
  },
};
