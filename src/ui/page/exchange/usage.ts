/** Sums of token counts; each count of a `Usage` excludes the others. */

import type { Usage } from '../../../conversation/usage.ts';

export const totalInput = (usage: Usage): number =>
  usage.input + (usage.cacheRead ?? 0) + (usage.cacheWrite ?? 0);

export const totalOutput = (usage: Usage): number => usage.output + (usage.reasoning ?? 0);
