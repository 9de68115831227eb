/** Replicas that have entries in common through one real cache, in this process. */

import { Secret } from '../../../src/config/secret.ts';
import { ValkeyCache } from '../../../src/state/engines/valkey.ts';
import { ValkeyEntries, type ValkeyEntriesOptions } from '../../../src/state/key-value/valkey.ts';
import { textSeal } from '../../../src/state/text-seal.ts';

export interface TestReplica {
  readonly cache: ValkeyCache;
  readonly entries: ValkeyEntries;
  /** Entries that were dropped. */
  readonly dropped: () => number;
  readonly problems: readonly string[];
  close(): Promise<void>;
}

/** The client of one replica. */
export const cacheAt = (port: number): ValkeyCache =>
  new ValkeyCache(
    {
      form: 'single',
      nodes: [{ host: '127.0.0.1', port }],
      db: 0,
      tls: false,
      password: new Secret(''),
    },
    () => {},
  );

export function replicaAt(port: number, options: Partial<ValkeyEntriesOptions> = {}): TestReplica {
  const cache = cacheAt(port);
  const problems: string[] = [];
  let dropped = 0;
  const entries = new ValkeyEntries({
    cache,
    seal: textSeal([]),
    onDropped: (_, count) => {
      dropped += count;
    },
    onProblem: (message) => problems.push(message),
    ...options,
  });
  return {
    cache,
    entries,
    problems,
    dropped: () => dropped,
    async close() {
      await entries.close();
      await cache.close();
    },
  };
}
