/** Types of what the admin API answers with, shared with the page in the browser. */

import type { FileKeySettings } from '../config/sections/keys/settings.ts';
import type { AuditEntry as KeptEntry } from '../keys/audit-chain.ts';
import type { usageJson } from '../money/usage.ts';
import type { healthReport } from '../upstream/health/snapshot.ts';

export type { BudgetsReport, OwnedBudgetReport } from '../limits/usage-report.ts';
export type { ShownCooldown, TargetState } from '../upstream/health/snapshot.ts';

/** The settings of a key as `POST /admin/v1/keys` takes them. */
export interface KeySettings extends Partial<FileKeySettings> {
  readonly name: string;
}

export type KeyBudget = FileKeySettings['budgets'][number];

/** An entry of `GET /admin/v1/audit`; its time is ISO 8601. */
export type AuditEntry = Omit<KeptEntry, 'time'> & { readonly time: string };

/** `GET /admin/v1/usage`. */
export type Usage = ReturnType<typeof usageJson>;

export type UsageGroup = Usage['data'][number];

/** `GET /admin/v1/health`. */
export type Health = ReturnType<typeof healthReport>;

export type ProviderHealth = Health['data'][number];

/** A target with one of its keys. */
export type HealthOfKey = ProviderHealth['targets'][number]['places'][number];
