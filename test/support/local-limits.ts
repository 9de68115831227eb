/** Limits of one process for tests, which answer at once: a request on its own machine never waits for an admission. */

import { SYSTEM_CLOCK } from '../../src/limits/limit-state.ts';
import type { Admission, Limit, Limits, LimitUsage } from '../../src/limits/limits.ts';
import { LimitsStore, type LimitsStoreOptions } from '../../src/limits/limits-store.ts';
import { ProcessLimits, type ProcessLimitsOptions } from '../../src/limits/process-limits.ts';

function atOnce<T>(value: T | Promise<T>): T {
  if (value instanceof Promise) throw new Error('it would have to wait');
  return value;
}

export class LocalLimits extends ProcessLimits {
  override admit(...asked: Parameters<Limits['admit']>): Admission {
    return atOnce(super.admit(...asked));
  }

  override usage(limits: readonly Limit[]): readonly LimitUsage[] {
    return atOnce(super.usage(limits));
  }

  override close(): void {
    atOnce(super.close());
  }
}

/** With a file. */
export class LocalKeptLimits extends LocalLimits {
  constructor({
    path,
    onProblem,
    clock = SYSTEM_CLOCK,
    ...options
  }: ProcessLimitsOptions & Omit<LimitsStoreOptions, 'clock'>) {
    super({ ...options, clock, store: new LimitsStore({ path, clock, onProblem }) });
  }
}
