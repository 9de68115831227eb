/** The current time with fractions of a millisecond, to order events of different processes. */

/** Milliseconds since 1970, with fractions. */
export const preciseNow = (): number => performance.timeOrigin + performance.now();
