/** Puts the limits of this process and those of shared engines together. */

import type { KeyValue, Sql } from '../../state/engines/engine.ts';
import type { Reached } from '../engine/local-limits.ts';
import { SYSTEM_CLOCK } from '../kept-limits.ts';
import type { Limits } from '../limits.ts';
import { type LimitsPlace, SharedLimits } from './shared-limits.ts';
import { SharedRates } from './shared-rates.ts';
import { SharedWindows } from './shared-windows.ts';

export interface LimitsEngines {
  readonly cache: KeyValue | undefined;
  readonly database: Sql | undefined;
  /** The id of this process among the replicas. */
  readonly replica: string;
  /** What holds of rates and slots while the cache is away. */
  readonly onError: 'local' | 'open' | 'closed';
}

/** @param own what has no engine */
export function openShared(
  { cache, database, replica, onError }: LimitsEngines,
  own: Limits,
  onReached: (reached: Reached) => void,
): { readonly limits: Limits; close(): Promise<void> } {
  const clock = SYSTEM_CLOCK;
  const rates = cache && new SharedRates({ cache, replica, clock, onError });
  const windows = database && new SharedWindows({ database, replica, clock, onReached });
  if (rates === undefined && windows === undefined) return { limits: own, close: async () => {} };
  const places: LimitsPlace[] = [{ limits: own, has: () => true }];
  if (windows !== undefined)
    places.unshift({ limits: windows, has: ({ kind }) => kind === 'window' });
  if (rates !== undefined) places.unshift({ limits: rates, has: ({ kind }) => kind !== 'window' });
  return {
    limits: new SharedLimits(places),
    async close() {
      await Promise.all([rates?.close(), windows?.close()]);
    },
  };
}
