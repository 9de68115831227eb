/** `Retry-After` in words, for models and people. */

/** The hint ` (try again in 30 seconds)` for the model; '' without a `Retry-After`. */
export function retryHint(value: string | null): string {
  if (value === null) return '';
  const seconds = /^\d{1,9}$/.test(value.trim())
    ? Number(value)
    : Math.ceil((Date.parse(value.slice(0, 100)) - Date.now()) / 1000);
  return Number.isFinite(seconds) ? ` (try again in ${Math.max(0, seconds)} seconds)` : '';
}
