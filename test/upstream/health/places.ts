/** Places with a clock that the test moves, and the session and the signs that the tests send. */

import { KeyRing, type Session } from '../../../src/upstream/key-ring.ts';

export const RATE_LIMIT = { reason: 'rate_limit', status: 429 } as const;
export const OVERLOADED = { reason: 'overloaded', status: 529 } as const;
export const REFUSED = { reason: 'key_refused', status: 401 } as const;
export const QUOTA = { reason: 'quota', status: 429 } as const;

/** As far as the defaults of the configuration allow. */
export const LIMITS = { askedMs: 300_000, longestMs: 3_600_000 };

export const session = (hash: number): Session => ({ hash });

export interface TestRing {
  readonly ring: KeyRing;
  /** Milliseconds pass. */
  pass(ms: number): void;
  readonly now: number;
}

/** A ring of keys `a`, `b`, …, whose clock stands at 1,000 s. */
export function testRing(keys: number, limits = LIMITS): TestRing {
  let now = 1_000_000;
  const names = Array.from({ length: keys }, (_, i) => String.fromCharCode(97 + i));
  const ring = new KeyRing(
    names.map((text) => ({ reveal: () => text, label: `key-${text}` })),
    { limits, clock: () => now },
  );
  return {
    ring,
    pass(ms) {
      now += ms;
    },
    get now() {
      return now;
    },
  };
}
