/** Whose the files and batches at vendors are: in a file of this machine, or in the database of all replicas. */

import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { VENDOR_OBJECTS_SCHEMA, VendorObjects } from '../../endpoints/batches/vendor-objects.ts';
import { localUrl } from '../../server/request-path.ts';
import type { Engines } from '../../state/engines/open-engines.ts';
import { openPostgres } from '../../state/sql/postgres.ts';
import { openSqlite } from '../../state/sql/sqlite.ts';
import { AS_IT_IS } from '../../state/text-seal.ts';

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
  return {
    objects,
    /** As of `ForeignFiles`. A gateway through which no file was made makes no store for it. */
    async foreign(owner: string, ids: readonly string[]): Promise<readonly string[]> {
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
