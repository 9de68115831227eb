/** Knows a request that is itself a web search: Claude Code's WebSearch asks the gateway to search, not a model. */

import type { Conversation } from '../../conversation/types.ts';
import { latestUserText } from './offer.ts';

const ORDER = 'Perform a web search for the query:';

/**
 * The query, where the request offers nothing but web search and its only words of the user say what
 * to search for. Such a client waits for a result block; a weak model may not call the tool at all.
 */
export function nestedSearch(asked: Conversation): string | undefined {
  const [tool, another] = asked.tools;
  if (tool?.type !== 'hosted' || tool.name !== 'web_search' || another !== undefined) {
    return undefined;
  }
  if (asked.turns.some((turn) => turn.role === 'assistant')) return undefined;
  const words = latestUserText(asked.turns).trim();
  const query = words.startsWith(ORDER) ? words.slice(ORDER.length).trim() : '';
  return query === '' ? undefined : query;
}
