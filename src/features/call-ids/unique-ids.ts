/** Wraps the ids of an answer's calls that a call of the history has already. */

import type { StreamEvent } from '../../conversation/events.ts';
import { IGNORES_TEXT } from '../../conversation/fast-text.ts';
import type { Notes } from '../../conversation/notes.ts';
import { unwrapRepeatedId, wrapRepeatedId } from '../../conversation/tools/call-ids.ts';
import type { Turn } from '../../conversation/types.ts';
import { prefixedId } from '../../lib/text/ids.ts';
import type { Interceptor } from '../feature.ts';

const NOTHING: readonly StreamEvent[] = [];
/** Maximum characters of an id in a note. */
const MAX_NOTED = 128;
/**
 * The history of a later hop has the vendor's ids, so the counts in use are not known there: each hop has a range of its
 * own. Counts follow from the history alone, so that every replica makes the same id.
 */
const LATER_HOP = 1_000_000;

export class UniqueIds implements Interceptor {
  readonly fast = IGNORES_TEXT;
  /** Made with the first call: most answers have none. */
  #taken: Set<string> | undefined;
  readonly #answered = new Set<string>();

  constructor(
    private readonly turns: readonly Turn[],
    private readonly hop: number,
    private readonly notes: Notes,
  ) {}

  event(event: StreamEvent): StreamEvent {
    if (event.type !== 'block-start') return event;
    const { head } = event;
    if (head.type !== 'tool-call' || head.by !== 'client' || head.id === '') return event;
    const id = this.#uniqueId(head.id);
    if (id === head.id) return event;
    this.notes.add('call_id_repeated', undefined, head.id.slice(0, MAX_NOTED));
    return { ...event, head: { ...head, id } };
  }

  end(): readonly StreamEvent[] {
    return NOTHING;
  }

  #uniqueId(id: string): string {
    this.#taken ??= idsOf(this.turns);
    const taken = this.#taken;
    // Two calls of one answer with the vendor's id could not be told apart in the history.
    const twice = this.#answered.has(id);
    this.#answered.add(id);
    let own = id;
    if (twice) own = prefixedId('call_');
    else if (taken.has(id) || unwrapRepeatedId(id) !== id) {
      let count = callsIn(this.turns) + (this.hop - 1) * LATER_HOP;
      do own = wrapRepeatedId(id, count++);
      while (taken.has(own));
    }
    taken.add(own);
    return own;
  }
}

const callsIn = (turns: readonly Turn[]): number =>
  turns.reduce(
    (sum, { blocks }) => sum + blocks.filter(({ type }) => type === 'tool-call').length,
    0,
  );

function idsOf(turns: readonly Turn[]): Set<string> {
  const ids = new Set<string>();
  for (const { blocks } of turns) {
    for (const block of blocks) if (block.type === 'tool-call') ids.add(block.id);
  }
  return ids;
}
