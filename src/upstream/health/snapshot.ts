/** The health of all targets that were asked, for the metrics, the page and explanations. */

import type { Upstream } from '../upstream.ts';
import type { Place } from './place.ts';
import { AWAKE, DUE, type Rest, type RestReason } from './rest.ts';

/**
 * - `serving`: at least one key of it is used
 * - `no_model`: nothing rests, but the vendor said last that it has no such model
 * - `half_open`: all keys rested, and one request tries, or the next one will
 * - `resting`: all keys rest
 */
export type TargetState = 'serving' | 'no_model' | 'half_open' | 'resting';

/** One rest. Times as ISO 8601. */
export interface RestingPart {
  readonly provider: string;
  /** Left out: the key rests for every model. */
  readonly model?: string;
  /** The name of the key, which gives nothing away. Left out: all keys rest, or there is none. */
  readonly key?: string;
  readonly reason: RestReason;
  /** The HTTP status that began it; 0: there was no answer. */
  readonly status: number;
  readonly since: string;
  readonly until: string;
  /** A request is trying it. */
  readonly probing: boolean;
}

export interface HealthSnapshot {
  readonly targets: readonly { readonly target: string; readonly state: TargetState }[];
  readonly rests: readonly RestingPart[];
  /** What models have taught by refusing, while this process runs. */
  readonly learnt?: readonly { readonly target: string; readonly facts: readonly string[] }[];
}

/** Takes time in proportion to the places; they are bounded. */
export function healthSnapshot(
  upstreams: Iterable<Upstream>,
  wallNow = Date.now(),
): HealthSnapshot {
  const targets: { target: string; state: TargetState }[] = [];
  const rests: RestingPart[] = [];
  for (const { config, keys } of upstreams) {
    const provider = config.name;
    const { now } = keys;
    const add = (rest: Rest, more: { model?: string; key?: string | undefined }) => {
      if (rest.until === 0 || rest.reason === undefined) return;
      const at = (time: number) => new Date(wallNow + time - now).toISOString();
      rests.push({
        provider,
        ...(more.model === undefined ? {} : { model: more.model }),
        ...(more.key === undefined ? {} : { key: more.key }),
        reason: rest.reason,
        status: rest.status,
        since: at(rest.since),
        until: at(rest.until),
        probing: rest.probing,
      });
    };
    for (const key of keys.keys) add(key.rest, { key: key.secret?.label });
    for (const { name, rest, places } of keys.models) {
      targets.push({ target: `${provider}/${name}`, state: stateOf(places, now) });
      add(rest, { model: name });
      for (const place of places) add(place.rest, { model: name, key: place.key.secret?.label });
    }
  }
  return { targets, rests };
}

/** The state of a target with these places. */
export function stateOf(places: readonly Place[], now: number): TargetState {
  const awake = places.filter((place) => place.standing(now) === AWAKE);
  if (awake.length > 0) return awake.every((place) => place.noModel) ? 'no_model' : 'serving';
  const due = places.some((place) => place.standing(now) === DUE || place.until <= now);
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
