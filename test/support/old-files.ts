/** Files of state as earlier versions wrote them: `test/fixtures/state/ROOM-SCHEMA.db.zst`. */

import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const FOLDER = join(import.meta.dir, '../fixtures/state');

/** @param name `keys-1`: the room and the number of its schema */
export const copyOldFile = (name: string, path: string): void =>
  writeFileSync(path, Bun.zstdDecompressSync(readFileSync(join(FOLDER, `${name}.db.zst`))));
