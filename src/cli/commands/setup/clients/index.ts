import type { Client } from '../client.ts';
import { CLIENT_NAMES, type ClientName } from '../client-names.ts';
import { aider } from './aider.ts';
import { claude } from './claude.ts';
import { claudeDesktop } from './claude-desktop.ts';
import { cline } from './cline.ts';
import { codex } from './codex.ts';
import { copilot } from './copilot.ts';
import { continueDev, cursor, zed } from './editors.ts';
import { gemini } from './gemini.ts';
import { grok } from './grok.ts';
import { kimi } from './kimi.ts';
import { kilo, opencode } from './opencode.ts';
import { pi } from './pi.ts';
import { qwen } from './qwen.ts';

const BY_NAME: Readonly<Record<ClientName, Client>> = {
  claude,
  codex,
  opencode,
  gemini,
  qwen,
  copilot,
  kimi,
  grok,
  pi,
  kilo,
  cline,
  aider,
  zed,
  continue: continueDev,
  'claude-desktop': claudeDesktop,
  cursor,
};

export const CLIENTS: readonly Client[] = CLIENT_NAMES.map((name) => BY_NAME[name]);
