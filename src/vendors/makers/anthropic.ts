/** Anthropic: which models think in which way, and what they accept together with it. */

import { NEVER_REASONS } from '../facts.ts';
import type { Facts, Vendor } from '../vendor.ts';

/**
 * From Opus and Sonnet 4.6 on: "This model does not support assistant message prefill. The
 * conversation must end with a user message."
 */
const noPrefill = { assistantLast: false } as const;
/** From Opus 4.7 on: adaptive thinking only, and no sampling settings at all. */
export const CLAUDE_NEWEST = {
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
export const CLAUDE = {
  adaptiveThinking: true,
  systemTurns: true,
  defaultMaxTokens: 32_000,
  temperature: { min: 0, max: 1 },
  // Its models write no other markup.
  leakFamilies: ['anthropic-xml'],
} as const;

/** Adaptive thinking exists from the generation of Opus 4.6 on, system turns from the next one on. */
export const CLAUDE_MODELS: Readonly<Record<string, Facts>> = {
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
  'claude-opus-4-7*': CLAUDE_NEWEST,
  'claude-opus-4-8*': CLAUDE_NEWEST,
  'claude-opus-5*': CLAUDE_NEWEST,
  'claude-sonnet-5*': CLAUDE_NEWEST,
  'claude-haiku-5*': CLAUDE_NEWEST,
  'claude-fable-*': { ...CLAUDE_NEWEST, toolChoices: ['auto', 'none'] },
  'claude-mythos-*': { ...CLAUDE_NEWEST, toolChoices: ['auto', 'none'] },
};

export const anthropic: Vendor = {
  name: 'Anthropic',
  telemetry: 'anthropic',
  presets: {
    anthropic: {
      protocol: 'anthropic-messages',
      profile: 'anthropic',
      endpoints: {
        'anthropic-messages': { baseUrl: 'https://api.anthropic.com', profile: 'anthropic' },
      },
      variables: ['ANTHROPIC_API_KEY'],
      models: ['claude-opus-4-7', 'claude-sonnet-4-5', 'claude-haiku-4-5', 'claude-*'],
      aliases: ['claude'],
      catalogue: 'anthropic',
      discovered: true,
    },
  },
  profiles: {
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
      models: CLAUDE_MODELS,
    },
  },
  words: [
    {
      source: 'https://docs.claude.com/en/api/errors',
      content_filter: [/output blocked by content filtering policy/i],
      context_overflow: [/exceed context limit/i],
      authentication: [
        /invalid (?:x-)?api.?key|this organization has been disabled|oauth token has (?:expired|been revoked)/i,
      ],
      not_found: [/^\s{0,9}model: ?\S{1,90}|not_found_error model:/i],
      permission: [
        /not available in your (?:country|region)|unsupported (?:country|region|location)/i,
      ],
      quota: [
        /(?:usage|spend|spending) limit (?:has been |was )?(?:reached|exceeded)|usage_limit_reached/i,
      ],
      billing: [/credit balance is too low/i],
      overloaded: [/overloaded/i],
    },
    {
      source: 'github.com/openclaw/openclaw',
      context_overflow: [/request size exceeds model context window/i],
    },
    {
      source: 'github.com/diegosouzapw/OmniRoute/issues/4986',
      quota: [
        /specified (?:\w{1,12} ){0,2}api usage limits|reached your specified|workspace api usage limits/i,
      ],
    },
  ],
};
