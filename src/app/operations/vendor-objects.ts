/** Whose the files, batches and ids at vendors are: in a file of this machine, or in the database of all replicas. */

import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { VENDOR_OBJECTS_SCHEMA, VendorObjects } from '../../endpoints/batches/vendor-objects.ts';
import { NewestMap } from '../../lib/loop/newest-map.ts';
import { localUrl } from '../../server/request-path.ts';
import type { Engines } from '../../state/engines/open-engines.ts';
import { openPostgres } from '../../state/sql/postgres.ts';
import { openSqlite } from '../../state/sql/sqlite.ts';
import { AS_IT_IS } from '../../state/text-seal.ts';

/** Longer than the id of any vendor. */
const MAX_ID_LENGTH = 512;
/** While the database is away. */
const MAX_PENDING = 10_000;

interface PendingId {
  readonly owner: string;
  readonly provider: string;
}

export const vendorObjectsPath = (home: string): string => join(home, 'state', 'vendor-objects.db');

/** @returns what opens it with its first use, and what closes it */
export function openVendorObjects(
  home: string,
  { database, seal }: Pick<Engines, 'database' | 'seal'>,
) {
  let opened: VendorObjects | undefined;
  const path = vendorObjectsPath(home);
  const open = () =>
    database === undefined
      ? new VendorObjects(openSqlite(VENDOR_OBJECTS_SCHEMA, { path }), AS_IT_IS)
      : new VendorObjects(openPostgres(database, VENDOR_OBJECTS_SCHEMA), seal);
  const objects = () => (opened ??= open());
  /** Learnt and not written yet, oldest first. */
  const pending = new NewestMap<string, PendingId>(MAX_PENDING);
  let isWriting = false;
  let isTidy = false;
  async function write(): Promise<void> {
    if (isWriting) return;
    isWriting = true;
    try {
      if (!isTidy) {
        isTidy = true;
        await objects().removeOldIssued();
      }
      for (const [id, { owner, provider }] of pending) {
        await objects().addIssued(owner, [id], provider);
        pending.delete(id);
      }
    } catch {
      // The next id, or the next look for one, tries again.
    } finally {
      isWriting = false;
    }
  }
  return {
    objects,
    /** Notes ids that an answer gave out. */
    learn(owner: string, ids: readonly string[], provider: string): void {
      for (const id of ids) {
        if (id.length > MAX_ID_LENGTH || pending.has(id)) continue;
        pending.set(id, { owner, provider });
      }
      void write();
    },
    /** As of `ForeignIds`. A gateway through which nothing was made makes no store for it. */
    async foreign(owner: string, ids: readonly string[]): Promise<readonly string[]> {
      const others = ids.filter((id) => (pending.get(id)?.owner ?? owner) !== owner);
      if (others.length > 0) return others;
      if (pending.size > 0) void write();
      const isThere = opened !== undefined || database !== undefined || existsSync(path);
      return isThere ? objects().foreign(owner, ids) : [];
    },
    close: () => opened?.close(),
  };
}

/** By which a client reaches this gateway, as its request says. */
export function originOf({ url, headers }: Request): string {
  const isSecure = url.startsWith('https:') || headers.get('x-forwarded-proto') === 'https';
  return `${isSecure ? 'https' : 'http'}://${headers.get('host') ?? localUrl(url).host}`;
}
