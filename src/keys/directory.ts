/** Every key that the gateway takes, those of the configuration and those made at run time, found by a digest. */

import { timingSafeEqual } from 'node:crypto';
import type { AuthKey } from '../config/sections/auth.ts';
import type { SharedBudget } from '../config/sections/keys/budgets.ts';
import { readKeySettings } from '../config/sections/keys/settings.ts';
import type { KeyChange } from './key-records.ts';
import { makePrincipal } from './make-principal.ts';
import type { Principal } from './principal.ts';
import type { LoadedSecret, RunTimeKeys } from './run-time-keys.ts';
import { isKeyText } from './secret-format.ts';

/** The parts of a configuration on which keys depend. */
export interface KeysConfig {
  readonly auth: { readonly keys: readonly AuthKey[] };
  readonly budgets: readonly SharedBudget[];
  readonly routes: readonly { readonly name: string }[];
}

/**
 * - `unknown`: no such key
 * - `expired`: its time, or the grace of a secret that was replaced, is over
 * - `blocked`: until an administrator allows it again
 * - `unreadable`: it may be a key of the file or the database, which cannot be read now
 */
export type KeyLookup = Principal | 'unknown' | 'expired' | 'blocked' | 'unreadable';

interface ConfiguredKey {
  readonly digest: Uint8Array;
  readonly principal: Principal;
}

// One native call; a hash object costs three times as much. Its type says more than it gives.
export const sha256 = (text: string): Uint8Array => Bun.SHA256.hash(text) as Uint8Array;

const HASHED = /^sha256:([0-9a-f]{64})$/i;

/** The digest of a key as a configuration has it: the key itself, or `sha256:<hex>`. */
export function digestOfKey(text: string): Uint8Array {
  const hashed = HASHED.exec(text)?.[1];
  return hashed === undefined ? sha256(text) : Buffer.from(hashed, 'hex');
}

export const hexOf = (digest: Uint8Array): string => digest.toHex();

export class KeyDirectory {
  readonly #configured: ReadonlyMap<string, ConfiguredKey>;
  readonly #routes: ReadonlySet<string>;
  /** Made with the first request of each key. */
  readonly #principals = new WeakMap<KeyChange, Principal>();

  /** @param runTime the keys made at run time, which outlive a configuration */
  constructor(
    private readonly config: KeysConfig,
    private readonly runTime: RunTimeKeys | undefined,
  ) {
    this.#routes = new Set(config.routes.map(({ name }) => name));
    this.#configured = configuredKeys(config);
  }

  /**
   * At once for every key that is known; a promise where the store is asked for one that is not.
   * @param presented the key as the client sent it
   * @param digest its SHA-256; may be written over after the call
   * @param now milliseconds since 1970
   */
  find(presented: string, digest: Uint8Array, now: number): KeyLookup | Promise<KeyLookup> {
    const hex = hexOf(digest);
    const configured = this.#configured.get(hex);
    if (configured !== undefined && timingSafeEqual(configured.digest, digest)) {
      return isOver(configured.principal.expires, now) ? 'expired' : configured.principal;
    }
    const runTime = this.runTime;
    if (runTime === undefined) return 'unknown';
    const known = runTime.loaded.find(hex);
    if (known !== undefined) return this.#judged(known, digest, now);
    // The checksum keeps what is no key of ours from the store.
    if (!isKeyText(presented)) return 'unknown';
    return this.#findAnew(runTime, hex, digest.slice(), now);
  }

  async #findAnew(
    runTime: RunTimeKeys,
    hex: string,
    digest: Uint8Array,
    now: number,
  ): Promise<KeyLookup> {
    const secret = await runTime.findAnew(hex);
    if (secret !== undefined) return this.#judged(secret, digest, now);
    return runTime.unreadable ? 'unreadable' : 'unknown';
  }

  #judged({ key, until, digest: known }: LoadedSecret, digest: Uint8Array, now: number): KeyLookup {
    if (!timingSafeEqual(known, digest)) return 'unknown';
    if (key.record.blocked) return 'blocked';
    const principal = this.#principalOf(key);
    return isOver(until, now) || isOver(principal.expires, now) ? 'expired' : principal;
  }

  /** The principals of the keys made at run time that were not revoked. */
  *runTimePrincipals(): Iterable<Principal> {
    for (const key of this.runTime?.loaded.all ?? []) {
      if (key.record.revoked === undefined) yield this.#principalOf(key);
    }
  }

  #principalOf(key: KeyChange): Principal {
    let principal = this.#principals.get(key);
    if (principal === undefined) {
      const { id, name, settings } = key.record;
      const findings = { problems: [], warnings: [] };
      const resolved = readKeySettings(settings, { id, name, path: [] }, this.#routes, findings);
      principal = makePrincipal(
        { id, name, sees: 'own', settings: [resolved] },
        this.config.budgets,
      );
      this.#principals.set(key, principal);
    }
    return principal;
  }
}

const isOver = (time: number | undefined, now: number): boolean =>
  time !== undefined && now >= time;

/** Keys of one name are one principal, but each has its own end. */
function configuredKeys({ auth, budgets }: KeysConfig): ReadonlyMap<string, ConfiguredKey> {
  const found = new Map<string, ConfiguredKey>();
  for (const [name, keys] of Map.groupBy(auth.keys, (key) => key.name)) {
    const sees = keys.every((key) => key.sees === 'all') ? 'all' : 'own';
    const { expires: _, ...shared } = makePrincipal(
      { id: name, name, sees, settings: keys },
      budgets,
    );
    for (const { key, expires } of keys) {
      const digest = digestOfKey(key.reveal());
      const hex = hexOf(digest);
      const principal = expires === undefined ? shared : { ...shared, expires };
      // The first of two equal keys names the owner.
      if (!found.has(hex)) found.set(hex, { digest, principal });
    }
  }
  return found;
}
