/** Batches work at the end of a tick: one turn of the event loop. */

// Written one by one, each socket wakes its peer by itself, which is a large part of the cost of a short exchange.
// Written together, the first write wakes them, and the code is still in the cache (decision 18).

export interface TickTask {
  /** Must not throw. */
  onTickEnd(): void;
  /** Called instead when the process exits before; for work that must not be lost. */
  onExit?(): void;
}

let tasks: TickTask[] = [];
let spare: TickTask[] = [];
/** {@link runTasks} is going to run. */
let scheduled = false;

function runTasks(): void {
  scheduled = false;
  const now = tasks;
  tasks = spare;
  for (const one of now) one.onTickEnd();
  now.length = 0;
  spare = now;
}

/** Calls `onTickEnd` when all events that were ready at the start of this tick have been handled. */
export function atTickEnd(one: TickTask): void {
  tasks.push(one);
  if (scheduled) return;
  scheduled = true;
  setImmediate(runTasks);
}

let ending: Promise<void> | undefined;

/**
 * Resolves at the end of this tick. All callers share one promise, so they continue together; work that they
 * schedule in their first step runs directly after it, not a tick later.
 */
export function tickEnd(): Promise<void> {
  ending ??= new Promise((resolve) =>
    atTickEnd({
      onTickEnd() {
        ending = undefined;
        resolve();
        scheduled = true;
        queueMicrotask(runTasks);
      },
    }),
  );
  return ending;
}

process.on('exit', () => {
  for (const one of tasks) one.onExit?.();
});
