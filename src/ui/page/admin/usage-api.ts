/** Usage by the admin API. */

import { adminJson } from './admin-api.ts';

export interface UsageGroup {
  /** Null: tries without this label, or all others. */
  readonly name: string | null;
  readonly key_name?: string;
  readonly others?: boolean;
  /** Where the step begins; left out without steps. */
  readonly from?: string;
  readonly tries: number;
  readonly tokens: {
    readonly input: number;
    readonly output: number;
    readonly cache_read: number;
    readonly cache_write: number;
    readonly cache_write_1h: number;
    readonly reasoning: number;
  };
  readonly searches: number;
  readonly cost_usd: number;
  readonly unpriced: number;
  readonly estimated: number;
}

export interface Usage {
  readonly from: string;
  readonly to: string;
  readonly labels: readonly string[];
  readonly data: readonly UsageGroup[];
}

export type UsageQuery = Readonly<Record<string, string | number | undefined>>;

export const getUsage = (query: UsageQuery, signal: AbortSignal) =>
  adminJson<Usage>('/usage', { query, signal });

/** The prompt, the part from the cache included. */
export const tokensIn = ({ tokens }: UsageGroup): number =>
  tokens.input + tokens.cache_read + tokens.cache_write;

/** The answer, reasoning included. */
export const tokensOut = ({ tokens }: UsageGroup): number => tokens.output + tokens.reasoning;

export const tokensOf = (group: UsageGroup): number => tokensIn(group) + tokensOut(group);
