/** Compares keys with what the audit says of them: a key that was changed around the audit is found. */

import { isObject, type Json, type JsonObject, tryParse } from '../lib/json/json.ts';
import { type ChainFault, sorted } from './audit-chain.ts';
import type { KeyChange, KeyRecord, SecretRecord } from './key-records.ts';

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
  return new Bun.CryptoHasher('sha256').update(facts.toSorted().join('\n')).digest('hex');
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
  JSON.stringify(sorted(one)) === JSON.stringify(sorted(other));
