/** The section `retry`, and a provider's own: how often a request is tried, and how long to wait between. */

import type { Static } from '@sinclair/typebox';
import {
  byDefault,
  closed,
  count,
  flag,
  inherited,
  ms,
  optional,
  seconds,
} from '../file/schema-types.ts';

const keys = {
  attempts: count(
    'Tries on one target before the next target is used, including the first try.',
    1,
  ),
  base_delay: seconds('Seconds before the second try; doubles with each further one, with jitter.'),
  max_delay: seconds('The longest pause between two tries, in seconds.'),
  max_cooldown: seconds(
    'The longest time in seconds that a key or a target rests after refusals or failures, whatever Retry-After says.',
  ),
  hedge: flag(
    'Send a second request, to another key or target, when a stream takes longer to begin than 95 of 100 others; the faster one answers. This happens for at most 5 of 100 requests, and the vendor charges for both.',
  ),
};

export const retry = closed(
  {
    attempts: byDefault(keys.attempts, 2),
    base_delay: byDefault(keys.base_delay, 0.5),
    max_delay: byDefault(keys.max_delay, 8),
    max_cooldown: optional(keys.max_cooldown, '300, and 3600 for a key that is refused'),
    hedge: byDefault(keys.hedge, false),
  },
  'What happens when a try fails before the client has received anything.',
);

export const providerRetry = closed(inherited(keys), 'Retries of this upstream.');

export interface RetryConfig {
  /** Tries on one target before the next one, the first included. */
  readonly attempts: number;
  readonly baseDelayMs: number;
  readonly maxDelayMs: number;
  /** The longest rest that a vendor can ask for. */
  readonly maxCooldownMs: number;
  /** The longest rest of any kind. */
  readonly maxRestMs: number;
  /** A second request beside a slow one. */
  readonly hedge: boolean;
}

/** A provider's retries, with those of the top level where it has none. */
export function resolveRetry(
  own: Static<typeof providerRetry>,
  base: Static<typeof retry>,
): RetryConfig {
  const longest = own.max_cooldown ?? base.max_cooldown;
  return {
    attempts: own.attempts ?? base.attempts,
    baseDelayMs: ms(own.base_delay ?? base.base_delay),
    maxDelayMs: ms(own.max_delay ?? base.max_delay),
    maxCooldownMs: ms(longest ?? 300),
    maxRestMs: ms(longest ?? 3600),
    hedge: own.hedge ?? base.hedge,
  };
}
