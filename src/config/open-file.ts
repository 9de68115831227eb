/** Does a configuration file show its keys to other users of the machine? */

import { readFileSync } from 'node:fs';
import { isOpenToOthers } from '../lib/http/key-pair.ts';
import type { Config } from './config.ts';
import { secretsIn } from './secret.ts';

// Shorter ones would match ordinary words.
const LEAST_CHARS = 8;

/** What is wrong with it, and what to do; undefined: nothing, or there is no file. */
export function openFileWithKeys(config: Config): string | undefined {
  const { source } = config;
  if (source.path === undefined || !isOpenToOthers(source.path)) return undefined;
  const text = readFileSync(source.path, 'utf8');
  const holds = secretsIn(config).some((key) => key.length >= LEAST_CHARS && text.includes(key));
  return holds
    ? // biome-ignore lint/suspicious/noTemplateCurlyInString: the words that a user writes in the file
      'holds a key in plain text, and other users of this machine can read or change the file: chmod 600, or write keys as ${VARIABLE}'
    : undefined;
}
