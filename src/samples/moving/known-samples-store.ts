/** What a folder of samples knows of the shared list, only looked at. */

import { join } from 'node:path';
import { openSource } from '../../state/moving/source-store.ts';
import { SHARING_VERSION } from '../shared/sharing-store.ts';

export interface KnownSamples {
  /** The name of the folder in the shared list; undefined: it was never in one. */
  readonly replica: string | undefined;
  /** The shared list had the sample. */
  knows(id: string): boolean;
  close(): void;
}

/** @throws Error with a message for people */
export function knownSamples(root: string): KnownSamples {
  const file = openSource(join(root, 'shared.db'), SHARING_VERSION);
  if (file === undefined) return { replica: undefined, knows: () => false, close() {} };
  const { db } = file;
  const row = db
    .query<{ value: string }, []>("SELECT value FROM state WHERE name = 'replica'")
    .get();
  const known = db.query<unknown, [string]>('SELECT 1 FROM known WHERE id = ?');
  return {
    replica: row?.value,
    knows: (id) => known.get(id) !== null,
    close: () => db.close(),
  };
}
