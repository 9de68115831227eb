/** Formats costs in US dollars with two significant digits. */

/** `$0.0042`, `$1.27`; `–` when there is no price. */
export function cost(usd: number | null): string {
  if (usd === null) return '–';
  if (usd === 0) return '$0';
  const digits = usd >= 100 ? 0 : usd >= 1 ? 2 : Math.min(8, 1 - Math.floor(Math.log10(usd)));
  return `$${usd.toFixed(digits)}`;
}
