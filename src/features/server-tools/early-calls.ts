/** Calls made before the model is asked: forced calls, and a request that is itself a web search. */

import { isInstruction } from '../../conversation/edit.ts';
import type { StreamEvent } from '../../conversation/events.ts';
import type { Block, Conversation, ToolCallBlock, Turn } from '../../conversation/types.ts';
import { prefixedId } from '../../lib/text/ids.ts';
import { sha256Hex } from '../../lib/text/sha256.ts';
import { latestUserText, type Offer } from './offer.ts';
import { runRound, runServerCalls } from './round.ts';
import type { ServerCall } from './run-calls.ts';
import type { Session } from './session.ts';

/**
 * The same call has the same id in every request of its turn (a client with tools of its own sends the
 * turn again): a vendor's prompt cache compares text.
 */
const forcedCallId = (name: string, input: string): string =>
  `call_${sha256Hex(`${name}\0${input}`).slice(0, 24)}`;

/** Milliseconds for all forced calls together: neither the model nor the client gets anything before. */
const FORCED_CALLS_TIMEOUT = 10_000;

const callBlock = ({ id, offered, input }: ServerCall): ToolCallBlock => ({
  type: 'tool-call',
  id,
  name: offered.name,
  kind: 'function',
  input,
  by: 'client',
});

/**
 * Runs the forced calls and stores them with their results as the session's preface.
 * @returns the events for the client; none where there was nothing to run
 */
export async function runForcedCalls(
  session: Session,
  original: Conversation,
  offerOf: () => Offer,
  signal: AbortSignal,
): Promise<readonly StreamEvent[]> {
  const { forced = [] } = session.options;
  if (forced.length === 0 || session.preface.length > 0) return [];
  const offer = offerOf();
  const calls = forced.flatMap(({ name, input }): readonly ServerCall[] => {
    const offered = offer.tools.find((one) => one.tool.name === name);
    const args = offered === undefined ? undefined : input(original);
    if (offered === undefined || args === undefined) return [];
    const text = JSON.stringify(args);
    return [{ id: forcedCallId(name, text), offered, input: text }];
  });
  if (calls.length === 0) return [];
  const events: StreamEvent[] = [];
  const results = await runServerCalls(session, calls, {
    signal,
    emit: (more) => events.push(...more),
    leftMs: FORCED_CALLS_TIMEOUT,
    original,
  });
  session.preface = [
    { role: 'assistant', blocks: calls.map(callBlock) },
    { role: 'user', blocks: results },
  ];
  return events;
}

/**
 * The turns with the preface after the user's latest message and the app's instructions behind it, and
 * before anything that answers them: a prefill, or the calls of a turn under way.
 */
export function withPreface(turns: readonly Turn[], preface: readonly Turn[]): readonly Turn[] {
  if (preface.length === 0) return turns;
  let at =
    turns.findLastIndex(({ role, blocks }) => role === 'user' && blocks.some(isNotResult)) + 1;
  if (at === 0) {
    at = turns.length;
    while (turns[at - 1]?.role === 'assistant') at--;
  }
  while (at < turns.length && isInstruction(turns[at]!)) at++;
  return [...turns.slice(0, at), ...preface, ...turns.slice(at)];
}

/** The results of the calls as one text: a model that takes no tools refuses calls. */
export function saidIn([calls, results]: readonly Turn[]): readonly Turn[] {
  if (calls === undefined || results === undefined) return [];
  const names = new Map(
    calls.blocks.flatMap((block) => (block.type === 'tool-call' ? [[block.id, block.name]] : [])),
  );
  const texts = results.blocks.flatMap((block) =>
    block.type === 'tool-result' ? [`${names.get(block.callId)}:\n${textOf(block.content)}`] : [],
  );
  return [{ role: 'user', blocks: [{ type: 'text', text: texts.join('\n\n') }] }];
}

const textOf = (blocks: readonly Block[]): string =>
  blocks.map((block) => (block.type === 'text' ? block.text : '')).join('');

const isNotResult = ({ type }: Block) => type !== 'tool-result';

const SEARCH_ORDER = 'Perform a web search for the query:';

/**
 * The query of a request that offers nothing but web search and whose only user message is an order to
 * search, as Claude Code's WebSearch sends it. Such a client waits for a result block, and a weak model
 * may not call the tool at all.
 */
function searchQueryOf({ tools, turns }: Conversation): string | undefined {
  const [tool, another] = tools;
  if (tool?.type !== 'hosted' || tool.name !== 'web_search' || another !== undefined) {
    return undefined;
  }
  if (turns.some((turn) => turn.role === 'assistant')) return undefined;
  const text = latestUserText(turns).trim();
  const query = text.startsWith(SEARCH_ORDER) ? text.slice(SEARCH_ORDER.length).trim() : '';
  return query === '' ? undefined : query;
}

/**
 * Runs the search of a request that is itself one, whatever the model would do.
 * @returns the events for the client; none where the request is no such search
 */
export async function runNestedSearch(
  session: Session,
  original: Conversation,
  offerOf: () => Offer,
  signal: AbortSignal,
): Promise<readonly StreamEvent[]> {
  const query = searchQueryOf(original);
  if (query === undefined || session.addedTurns.length > 0) return [];
  const offered = offerOf().tools.find(({ declared }) => declared?.name === 'web_search');
  if (offered === undefined) return [];
  session.base = original;
  const call = { id: prefixedId('call_'), offered, input: JSON.stringify({ query }) };
  const events: StreamEvent[] = [];
  await runRound(session, [callBlock(call)], [call], {
    signal,
    emit: (more) => events.push(...more),
  });
  // The stream has not begun: these blocks are counted when it does.
  session.blockCount = 0;
  return events;
}
