/** Anthropic: Claude. */

import type { Vendor } from '../vendor.ts';

/** What holds wherever the models are served. */
export const CLAUDE = {
  adaptiveThinking: true,
  systemTurns: true,
  defaultMaxTokens: 32_000,
  temperature: { min: 0, max: 1 },
  cacheMarks: true,
  // Its models write no other markup.
  leakFamilies: ['anthropic-xml'],
} as const;

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
      models: ['claude-opus-5-5', 'claude-sonnet-5-5', 'claude-haiku-5-5', 'claude-*'],
      aliases: ['claude'],
      catalogue: 'anthropic',
      discovered: true,
    },
  },
  profiles: {
    anthropic: {
      ...CLAUDE,
      exactStreams: true,
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
    // Comes with a 429, and says nothing of shorter requests.
    {
      source: 'github.com/openclaw/openclaw docs/gateway/troubleshooting.md',
      too_large: [/extra usage is required for long context/i],
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
