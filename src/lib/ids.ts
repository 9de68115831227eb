/** Identifiers: exchanges, and names for things that a protocol wants named. */

/**
 * `length` random characters of 0-9a-z. They tell things apart and keep nothing secret, so the fast
 * generator will do.
 */
export function randomBase36(length: number): string {
  let text = '';
  while (text.length < length) text += Math.random().toString(36).slice(2, 10);
  return text.slice(0, length);
}

/** `req_<epoch ms>_<6 of 0-9a-z>`: the id of an exchange, also the stem of its sample files. */
export function requestId(now = Date.now()): string {
  return `req_${now}_${randomBase36(6)}`;
}

/** `<prefix><24 hex digits>`, e.g. `call_…`, `msg_…`, `toolu_…`. */
export function prefixedId(prefix: string): string {
  return prefix + Buffer.from(crypto.getRandomValues(new Uint8Array(12))).toString('hex');
}
