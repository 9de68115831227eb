/** The image descriptions by image hash: each image is described once. Those of a memory space go with it. */

import { intoEntries } from '../../state/key-value/file-store.ts';
import type { RoomKind } from '../../state/key-value/room.ts';

const FIRST = `
CREATE TABLE descriptions (key TEXT PRIMARY KEY, text TEXT NOT NULL, used INTEGER NOT NULL) WITHOUT ROWID;
CREATE INDEX descriptions_used ON descriptions (used);
`;
// So that descriptions in progress in another process are not stored.
const ERASURES = 'CREATE TABLE erasures (space TEXT PRIMARY KEY, at REAL NOT NULL) WITHOUT ROWID';

/** The first description of an image stays: a history must not change. */
export const DESCRIPTIONS: RoomKind<string> = {
  name: 'images',
  title: 'image descriptions',
  keep: 'first',
  hasGroups: true,
  ttlMs: 30 * 24 * 3_600_000,
  memory: { entries: 500, bytes: Number.POSITIVE_INFINITY },
  file: {
    name: 'descriptions.db',
    migrations: [
      FIRST,
      ERASURES,
      intoEntries('SELECT key, text AS value, used FROM descriptions', 'descriptions'),
    ],
    entries: 20_000,
    bytes: Number.POSITIVE_INFINITY,
    ageMs: Number.POSITIVE_INFINITY,
    flushAfterMs: 50,
  },
};
