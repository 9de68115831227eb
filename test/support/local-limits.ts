/** Limits of one process for tests, which answer at once: a request on its own machine never waits for an admission. */

import type { Admission, Limit, Limits, LimitUsage } from '../../src/limits/limits.ts';
import { KeptLimits } from '../../src/limits/open-limits.ts';
import { ProcessLimits } from '../../src/limits/process-limits.ts';

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

export class LocalKeptLimits extends KeptLimits {
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
