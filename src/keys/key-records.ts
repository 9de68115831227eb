/** Keys made at run time as they are kept: their settings, and digests of their secrets. */

import type { FileKeySettings } from '../config/sections/keys/settings.ts';

/** A key without its secrets. */
export interface KeyRecord {
  /** `hk_…` */
  readonly id: string;
  readonly name: string;
  /** Grows with every change. */
  readonly version: number;
  /** Milliseconds since 1970. */
  readonly created: number;
  readonly updated: number;
  readonly blocked: boolean;
  /** When it was revoked: it never works again. */
  readonly revoked: number | undefined;
  /** As they were written. */
  readonly settings: FileKeySettings;
}

export interface SecretRecord {
  /** SHA-256 in hex. */
  readonly digest: string;
  /** The id of its key. */
  readonly key: string;
  readonly created: number;
  /** Milliseconds since 1970 until which it works; undefined: as long as the key. */
  readonly until: number | undefined;
}

/** A key with all that is kept of it. */
export interface KeyChange {
  readonly record: KeyRecord;
  readonly secrets: readonly SecretRecord[];
}
