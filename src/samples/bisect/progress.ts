/** Stores the verdicts of a bisection on disk, so that an interrupted one resumes where it stopped. */

import { createHash } from 'node:crypto';
import { appendFileSync, mkdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { isObject, tryParse } from '../../lib/json/json.ts';
import type { Verdict } from './types.ts';

export interface BisectProgress {
  /** Verdicts of earlier runs, by the key of the candidate. */
  readonly known: ReadonlyMap<string, readonly Verdict[]>;
  /** Folder in which its requests are recorded. */
  readonly samples: string;
  add(key: string, verdict: Verdict, id: string): void;
  /** The request id of the latest probe with this verdict. */
  idOf(key: string, verdict: Verdict): string | undefined;
  /** Removes everything from the disk. */
  remove(): void;
}

/**
 * @param folder of all bisections
 * @param what identifies the run: body, target, whether it is repaired
 */
export function openProgress(
  folder: string,
  what: readonly unknown[],
  fresh: boolean,
): BisectProgress {
  const name = createHash('sha256').update(JSON.stringify(what)).digest('hex').slice(0, 16);
  const own = join(folder, name);
  if (fresh) rmSync(own, { recursive: true, force: true });
  mkdirSync(own, { recursive: true, mode: 0o700 });
  const path = join(own, 'probes.jsonl');
  const known = new Map<string, Verdict[]>();
  const ids = new Map<string, string>();
  const note = (key: string, verdict: Verdict, id: string) => {
    known.set(key, [...(known.get(key) ?? []), verdict]);
    ids.set(`${key} ${verdict}`, id);
  };
  for (const line of read(path).split('\n')) {
    // The last line of a killed run may be incomplete.
    const probe = tryParse(line);
    if (isObject(probe)) note(String(probe.key), probe.verdict as Verdict, String(probe.id));
  }
  const before = new Map(known);
  return {
    known: before,
    samples: join(own, 'samples'),
    add(key, verdict, id) {
      note(key, verdict, id);
      appendFileSync(path, `${JSON.stringify({ key, verdict, id })}\n`, { mode: 0o600 });
    },
    idOf: (key, verdict) => ids.get(`${key} ${verdict}`),
    remove: () => rmSync(own, { recursive: true, force: true }),
  };
}

function read(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}
