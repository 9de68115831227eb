/** The health of all targets that were asked: for metrics, the page, explanations, and in full for the admin API. */

import type { ProviderConfig } from '../../config/sections/providers.ts';
import type { Upstream } from '../upstream.ts';
import { AVAILABLE, type Cooldown, type CooldownReason, DUE } from './cooldown.ts';
import type { Place } from './place.ts';

/**
 * - `serving`: at least one key of it is used
 * - `no_model`: nothing cools down, but the vendor said last that it has no such model
 * - `half_open`: all keys cooled down, and one request tries, or the next one will
 * - `resting`: all keys cool down
 */
export type TargetState = 'serving' | 'no_model' | 'half_open' | 'resting';

/** One cooldown. Times as ISO 8601. */
export interface ShownCooldown {
  readonly reason: CooldownReason;
  /** The HTTP status that began it; 0: there was no answer. */
  readonly status: number;
  readonly since: string;
  readonly until: string;
  /** A request is trying it. */
  readonly probing: boolean;
}

export interface RestingPart extends ShownCooldown {
  readonly provider: string;
  /** Left out: the key cools down for every model. */
  readonly model?: string;
  /** The name of the key, which gives nothing away. Left out: all keys cool down, or there is none. */
  readonly key?: string;
}

export interface HealthSnapshot {
  readonly targets: readonly { readonly target: string; readonly state: TargetState }[];
  readonly rests: readonly RestingPart[];
  /** Facts that refusals of models have taught while this process runs. */
  readonly learnt?: readonly { readonly target: string; readonly facts: readonly string[] }[];
}

/** Shows times of a key ring's clock. */
type Moment = (time: number) => string;

const isoTime = (time: number) => new Date(time).toISOString();

const momentOf = ({ keys: { now } }: Upstream, wallNow: number): Moment => {
  return (time) => isoTime(wallNow + time - now);
};

function shown(cooldown: Cooldown, at: Moment): ShownCooldown | undefined {
  const { until, since, reason, status, probing } = cooldown;
  if (until === 0 || reason === undefined) return undefined;
  return { reason, status, since: at(since), until: at(until), probing };
}

/** Takes time in proportion to the places; they are bounded. */
export function healthSnapshot(
  upstreams: Iterable<Upstream>,
  wallNow = Date.now(),
): HealthSnapshot {
  const targets: { target: string; state: TargetState }[] = [];
  const rests: RestingPart[] = [];
  for (const upstream of upstreams) {
    const { config, keys } = upstream;
    const provider = config.name;
    const at = momentOf(upstream, wallNow);
    const add = (cooldown: Cooldown, model?: string, key?: string) => {
      const part = shown(cooldown, at);
      if (part === undefined) return;
      rests.push({ provider, ...(model !== undefined && { model }), ...(key && { key }), ...part });
    };
    for (const { cooldown, secret } of keys.keys) add(cooldown, undefined, secret?.label);
    for (const { name, cooldown, places } of keys.models) {
      targets.push({ target: `${provider}/${name}`, state: stateOf(places, keys.now) });
      add(cooldown, name);
      for (const place of places) add(place.cooldown, name, place.key.secret?.label);
    }
  }
  return { targets, rests };
}

export function stateOf(places: readonly Place[], now: number): TargetState {
  const available = places.filter((place) => place.availability(now) === AVAILABLE);
  if (available.length > 0)
    return available.every(({ noModel }) => noModel) ? 'no_model' : 'serving';
  const due = places.some((place) => place.availability(now) === DUE || place.until <= now);
  return due ? 'half_open' : 'resting';
}

/** The values of the metric `hopgate_target_state`. */
export const STATE_VALUES: Readonly<Record<TargetState, number>> = {
  serving: 0,
  // A client may name any model: that it does not exist is no alarm.
  no_model: 0,
  half_open: 1,
  resting: 2,
};

/**
 * `{data: [{provider, protocol, keys, targets}]}`. Each target has `places`, one for each key that was used or can be;
 * times are ISO 8601. A provider that no request has gone to has no targets.
 */
export function healthReport(
  providers: Iterable<ProviderConfig>,
  upstreams: Iterable<Upstream>,
  wallNow = Date.now(),
) {
  const known = new Map([...upstreams].map((upstream) => [upstream.config.name, upstream]));
  const data = [...providers].map(({ name, protocol, keys }) => {
    const upstream = known.get(name);
    const common = { provider: name, protocol, keys: keys.length };
    if (upstream === undefined) return { ...common, resting_keys: [], targets: [] };
    const { now } = upstream.keys;
    const at = momentOf(upstream, wallNow);
    return {
      ...common,
      resting_keys: upstream.keys.keys.flatMap(({ secret, cooldown }) => {
        const part = shown(cooldown, at);
        return part === undefined ? [] : [{ key: secret?.label ?? null, ...part }];
      }),
      targets: [...upstream.keys.models].map((model) => ({
        target: `${name}/${model.name}`,
        state: stateOf(model.places, now),
        rest: shown(model.cooldown, at) ?? null,
        places: model.places.map((place) => placeView(place, now, at)),
      })),
    };
  });
  return { object: 'list', data };
}

function placeView(place: Place, now: number, at: Moment) {
  const { key, cooldown, load, lastFailure, seen } = place;
  return {
    key: key.secret?.label ?? null,
    state: stateOf([place], now),
    rest: shown(cooldown, at) ?? null,
    waiting: load.waiting,
    quotas_seen: seen === undefined ? null : isoTime(seen.time),
    quotas: (seen?.quotas ?? []).map(({ kind, limit, remaining, resetAt }) => ({
      kind,
      limit: limit ?? null,
      remaining,
      resets_at: resetAt === undefined ? null : isoTime(resetAt),
    })),
    last_failure:
      lastFailure === undefined ? null : { ...lastFailure, time: isoTime(lastFailure.time) },
  };
}
