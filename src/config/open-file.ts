/** Does a configuration file show its keys to other users of the machine? */

import { readFileSync, statSync } from 'node:fs';
import { isOpenToOthers } from '../lib/http/key-pair.ts';
import type { Config } from './config.ts';
import { secretsIn } from './secret.ts';

// Shorter ones would match ordinary words.
const MIN_CHARS = 8;

const CREDENTIAL = /auth|cookie|key|pass|secret|sig|token/i;

/** Headers, parameters and proxies are all masked in logs, but most of them are no credentials. */
function isCredential(path: readonly string[], text: string): boolean {
  const name = path.at(-1) ?? '';
  const place = path.at(-2);
  if (place === 'headers' || place === 'query') return CREDENTIAL.test(name);
  return name === 'proxy' ? text.includes('@') : true;
}

/** What is wrong with it, and what to do; undefined: nothing, or there is no file. */
export function openFileWithKeys(config: Config): string | undefined {
  const { source } = config;
  if (source.path === undefined || !isOpenToOthers(source.path)) return undefined;
  // A pipe can be read once.
  if (!statSync(source.path).isFile()) return undefined;
  const text = readFileSync(source.path, 'utf8');
  const places = secretsIn(config, isCredential)
    .filter((key) => key.length >= MIN_CHARS)
    .map((key) => text.indexOf(key))
    .filter((at) => at >= 0);
  if (places.length === 0) return undefined;
  const line = text.slice(0, Math.min(...places)).split('\n').length;
  return `holds a key in plain text (line ${line}), and other users of this machine can read or change the file: chmod 600, or write keys as \${VARIABLE}`;
}
