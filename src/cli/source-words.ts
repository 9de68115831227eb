/** Where a configuration came from, in words that the banner, `check` and `doctor` share. */

import type { ConfigSource } from '../config/config.ts';

/** Half a sentence: the file, or what stands in for one. */
export function sourceWords(source: ConfigSource): string {
  if (source.kind === 'file') return source.path;
  const file = source.path === undefined ? 'no file' : source.path;
  return source.kind === 'discovered'
    ? `${file} names ${source.path === undefined ? 'a' : 'no'} provider: what the environment and this machine offer`
    : `${file} names ${source.path === undefined ? 'a' : 'no'} provider, and no API key or model server was found: the built-in demo model answers`;
}
