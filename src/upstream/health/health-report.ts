/** The health of all providers in full, for the admin API: places, rests, the vendor's remaining limits, last failures. */

import type { ProviderConfig } from '../../config/sections/providers.ts';
import type { JsonObject } from '../../lib/json/json.ts';
import type { Upstream } from '../upstream.ts';
import type { Place } from './place.ts';
import type { Rest } from './rest.ts';
import { stateOf } from './snapshot.ts';

/**
 * `{data: [{provider, protocol, keys, targets}]}`. Each target has `places`, one for each key that was used or can be;
 * times are ISO 8601. A provider that no request has gone to has no targets.
 */
export function healthReport(
  providers: Iterable<ProviderConfig>,
  upstreams: Iterable<Upstream>,
  wallNow = Date.now(),
): JsonObject {
  const known = new Map([...upstreams].map((upstream) => [upstream.config.name, upstream]));
  const data = [...providers].map(({ name, protocol, keys }) => {
    const upstream = known.get(name);
    const common = { provider: name, protocol, keys: keys.length };
    if (upstream === undefined) return { ...common, resting_keys: [], targets: [] };
    const { now } = upstream.keys;
    const at = (time: number) => isoTime(wallNow + time - now);
    return {
      ...common,
      resting_keys: upstream.keys.keys.flatMap(({ secret, rest }) => {
        const resting = restView(rest, at);
        return resting === null ? [] : [{ key: secret?.label ?? null, ...resting }];
      }),
      targets: [...upstream.keys.models].map((model) => ({
        target: `${name}/${model.name}`,
        state: stateOf(model.places, now),
        rest: restView(model.rest, at),
        places: model.places.map((place) => placeView(place, now, at)),
      })),
    };
  });
  return { object: 'list', data };
}

type Moment = (time: number) => string;

const isoTime = (time: number) => new Date(time).toISOString();

function placeView(place: Place, now: number, at: Moment): JsonObject {
  const { key, rest, load, lastFailure, seen } = place;
  return {
    key: key.secret?.label ?? null,
    state: stateOf([place], now),
    rest: restView(rest, at),
    waiting: load.waiting,
    quotas_seen: seen === undefined ? null : isoTime(seen.time),
    quotas: (seen?.quotas ?? []).map(({ kind, limit, remaining, resetAt }) => ({
      kind,
      limit: limit ?? null,
      remaining,
      resets_at: resetAt === undefined ? null : isoTime(resetAt),
    })),
    last_failure:
      lastFailure === undefined
        ? null
        : {
            time: isoTime(lastFailure.time),
            status: lastFailure.status,
            kind: lastFailure.kind,
            message: lastFailure.message,
          },
  };
}

function restView(rest: Rest, at: Moment): JsonObject | null {
  const { until, since, reason, status, probing } = rest;
  if (until === 0 || reason === undefined) return null;
  return { reason, status, since: at(since), until: at(until), probing };
}
