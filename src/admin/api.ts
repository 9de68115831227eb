/** Types of what the admin API answers with, shared with the page in the browser. */

import type { usageJson } from '../money/usage.ts';
import type { healthReport } from '../upstream/health/snapshot.ts';

export type { BudgetsReport, OwnedBudgetReport } from '../limits/usage-report.ts';
export type { ShownCooldown, TargetState } from '../upstream/health/snapshot.ts';

/** `GET /admin/v1/usage`. */
export type Usage = ReturnType<typeof usageJson>;

export type UsageGroup = Usage['data'][number];

/** `GET /admin/v1/health`. */
export type Health = ReturnType<typeof healthReport>;

export type ProviderHealth = Health['data'][number];

/** A target with one of its keys. */
export type HealthOfKey = ProviderHealth['targets'][number]['places'][number];
