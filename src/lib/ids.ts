/** Identifiers: exchanges, and names for things that a protocol wants named. */

const ALPHABET = '0123456789abcdefghijklmnopqrstuvwxyz';

/** `length` random characters of 0-9a-z. */
export function randomBase36(length: number): string {
  const bytes = crypto.getRandomValues(new Uint8Array(length));
  let text = '';
  for (const byte of bytes) text += ALPHABET[byte % 36];
  return text;
}

/** `req_<epoch ms>_<6 of 0-9a-z>`: the id of an exchange, also the stem of its sample files. */
export function requestId(now = Date.now()): string {
  return `req_${now}_${randomBase36(6)}`;
}

/** `<prefix><24 hex digits>`, e.g. `call_…`, `msg_…`, `toolu_…`. */
export function prefixedId(prefix: string): string {
  return prefix + Buffer.from(crypto.getRandomValues(new Uint8Array(12))).toString('hex');
}
