/** Recognises files that hopgate wrote into other programs' folders, by a comment line with a checksum of the rest. */

import { createHash } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';

const MARK =
  'Written by "hopgate service install", removed by "hopgate service uninstall". sha256:';

const sum = (text: string) => createHash('sha256').update(text).digest('hex');

/** The text with the mark: a `#` line at the beginning, or in XML a comment after the declaration. */
export function withMark(text: string): string {
  if (!text.startsWith('<?xml')) return `# ${MARK}${sum(text)}\n${text}`;
  const [declaration, ...rest] = text.split('\n');
  return [declaration, `<!-- ${MARK}${sum(text)} -->`, ...rest].join('\n');
}

export type Ownership =
  | 'absent'
  /** Exactly as hopgate wrote it. */
  | 'ours'
  /** Written by hopgate, changed since. */
  | 'edited'
  /** Not written by hopgate. */
  | 'foreign';

/** Whose file is it? */
export function ownership(path: string): Ownership {
  if (!existsSync(path)) return 'absent';
  const lines = readFileSync(path, 'utf8').split('\n');
  const at = lines.findIndex((line) => line.includes(MARK));
  if (at < 0 || at > 1) return 'foreign';
  const sealed = /sha256:([0-9a-f]{64})/.exec(lines[at]!)?.[1];
  return sealed === sum(lines.toSpliced(at, 1).join('\n')) ? 'ours' : 'edited';
}
