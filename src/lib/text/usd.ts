/** Amounts of nano-USD (1e-9 USD, integers) as USD. */

import { withoutTrailing } from './trim-end.ts';

/** Nano-USD as USD, for JSON: exact to the nano up to nine million USD. */
export const usdOf = (nano: number): number => nano / 1e9;

/** Nano-USD as a plain decimal, without an exponent and without zeros at the end: `0.000123`. */
export function usdText(nano: number): string {
  const whole = Math.trunc(nano / 1e9);
  const rest = Math.abs(nano % 1e9);
  if (rest === 0) return String(whole);
  const digits = withoutTrailing(String(rest).padStart(9, '0'), '0');
  return `${nano < 0 && whole === 0 ? '-' : ''}${whole}.${digits}`;
}
