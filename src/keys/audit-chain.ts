/** The chain of audit entries: each carries the hash of the one before it, and the last one about a key says what the key is. */

import { canonicalText, isObject, type Json, type JsonObject, tryParse } from '../lib/json/json.ts';
import { sha256Hex } from '../lib/text/sha256.ts';
import type { KeyChange, KeyRecord, SecretRecord } from './key-records.ts';

export interface AuditEntry {
  /** From 1, without gaps. */
  readonly seq: number;
  /** Milliseconds since 1970. */
  readonly time: number;
  /** Who: `admin:key-1a2b3c`, or with its address `admin:key-1a2b3c@203.0.113.7`; `local:<user>`. */
  readonly actor: string;
  /** What: `key.create`, `key.update`, `key.rotate`, `key.revoke`, `key.import`; `audit.import`. */
  readonly action: string;
  /** The id of the key; of `audit.import`, the name of the other chain. */
  readonly target: string;
  /** What was there before and after, without secrets; null for nothing. */
  readonly before: JsonObject | null;
  readonly after: JsonObject | null;
}

/** An entry as it is stored. */
export interface ChainedEntry extends AuditEntry {
  /** The hash of the entry before it; '' for the first. */
  readonly previous: string;
  readonly hash: string;
}

/** SHA-256 in hex over all members and the hash of the entry before. */
export function hashOf(entry: AuditEntry, previous: string): string {
  const { seq, time, actor, action, target, before, after } = entry;
  return sha256Hex(canonicalText([seq, time, actor, action, target, before, after, previous]));
}

/** What is wrong with a chain, and where. */
export interface ChainFault {
  readonly seq: number;
  readonly message: string;
}

/** Checks one entry after the other; {@link ChainCheck.end} compares the last with what is noted beside the chain. */
export class ChainCheck {
  #last: { readonly seq: number; readonly hash: string } = { seq: 0, hash: '' };
  #count = 0;

  /** Undefined: the entry is whole and follows the one before. */
  next(entry: ChainedEntry): ChainFault | undefined {
    const { seq, previous, hash } = entry;
    const expected = this.#last.seq + 1;
    if (seq !== expected) {
      return {
        seq: expected,
        message: `entry ${expected} is missing: ${seq} comes after ${expected - 1}`,
      };
    }
    if (hashOf(entry, previous) !== hash) return { seq, message: `entry ${seq} was changed` };
    if (previous !== this.#last.hash) {
      return { seq, message: `entry ${seq} does not follow entry ${seq - 1}` };
    }
    this.#last = { seq, hash };
    this.#count++;
    return undefined;
  }

  /** @param head the last entry, as it was noted when it was written */
  end(head: { readonly seq: number; readonly hash: string }): ChainFault | undefined {
    const { seq, hash } = this.#last;
    if (seq < head.seq) {
      return { seq: seq + 1, message: `entries ${seq + 1} to ${head.seq} are missing at the end` };
    }
    return seq === head.seq && hash === head.hash
      ? undefined
      : { seq, message: `entry ${seq} is not the one that was written last` };
  }

  get count(): number {
    return this.#count;
  }

  /** The hash of the last entry: noted elsewhere, it proves all that stands before it. */
  get head(): string {
    return this.#last.hash;
  }
}

/** Of a key that says nothing of its own. */
export const NO_SETTINGS: KeyRecord['settings'] = { labels: {}, limits: {}, budgets: [] };

export const isoTime = (time: number) => new Date(time).toISOString();

/** A key as the audit has it: all but its secrets, which one digest stands for. */
export const auditView = ({ record, secrets }: KeyChange): JsonObject => ({
  ...settingsView(record),
  secrets_sha256: digestOf(secrets),
});

const settingsView = ({ name, blocked, revoked, version, settings }: KeyRecord): JsonObject => ({
  name,
  version,
  blocked,
  ...(revoked !== undefined && { revoked: isoTime(revoked) }),
  ...(settings as unknown as JsonObject),
});

function digestOf(secrets: readonly SecretRecord[]): string {
  const facts = secrets.map(({ digest, created, until }) => `${digest} ${created} ${until ?? ''}`);
  return sha256Hex(facts.toSorted().join('\n'));
}

/** The last entry about a key, as it is stored; null: there is none. */
export interface LastEntry {
  readonly entry: number | null;
  readonly after: string | null;
}

/** What a key says otherwise than the last entry about it; undefined: nothing. */
export function keyFault(key: KeyChange, { entry, after }: LastEntry): ChainFault | undefined {
  const { id, name } = key.record;
  const who = `key ${id} (${JSON.stringify(name)})`;
  if (entry === null) return { seq: 0, message: `${who} has no entry` };
  const said = after === null ? undefined : tryParse(after);
  const expected: JsonObject = {
    ...(NO_SETTINGS as unknown as JsonObject),
    ...(isObject(said) && said),
  };
  const found = auditView(key);
  const names = new Set([...Object.keys(expected), ...Object.keys(found)]);
  const wrong = [...names].filter((member) => {
    // Of a rotation, not of the key. Entries of earlier versions have no digest of secrets.
    if (member === 'grace_seconds') return false;
    if (member === 'secrets_sha256' && expected[member] === undefined) return false;
    return !isSame(expected[member], found[member]);
  });
  if (wrong.length === 0) return undefined;
  const fields = wrong.map((member) => (member === 'secrets_sha256' ? 'secrets' : member));
  return {
    seq: entry,
    message: `${who} was changed without an entry: its ${fields.join(', ')} ${fields.length === 1 ? 'differs' : 'differ'} from entry ${entry}, the last one about it`,
  };
}

export const missingKey = (id: string, entry: number): ChainFault => ({
  seq: entry,
  message: `key ${id} of entry ${entry} is gone`,
});

const isSame = (one: Json | undefined, other: Json | undefined): boolean =>
  canonicalText(one ?? null) === canonicalText(other ?? null);
