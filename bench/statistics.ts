/** Medians, percentiles, slopes, and a shuffle for interleaved rounds. */

/** The value at fraction `p` of ascending values (nearest rank); 0 where there are none. */
export function percentile(sorted: ArrayLike<number>, p: number): number {
  const at = Math.min(sorted.length - 1, Math.max(0, Math.ceil(p * sorted.length) - 1));
  return sorted[at] ?? 0;
}

/** The middle value, the mean of the two middle ones for an even count; NaN where there are none. */
export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const half = sorted.length >> 1;
  if (sorted.length === 0) return Number.NaN;
  return sorted.length % 2 === 1 ? sorted[half]! : (sorted[half - 1]! + sorted[half]!) / 2;
}

/** The slope of the least-squares line through (0, v0), (1, v1), … */
export function slope(values: readonly number[]): number {
  const n = values.length;
  if (n < 2) return 0;
  const meanX = (n - 1) / 2;
  const meanY = values.reduce((sum, value) => sum + value, 0) / n;
  let above = 0;
  let below = 0;
  for (let x = 0; x < n; x++) {
    above += (x - meanX) * (values[x]! - meanY);
    below += (x - meanX) ** 2;
  }
  return above / below;
}

/** The same items in a random order. */
export function shuffled<T>(items: readonly T[]): T[] {
  const out = [...items];
  for (let i = out.length - 1; i > 0; i--) {
    const j = Math.floor(Math.random() * (i + 1));
    [out[i], out[j]] = [out[j]!, out[i]!];
  }
  return out;
}
