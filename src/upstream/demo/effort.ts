/** How much work one answer of the demo model may take: schemas and patterns come from clients, and some have no cheap answer. */

/** Thrown where an answer would take too long to find; the code that set the limit catches it. */
class OutOfEffort extends Error {}

let left: number | undefined;

/**
 * Does the work within so many units, each about a microsecond; undefined where they did not suffice, or
 * where the schema is nested deeper than the stack.
 */
export function withinEffort<T>(units: number, work: () => T): T | undefined {
  const before = left;
  left = units;
  try {
    return work();
  } catch (thrown) {
    if (thrown instanceof OutOfEffort || thrown instanceof RangeError) return undefined;
    throw thrown;
  } finally {
    left = before;
  }
}

/** Counts work that is about to be done. @throws OutOfEffort, within a limit alone */
export function spend(units = 1): void {
  if (left === undefined) return;
  left -= units;
  if (left < 0) throw new OutOfEffort();
}
