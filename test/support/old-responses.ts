/** Files of stored responses as commit e9c278fe made them. */

import { Database } from 'bun:sqlite';
import { mkdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

const FOLDER = join(import.meta.dir, '../features/response-store/made-by-e9c278fe');

/** The secret of what waited for the database. */
export const OLD_SECRET = 'a-secret-of-at-least-32-characters';

function make(name: string, path: string): Database {
  mkdirSync(dirname(path), { recursive: true });
  const db = new Database(path, { create: true });
  db.run(readFileSync(join(FOLDER, name), 'utf8'));
  return db;
}

/** The store of a machine: five responses, an erasure, and what was moved into it. */
export const oldFile = (path: string): void => make('responses-v3.sql', path).close();

/** Two responses that waited for the database, `resp_w2` after `resp_w1`. */
export const oldSpool = (path: string): void => make('responses-spool-v1.sql', path).close();
