/** Random identifiers: of exchanges, of protocol objects, and unguessable ones. */

// Ten digits of base 36 need less than the 52 random bits of a number.
const DIGITS = 10;

/**
 * `length` random characters of 0-9a-z, for ids that need not be secret: the generator is fast, not secure.
 */
export function randomBase36(length: number): string {
  if (length > DIGITS) return randomBase36(DIGITS) + randomBase36(length - DIGITS);
  return Math.floor(Math.random() * 36 ** length)
    .toString(36)
    .padStart(length, '0');
}

const ALPHABET = '0123456789abcdefghijklmnopqrstuvwxyz';
// Bytes from here on are skipped: they would make the first characters more likely than the others.
const FAIR = 256 - (256 % ALPHABET.length);

/** The same from the system's secure generator, for values that must not be guessed. */
export function secretBase36(length: number): string {
  let text = '';
  while (text.length < length) {
    for (const byte of crypto.getRandomValues(new Uint8Array(length))) {
      if (byte < FAIR && text.length < length) text += ALPHABET[byte % ALPHABET.length];
    }
  }
  return text;
}

const PAIRS = Array.from({ length: 36 * 36 }, (_, i) => i.toString(36).padStart(2, '0'));
const pair = () => PAIRS[Math.floor(Math.random() * PAIRS.length)]!;

let lastTime = 0;
let lastStem = '';

/**
 * `req_<epoch ms>_<10 of 0-9a-z>`: the id of an exchange, also the stem of its sample files. Enough for replicas that
 * know nothing of each other: at 10,000 exchanges a second, two are equal once in 2,000 years.
 */
export function requestId(now = Date.now()): string {
  // Every request needs one, so the time is formatted only when it changes.
  if (now !== lastTime) {
    lastTime = now;
    lastStem = `req_${now}_`;
  }
  return lastStem + pair() + pair() + pair() + pair() + pair();
}

export const isRequestId = (text: string): boolean => /^req_\d{13}_[0-9a-z]{10}$/.test(text);

/** `<prefix><24 hex digits>`, e.g. `call_…`, `msg_…`, `toolu_…`. */
export function prefixedId(prefix: string): string {
  return prefix + Buffer.from(crypto.getRandomValues(new Uint8Array(12))).toString('hex');
}
