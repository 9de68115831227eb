/** Times and sizes in few characters. */

/** `11-22 00:31:07` of a time since 1970, where this machine is. */
export function clock(ms: number): string {
  const date = new Date(ms);
  const two = (value: number) => String(value).padStart(2, '0');
  const day = `${two(date.getMonth() + 1)}-${two(date.getDate())}`;
  return `${day} ${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`;
}

/** `812 ms`, `4.3 s`; '' when it is not known. */
export function millis(ms: number | null | undefined): string {
  if (ms === null || ms === undefined) return '';
  return ms < 1000 ? `${Math.round(ms)} ms` : `${(ms / 1000).toFixed(1)} s`;
}

/** `62 %`. */
export const percent = (rate: number) => `${Math.round(rate * 100)} %`;

/** `$0.0042`, `$1.20`: three digits that mean something, cents at least. */
export function usd(amount: number): string {
  if (amount === 0 || amount >= 1) return `$${amount.toFixed(2)}`;
  const digits = Math.min(9, 2 - Math.floor(Math.log10(amount)));
  return `$${amount.toFixed(digits)}`;
}
