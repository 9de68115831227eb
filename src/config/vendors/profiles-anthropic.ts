/** Vendor facts of Anthropic: which models think in which way, and what they accept together with it. */

import type { ProfileFacts } from './profile-schema.ts';

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

export const ANTHROPIC_PROFILES: Readonly<Record<string, Omit<ProfileFacts, 'name'>>> = {
  anthropic: {
    adaptiveThinking: true,
    systemTurns: true,
    defaultMaxTokens: 32_000,
    temperature: { min: 0, max: 1 },
    // Its models write no other markup.
    leakFamilies: ['anthropic-xml'],
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
    // Adaptive thinking exists from the generation of Opus 4.6 on, system turns from the next one on.
    models: {
      'claude-*-4-5*': { ...older, ...one },
      'claude-*-4-1*': { ...older, ...one },
      'claude-*-4-0*': older,
      'claude-*-4-20*': older,
      'claude-3*': { ...older, defaultMaxTokens: 8192 },
      'claude-3-opus*': { defaultMaxTokens: 4096 },
      'claude-3-haiku*': { defaultMaxTokens: 4096 },
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
    },
  },
};
