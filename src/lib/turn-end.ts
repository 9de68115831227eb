/** Work put off to the end of this turn of the event loop, where it is done together. */

// Done socket by socket, every write wakes its peer by itself: a quarter of what a short exchange costs
// is the kernel putting others to work. Done together, the first write wakes them, and the code of each
// step is still in the cache for the next.

export interface TurnEnd {
  /** Must not throw. */
  onTurnEnd(): void;
}

let due: TurnEnd[] = [];
let spare: TurnEnd[] = [];

function run(): void {
  const now = due;
  due = spare;
  for (const one of now) one.onTurnEnd();
  now.length = 0;
  spare = now;
}

/** Calls `onTurnEnd` once everything that was ready when this turn began has been told. */
export function atTurnEnd(one: TurnEnd): void {
  if (due.length === 0) setImmediate(run);
  due.push(one);
}
