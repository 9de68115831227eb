/** The clients that `hopgate setup` knows, as they are typed, with what it writes; without the code that does it. */

export const CLIENT_FILES = {
  claude: 'the env block of ~/.claude/settings.json',
  codex: 'a provider in ~/.codex/config.toml',
  opencode: 'a provider in ~/.config/opencode/opencode.json',
  gemini: '~/.gemini/.env and settings.json',
  qwen: 'a provider in ~/.qwen/settings.json',
  copilot: '~/.copilot/hopgate.sh and the profile of the shell',
  kimi: 'a provider in ~/.kimi-code/config.toml',
  grok: 'models in ~/.grok/config.toml',
  pi: '~/.pi/agent/models.json and settings.json',
  kilo: 'a provider in ~/.config/kilo/kilo.json',
  cline: '~/.cline/data/settings/providers.json',
  aider: '~/.aider.conf.yml and ~/.aider.model.metadata.json',
  zed: 'a provider in ~/.config/zed/settings.json',
  continue: 'models in ~/.continue/config.yaml',
  'claude-desktop': 'a profile in the configLibrary of Claude-3p, and the mode',
  cursor: 'nothing; prints the steps',
} as const;

export type ClientName = keyof typeof CLIENT_FILES;

export const CLIENT_NAMES = Object.keys(CLIENT_FILES) as readonly ClientName[];
