/** Where keys made at run time are kept with the audit of their changes: the interface of both forms, file and database. */

import type { FileKeySettings } from '../config/sections/keys/settings.ts';
import type { AuditEntry, ChainedEntry, ChainFault } from './audit-chain.ts';

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

/** A change that was asked for with an `Idempotency-Key`: asked for again, it is not made again. */
export interface RequestMark {
  /** A digest of who asks, for what, under which key. */
  readonly key: string;
  /** A digest of what was asked. */
  readonly body: string;
}

/** A key with all that is kept of it. */
export interface KeyChange {
  readonly record: KeyRecord;
  readonly secrets: readonly SecretRecord[];
}

/** One page of keys in the order of creation. */
export interface KeyPage {
  /** The id of the last key of the page before. */
  readonly after?: string | undefined;
  readonly limit: number;
  /** Also those that were revoked. */
  readonly revoked: boolean;
  /** Only keys in whose id, name or settings this text stands, in small letters or not. */
  readonly search?: string | undefined;
}

export interface AuditFilter {
  /** The entries before this one; left out: from the newest. */
  readonly before?: number | undefined;
  /** The id of a key. */
  readonly target?: string | undefined;
  readonly limit: number;
}

export interface AuditReport {
  readonly count: number;
  /** The hash of the last entry. */
  readonly head: string;
  readonly fault: ChainFault | undefined;
}

/** What a change writes; all of it or nothing. */
export interface PlannedChange {
  readonly record: KeyRecord;
  /** Its secrets from now on; undefined: they stay. */
  readonly secrets?: readonly SecretRecord[];
  readonly audit: Omit<AuditEntry, 'seq' | 'target'>;
}

/** Decides what is written for the key as it is now; undefined: there is none. What it throws undoes everything. */
export type ChangePlan = (now: KeyChange | undefined) => PlannedChange;

export type ChangedKey = KeyChange & {
  /** The request was made before, and nothing was changed. */
  readonly repeated: boolean;
};

/** An entry of the audit before it has its place in the chain. */
export type AuditNote = Omit<AuditEntry, 'seq'>;

export type Later<T> = T | Promise<T>;

/** Every call throws, or rejects, when the keys cannot be used. */
export interface KeyStore {
  /** For messages: `file` of this machine, or `database` of all replicas. */
  readonly form: 'file' | 'database';
  get(id: string): Later<KeyChange | undefined>;
  list(page: KeyPage): Later<readonly KeyRecord[]>;
  /**
   * Reads, decides and writes in one transaction, together with the audit entry and the mark of the request.
   * @returns the key after the change
   * @throws RequestReused, or what `plan` throws
   */
  change(id: string, plan: ChangePlan, request?: RequestMark): Later<ChangedKey>;
  /** The newest first. */
  audit(filter: AuditFilter): Later<readonly ChainedEntry[]>;
  /** Reads the whole chain. */
  verifyAudit(): Later<AuditReport>;
}

/** What a move needs of a store beside. */
export interface MovableKeys extends KeyStore {
  readonly count: Later<number>;
  /** Keys behind this id, in the order of ids. */
  page(after: string, limit: number): Later<readonly KeyChange[]>;
  /** Those of these keys that are there, in any order. */
  many(ids: readonly string[]): Later<readonly KeyChange[]>;
  /** Writes an entry of the audit that belongs to no key. */
  note(said: AuditNote): Later<void>;
}

/** How long a repeated request is recognised. */
export const REQUEST_MS = 24 * 3_600_000;

/** The same `Idempotency-Key` came with another request. */
export class RequestReused extends Error {
  override readonly name = 'RequestReused';
}
