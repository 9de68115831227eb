/** The names of the clients that `hopgate setup` knows, as they are typed; without the code that sets them up. */

export const CLIENT_NAMES = [
  'claude',
  'codex',
  'opencode',
  'gemini',
  'qwen',
  'cline',
  'aider',
  'zed',
  'continue',
] as const;

export type ClientName = (typeof CLIENT_NAMES)[number];
