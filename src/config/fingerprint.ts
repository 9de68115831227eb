/** A digest by which replicas see whether they have the same configuration. */

import type { Json } from '../lib/json/json.ts';
import type { Config } from './config.ts';

/**
 * 12 hex digits over all that must be equal on all replicas. Secrets count only as being there; addresses, folders,
 * processes and logs belong to one machine.
 */
export function configFingerprint({
  source: _source,
  listen: _listen,
  workers: _workers,
  log: _log,
  telemetry: _telemetry,
  samples: { dir: _dir, ...samples },
  memory: { path: _path, ...memory },
  ...rest
}: Config): string {
  const text = JSON.stringify({ ...rest, samples, memory }, inOneOrder);
  return new Bun.CryptoHasher('sha256').update(text).digest('hex').slice(0, 12);
}

/** Members in the order of their names: the order of a file says nothing. */
function inOneOrder(_name: string, value: Json): Json {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
  const members = Object.entries(value).toSorted(([a], [b]) => (a < b ? -1 : 1));
  return Object.fromEntries(members);
}
