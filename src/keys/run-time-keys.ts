/** The keys made at run time as a process knows them: in memory, following the file or the database that has them. */

import type { KeyStore } from './key-store.ts';
import type { LoadedKey, LoadedSecret } from './loaded-keys.ts';

/** What is in memory stays valid while the store cannot be read. */
export interface RunTimeKeys {
  /** Follows the changes of other processes from now on. Called again, it does nothing. */
  follow(): void;
  /** @param digest SHA-256 in hex */
  find(digest: string): LoadedSecret | undefined;
  /** The same after a look at the store, which another process may have changed a moment ago. */
  findAnew(digest: string): LoadedSecret | undefined | Promise<LoadedSecret | undefined>;
  /** The store could not be read when it was last looked at: it may have keys that are not known here. */
  readonly unreadable: boolean;
  /** Why no key can be known yet; undefined: they are known. */
  readonly unready: string | undefined;
  byId(id: string): LoadedKey | undefined;
  /** All that are in memory, revoked ones too. */
  readonly all: Iterable<LoadedKey>;
  /** For changes; call {@link changed} after each. @throws when it cannot be used */
  readonly store: KeyStore;
  /** This process has changed the store. Resolves when the change is in force here. */
  changed(): void | Promise<void>;
  close(): void | Promise<void>;
}
