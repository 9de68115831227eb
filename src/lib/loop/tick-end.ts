/** Work put off to the end of this turn of the event loop, where it is done together. */

// Done socket by socket, every write wakes its peer by itself: a quarter of what a short exchange costs
// is the kernel putting others to work. Done together, the first write wakes them, and the code of each
// step is still in the cache for the next.

export interface TurnEnd {
  /** Must not throw. */
  onTurnEnd(): void;
  /** The process ends before that; for what must not get lost. */
  onExit?(): void;
}

let due: TurnEnd[] = [];
let spare: TurnEnd[] = [];
/** {@link run} will be called. */
let coming = false;

function run(): void {
  coming = false;
  const now = due;
  due = spare;
  for (const one of now) one.onTurnEnd();
  now.length = 0;
  spare = now;
}

/** Calls `onTurnEnd` once everything that was ready when this turn began has been told. */
export function atTickEnd(one: TurnEnd): void {
  due.push(one);
  if (coming) return;
  coming = true;
  setImmediate(run);
}

let ending: Promise<void> | undefined;

/**
 * The end of this turn: one promise for all who wait for it, and then go on step by step together. What they
 * put off in their first step is done behind it, and not a turn later.
 */
export function tickEnd(): Promise<void> {
  ending ??= new Promise((resolve) =>
    atTickEnd({
      onTurnEnd() {
        ending = undefined;
        resolve();
        coming = true;
        queueMicrotask(run);
      },
    }),
  );
  return ending;
}

/** Everybody else has a turn of the event loop first: for long work, between its slices. */
export const othersTurn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

process.on('exit', () => {
  for (const one of due) one.onExit?.();
});
