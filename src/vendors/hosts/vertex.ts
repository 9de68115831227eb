/** Google Vertex AI: Claude and Gemini in Google's cloud. */

import { CLAUDE } from '../makers/anthropic.ts';
import type { Vendor } from '../vendor.ts';
import { CLOUD_BETAS, CLOUD_NAMES } from './cloud-claude.ts';

export const vertex: Vendor = {
  name: 'Vertex AI',
  topic: { section: '/platforms#vertex-ai', words: 'vertex, gcp, google cloud' },
  presets: {
    'vertex-claude': {
      platform: 'vertex',
      protocol: 'anthropic-messages',
      profile: 'vertex-claude',
      endpoints: {},
      variables: [],
      models: ['claude-*'],
      catalogue: 'google-vertex',
    },
    'vertex-gemini': {
      platform: 'vertex',
      protocol: 'google-gemini',
      profile: 'google-gemini',
      endpoints: {},
      variables: [],
      models: ['gemini-*'],
      catalogue: 'google-vertex',
    },
  },
  // Regions cost more than the global address (https://cloud.google.com/gemini-enterprise-agent-platform/generative-ai/pricing).
  hosts: [
    { host: 'aiplatform.googleapis.com', region: 'global' },
    { host: '*-aiplatform.googleapis.com', region: 'regional' },
    { host: '*.rep.googleapis.com', region: 'regional' },
  ].map((one) => ({ ...one, catalogue: 'google-vertex', telemetry: 'gcp.vertex_ai' })),
  profiles: {
    'vertex-claude': {
      ...CLAUDE,
      // https://doc.routerhub.ai/prompt-caching.html
      rootCacheMark: false,
      hostedTools: ['web_search', 'tool_search', 'memory', 'bash', 'text_editor'],
      // Others: "Unexpected value(s) `…` for the `anthropic-beta` header."
      betas: [...CLOUD_BETAS, 'web-search-2025-03-05', 'claude-code-20250219'],
      betaFields: ['output_config.effort', 'output_config.format', 'tools.*.strict'],
      renameBetas: CLOUD_NAMES,
    },
  },
  words: [
    {
      source: 'https://cloud.google.com/vertex-ai/generative-ai/docs/error-codes',
      not_found: [
        /publisher model [^\n]{0,90}(?:was|is) not (?:found|servable)|publisher model [^\n]{0,90} not found/i,
      ],
    },
  ],
};
