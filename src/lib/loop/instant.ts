/** The time of what happens, fine enough to tell what came first in different processes. */

/** Milliseconds since 1970, with fractions. */
export const instant = (): number => performance.timeOrigin + performance.now();
