/** Wires what rests at upstreams to its reports, and to the other replicas where there is a cache. */

import type { KeyValue } from '../../state/engines/engine.ts';
import { SharedHealth, type SharedHealthOptions } from '../../upstream/health/shared-health.ts';
import type { PoolOptions } from '../../upstream/pool.ts';

/** Undefined: there is no cache, each process learns by itself. */
export const sharedHealthOf = (
  cache: KeyValue | undefined,
  replica: string,
  upstreams: SharedHealthOptions['upstreams'],
): SharedHealth | undefined => cache && new SharedHealth({ cache, replica, upstreams });

/** What a pool of upstreams tells. */
export function restEvents(
  report: NonNullable<PoolOptions['onChange']>,
  shared: SharedHealth | undefined,
): Pick<PoolOptions, 'onRest' | 'replicas'> & Required<Pick<PoolOptions, 'onChange'>> {
  if (shared === undefined) return { onChange: report };
  return {
    onChange(provider, rest, begins, place, key) {
      report(provider, rest, begins, place, key);
      if (!begins) shared.back(provider, rest, place, key);
    },
    onRest: (...rest) => shared.rests(...rest),
    replicas: () => shared.replicas,
  };
}
