import { closed, count, flag, inherited, type ProgramForm, seconds } from '../file/schema.ts';

const keys = {
  attempts: count(
    'Attempts on one target before the next target is used, the first one included.',
    1,
  ),
  base_delay: seconds(
    'Seconds before the second attempt; doubles with each further one, with jitter.',
  ),
  max_delay: seconds('The longest pause between two attempts, in seconds.'),
  max_cooldown: seconds(
    'The longest time in seconds that a key or a target cools down after refusals or failures, whatever Retry-After says.',
  ),
  hedge: flag(
    'Send a second request, to another key or target, when a stream takes longer to begin than 95 of 100 others; the faster one answers.',
  ),
};

export const retry = closed('Attempts that fail before the client has received anything.', {
  attempts: keys.attempts.byDefault(2),
  base_delay: keys.base_delay.byDefault(0.5),
  max_delay: keys.max_delay.byDefault(8),
  max_cooldown: keys.max_cooldown.optional('300, and 3600 for a key that is refused'),
  hedge: keys.hedge.byDefault(false),
});

export const providerRetry = closed(
  'Retries of this upstream: the keys of `retry`.',
  inherited(keys),
);

export interface RetryConfig extends Required<ProgramForm<typeof retry>> {
  /** The longest rest of any kind; `maxCooldownMs` is the longest that a vendor can ask for. */
  readonly maxRestMs: number;
}

/** A provider's retries, with those of the top level where it has none. */
export function resolveRetry(
  own: ProgramForm<typeof providerRetry>,
  base: ProgramForm<typeof retry>,
): RetryConfig {
  const all = { ...base, ...own };
  return {
    ...all,
    maxCooldownMs: all.maxCooldownMs ?? 300_000,
    maxRestMs: all.maxCooldownMs ?? 3_600_000,
  };
}
