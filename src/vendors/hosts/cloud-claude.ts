/** Flags of betas that Google's and Amazon's clouds both take for Claude. */

// https://docs.litellm.ai/docs/claude_code_auto_mode: both clouds answer `safeguards`.
export const CLOUD_BETAS = [
  'compact-2026-01-12',
  'computer-use-2025-01-24',
  'computer-use-2025-11-24',
  'context-1m-2025-08-07',
  'context-management-2025-06-27',
  'dangerous-tool-use-2026-09-03',
  'interleaved-thinking-2025-05-14',
  'tool-search-tool-2025-10-19',
];

/** What clients say to Anthropic itself. */
export const CLOUD_NAMES = { 'advanced-tool-use-2025-11-20': 'tool-search-tool-2025-10-19' };
