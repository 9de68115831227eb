/** Tables that every replica follows by the numbers of a sequence, in the order of commits. */

/**
 * In SQL: has the database been restored from an older backup, or is it another one? Then numbers are given a second
 * time, and who has followed further must begin anew.
 * @param sequence its name
 * @param position an expression: the last number that was followed
 */
export const isBehind = (sequence: string, position: string): string =>
  `(SELECT CASE WHEN is_called THEN last_value ELSE 0 END < ${position} FROM ${sequence})`;
