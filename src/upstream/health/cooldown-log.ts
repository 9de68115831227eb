/** Starts and ends of cooldowns for the log, at most every ten seconds for each: a limit may be hit often. */

import type { Cooldown, CooldownReason } from './cooldown.ts';
import type { CooldownChange } from './place.ts';

/** As the log events `target.rests` and `target.back` have it. */
export interface LoggedCooldown {
  /** `provider/model`; `provider/*` for a key that cools down for every model. */
  readonly target: string;
  /** The name of the key; undefined: every key cools down, or there is none. */
  readonly key: string | undefined;
  readonly reason: CooldownReason;
  readonly status: number;
  /** At the beginning: how long it is to last; at the end: how long it lasted. */
  readonly seconds: number;
}

const AGAIN_MS = 10_000;

/** An end is logged where its beginning was. */
export function cooldownLog(
  log: (kind: 'began' | 'ended', cooldown: LoggedCooldown) => void,
  clock: () => number = () => performance.now(),
): (provider: string, change: CooldownChange) => void {
  const logged = new WeakMap<Cooldown, { readonly at: number; readonly open: boolean }>();
  return (provider, { kind, cooldown, place, key }) => {
    if (kind === 'longer') return;
    const now = clock();
    const last = logged.get(cooldown);
    const begins = kind === 'began';
    if (begins ? last !== undefined && now - last.at < AGAIN_MS : last?.open !== true) return;
    logged.set(cooldown, { at: begins ? now : last!.at, open: begins });
    const isOfKey = cooldown === key.cooldown;
    const ms = begins ? cooldown.until - now : now - cooldown.since;
    log(kind, {
      target: `${provider}/${isOfKey || place === undefined ? '*' : place.model}`,
      key: cooldown === place?.modelCooldown ? undefined : key.secret?.label,
      reason: cooldown.reason!,
      status: cooldown.status,
      seconds: Math.round(ms / 100) / 10,
    });
  };
}
