/** Answers are put right whether or not a feature reads them. */

import { leakedCalls } from '../../../src/features/leaked-calls/index.ts';

export const WAYS = [
  ['read by no feature', []],
  ['read by one', [leakedCalls(() => {})]],
] as const;
