/** Forgets single events: by their ids, or those that hold all words of a text. */

import { GatewayError } from '../../conversation/errors.ts';
import type { MemoryEvent } from '../../conversation/memory.ts';
import type { MemoryBackend } from './backend.ts';
import { indexedText, shortened } from './event.ts';
import { formsOf } from './ranking/known-terms.ts';
import { queryTerms, termsOf } from './ranking/terms.ts';

/** Events that are looked at for the words of a text. */
const MAX_FOUND = 100;

/** The number of events that were there. @throws GatewayError where an external service stores the events */
export async function forgetEvents(
  { eventStore }: MemoryBackend,
  space: string,
  ids: readonly string[],
): Promise<number> {
  if (eventStore === undefined) {
    throw new GatewayError('invalid_request', 'The events are stored by an external service.', {
      status: 501,
      code: 'memory_is_external',
    });
  }
  await eventStore.settled();
  let count = 0;
  for (const id of new Set(ids)) if (await eventStore.remove(space, id)) count++;
  return count;
}

/** The events that hold every telling word of a text, in any of its forms. */
export async function eventsHolding(
  memory: MemoryBackend,
  space: string,
  query: string,
): Promise<readonly MemoryEvent[]> {
  const terms = queryTerms(shortened(query));
  const found = await memory.recall(space, { query, limit: MAX_FOUND });
  return found.flatMap(({ score: _, ...event }) => {
    const { counts } = termsOf(indexedText({ ...event, source: event.source ?? '' }));
    const holds = (term: string) => formsOf(term).some((form) => counts.has(form));
    return terms.length > 0 && terms.every(holds) ? [event] : [];
  });
}
