/** Amounts of money for tables and charts. */

import { count } from '../kit/format.ts';

/** `$12.40`, `$1 240`, `$0.0031`, `$0`: cents, and two digits of what is less. */
export function usd(amount: number): string {
  if (amount === 0) return '$0';
  const size = Math.abs(amount);
  const sign = amount < 0 ? '−' : '';
  if (size >= 1000) return `${sign}$${count(size)}`;
  if (size >= 0.1) return `${sign}$${size.toFixed(2)}`;
  if (size < 1e-6) return `${sign}<$0.000001`;
  return `${sign}$${Number(size.toPrecision(2))}`;
}
