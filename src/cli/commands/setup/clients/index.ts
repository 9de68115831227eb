/** The clients that `hopgate setup` knows. */

import type { Client } from '../client.ts';
import { CLIENT_NAMES, type ClientName } from '../client-names.ts';
import { aider } from './aider.ts';
import { claude } from './claude.ts';
import { cline } from './cline.ts';
import { codex } from './codex.ts';
import { continueDev } from './continue.ts';
import { gemini } from './gemini.ts';
import { opencode } from './opencode.ts';
import { qwen } from './qwen.ts';
import { zed } from './zed.ts';

const BY_NAME: Readonly<Record<ClientName, Client>> = {
  claude,
  codex,
  opencode,
  gemini,
  qwen,
  cline,
  aider,
  zed,
  continue: continueDev,
};

export const CLIENTS: readonly Client[] = CLIENT_NAMES.map((name) => BY_NAME[name]);
