/** Adds many events in steps that let other work run, all of them or none. */

import type { MemoryEvent } from '../../../conversation/memory.ts';
import { othersTurn } from '../../../lib/loop/steps.ts';
import { type CheckedEvent, indexedText } from '../event.ts';

type Added = readonly (readonly [MemoryEvent, boolean])[];

/** Characters that are added in one step: all of them are indexed. */
const STEP_CHARACTERS = 4000;
/** Characters that an event counts as beside its own: each takes time. */
const EVENT_CHARACTERS = 100;

/** Adds the events; where a step fails, the events of the steps before it are removed. */
export async function inSteps(
  events: readonly CheckedEvent[],
  add: (step: readonly CheckedEvent[]) => Promise<Added>,
  remove: (id: string) => Promise<unknown>,
): Promise<Added> {
  const added: (readonly [MemoryEvent, boolean])[] = [];
  try {
    for (const step of stepsOf(events)) {
      if (added.length > 0) await othersTurn();
      added.push(...(await add(step)));
    }
  } catch (thrown) {
    for (const [{ id }, isNew] of added) if (isNew) await remove(id);
    throw thrown;
  }
  return added;
}

/** Lists of at most {@link STEP_CHARACTERS}, in order; a longer event is a list of its own. */
function* stepsOf(all: readonly CheckedEvent[]): Generator<readonly CheckedEvent[]> {
  let step: CheckedEvent[] = [];
  let size = 0;
  for (const one of all) {
    const characters = EVENT_CHARACTERS + indexedText(one).length;
    size += characters;
    if (size > STEP_CHARACTERS && step.length > 0) {
      yield step;
      step = [];
      size = characters;
    }
    step.push(one);
  }
  if (step.length > 0) yield step;
}
