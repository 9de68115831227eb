/** Fisher's exact test: whether two failure rates differ by more than chance, however few the trials. */

/** What was counted under one setting. */
export interface Trials {
  readonly failed: number;
  readonly passed: number;
}

/**
 * The two-sided p-value: how often chance alone would make counts at least as unlikely as these.
 * 1 where there is nothing to compare.
 * @param a counts, whole numbers from 0
 */
export function fisherExact(a: Trials, b: Trials): number {
  const n1 = a.failed + a.passed;
  const n2 = b.failed + b.passed;
  const failed = a.failed + b.failed;
  const total = n1 + n2;
  if (n1 === 0 || n2 === 0 || failed === 0 || failed === total) return 1;
  const log = logFactorials(total);
  const logOf = (x: number) =>
    log[n1]! - log[x]! - log[n1 - x]! + log[n2]! - log[failed - x]! - log[n2 - failed + x]!;
  const all = log[total]! - log[failed]! - log[total - failed]!;
  const seen = logOf(a.failed);
  let p = 0;
  for (let x = Math.max(0, failed - n2); x <= Math.min(n1, failed); x++) {
    const here = logOf(x);
    // The tolerance takes in tables that are as likely but for rounding.
    if (here <= seen + 1e-7) p += Math.exp(here - all);
  }
  return Math.min(1, p);
}

/** The natural logarithms of 0!, 1!, …, n!. */
function logFactorials(n: number): Float64Array {
  const log = new Float64Array(n + 1);
  for (let i = 2; i <= n; i++) log[i] = log[i - 1]! + Math.log(i);
  return log;
}

/** The 95 % interval of a rate by Wilson's formula, which also holds for few trials. */
export function wilson({ failed, passed }: Trials): readonly [low: number, high: number] {
  const n = failed + passed;
  if (n === 0) return [0, 1];
  const z = 1.96;
  const rate = failed / n;
  const middle = rate + (z * z) / (2 * n);
  const reach = z * Math.sqrt((rate * (1 - rate) + (z * z) / (4 * n)) / n);
  const scale = 1 + (z * z) / n;
  return [Math.max(0, (middle - reach) / scale), Math.min(1, (middle + reach) / scale)];
}
