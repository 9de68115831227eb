/** Reports the starts and ends of rests, at most every ten seconds for each target, as a limit may be hit often. */

import type { UpstreamOptions } from '../upstream.ts';
import type { Rest, RestReason } from './rest.ts';

export interface RestChange {
  /** `provider/model`; `provider/*` for a key that rests for every model. */
  readonly target: string;
  /** The name of the key; undefined: it rests for every key, or there is none. */
  readonly key: string | undefined;
  readonly reason: RestReason;
  readonly status: number;
  /** At the beginning: how long it is to rest; at the end: how long it rested. */
  readonly seconds: number;
}

export interface RestListener {
  rests(change: RestChange): void;
  back(change: RestChange): void;
}

const AGAIN_MS = 10_000;

/** An end is reported where its beginning was. */
export function restReports(
  listener: RestListener,
  clock: () => number = () => performance.now(),
): NonNullable<UpstreamOptions['onChange']> {
  const reported = new WeakMap<Rest, { at: number; open: boolean }>();
  return (provider, rest, begins, place, key) => {
    const now = clock();
    const last = reported.get(rest);
    if (begins ? last !== undefined && now - last.at < AGAIN_MS : last?.open !== true) return;
    reported.set(rest, { at: begins ? now : last!.at, open: begins });
    const ofKey = rest === key.rest;
    const change: RestChange = {
      target: `${provider}/${ofKey || place === undefined ? '*' : place.model}`,
      key: rest === place?.modelRest ? undefined : key.secret?.label,
      reason: rest.reason!,
      status: rest.status,
      seconds: Math.round((begins ? rest.until - now : now - rest.since) / 100) / 10,
    };
    if (begins) listener.rests(change);
    else listener.back(change);
  };
}
