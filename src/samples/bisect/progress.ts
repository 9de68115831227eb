/** Stores the verdicts of a bisection on disk, so that an interrupted one resumes where it stopped. */

import { createHash } from 'node:crypto';
import { appendFileSync, mkdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { isObject, tryParse } from '../../lib/json/json.ts';
import type { Verdict } from './types.ts';

export class BisectProgress {
  /** Verdicts of earlier runs, by the key of the candidate. */
  readonly known: ReadonlyMap<string, readonly Verdict[]>;
  /** Folder in which its requests are recorded. */
  readonly samples: string;
  readonly #folder: string;
  readonly #path: string;
  /** Request ids of the latest probes, by key and verdict. */
  readonly #ids = new Map<string, string>();

  /**
   * @param folder of all bisections
   * @param what identifies the run: body, target, whether it is repaired
   */
  constructor(folder: string, what: readonly unknown[], fresh: boolean) {
    const name = createHash('sha256').update(JSON.stringify(what)).digest('hex').slice(0, 16);
    this.#folder = join(folder, name);
    this.#path = join(this.#folder, 'probes.jsonl');
    this.samples = join(this.#folder, 'samples');
    if (fresh) this.remove();
    mkdirSync(this.#folder, { recursive: true, mode: 0o700 });
    const known = new Map<string, Verdict[]>();
    for (const line of read(this.#path).split('\n')) {
      // The last line of a killed run may be incomplete.
      const probe = tryParse(line);
      if (!isObject(probe)) continue;
      const [key, verdict] = [String(probe.key), probe.verdict as Verdict];
      known.set(key, [...(known.get(key) ?? []), verdict]);
      this.#ids.set(`${key} ${verdict}`, String(probe.id));
    }
    this.known = known;
  }

  add(key: string, verdict: Verdict, id: string): void {
    this.#ids.set(`${key} ${verdict}`, id);
    appendFileSync(this.#path, `${JSON.stringify({ key, verdict, id })}\n`, { mode: 0o600 });
  }

  /** The request id of the latest probe with this verdict. */
  idOf(key: string, verdict: Verdict): string | undefined {
    return this.#ids.get(`${key} ${verdict}`);
  }

  /** Removes everything from the disk. */
  remove(): void {
    rmSync(this.#folder, { recursive: true, force: true });
  }
}

function read(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}
