/** Rendezvous hashing: the same session picks the same one of several, and keeps it while others come and go. */

/** A text as 32 bits, for {@link fractionOf} and {@link scoreOf}. */
export const hashOf = (text: string): number => Bun.hash.xxHash32(text);

/** What the hash of a session and that of a candidate give together: evenly spread over 0 to 1, both excluded. */
export function fractionOf(session: number, candidate: number): number {
  // The finalizer of MurmurHash3: one different bit changes half of the bits.
  let mixed = session ^ candidate;
  mixed = Math.imul(mixed ^ (mixed >>> 16), 0x85ebca6b);
  mixed = Math.imul(mixed ^ (mixed >>> 13), 0xc2b2ae35);
  mixed ^= mixed >>> 16;
  return ((mixed >>> 0) + 0.5) / 2 ** 32;
}

/**
 * The score of a candidate; the highest one is the session's. Each wins in proportion to its weight, and a session
 * moves only from a candidate whose share shrinks or to one whose share grows.
 */
export const scoreOf = (session: number, candidate: number, weight: number): number =>
  weight / -Math.log(fractionOf(session, candidate));
