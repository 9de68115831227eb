/** The section `retry`, and a provider's own: how often a request is tried, and how long to wait between. */

import type { Static } from '@sinclair/typebox';
import { byDefault, closed, count, ms, optional, seconds } from '../file/schema-types.ts';

const keys = {
  attempts: count('Tries on one target before the next target, the first try included.', 1),
  base_delay: seconds('Seconds before the second try; doubles with each further one, with jitter.'),
  max_delay: seconds('The longest pause between two tries, in seconds.'),
  max_cooldown: seconds(
    'The longest time in seconds that a key is not used after a refusal, whatever Retry-After says.',
  ),
};

export const retry = closed(
  {
    attempts: byDefault(keys.attempts, 2),
    base_delay: byDefault(keys.base_delay, 0.5),
    max_delay: byDefault(keys.max_delay, 8),
    max_cooldown: byDefault(keys.max_cooldown, 300),
  },
  'What happens when a try fails before the first byte reached the client.',
);

const inherited = 'that of the top level';

export const providerRetry = closed(
  {
    attempts: optional(keys.attempts, inherited),
    base_delay: optional(keys.base_delay, inherited),
    max_delay: optional(keys.max_delay, inherited),
    max_cooldown: optional(keys.max_cooldown, inherited),
  },
  'Retries of this upstream.',
);

export interface RetryConfig {
  /** Tries on one target before the next one, the first included. */
  readonly attempts: number;
  readonly baseDelayMs: number;
  readonly maxDelayMs: number;
  /** The longest time that a key is not used after a refusal, whatever Retry-After says. */
  readonly maxCooldownMs: number;
}

/** A provider's retries, with those of the top level where it has none. */
export function resolveRetry(
  own: Static<typeof providerRetry>,
  base: Static<typeof retry>,
): RetryConfig {
  return {
    attempts: own.attempts ?? base.attempts,
    baseDelayMs: ms(own.base_delay ?? base.base_delay),
    maxDelayMs: ms(own.max_delay ?? base.max_delay),
    maxCooldownMs: ms(own.max_cooldown ?? base.max_cooldown),
  };
}
