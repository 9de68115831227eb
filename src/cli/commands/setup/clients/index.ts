/** The clients that `hopgate setup` knows. */

import type { Client } from '../client.ts';
import { aider } from './aider.ts';
import { claude } from './claude.ts';
import { cline } from './cline.ts';
import { codex } from './codex.ts';
import { continueDev } from './continue.ts';
import { gemini } from './gemini.ts';
import { opencode } from './opencode.ts';
import { qwen } from './qwen.ts';
import { zed } from './zed.ts';

export const CLIENTS: readonly Client[] = [
  claude,
  codex,
  opencode,
  gemini,
  qwen,
  cline,
  aider,
  zed,
  continueDev,
];

/** Their names, as one types them. */
export const CLIENT_NAMES: readonly string[] = CLIENTS.map(({ name }) => name);
