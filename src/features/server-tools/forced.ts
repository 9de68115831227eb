/** Calls that are made for the model before it is asked, and where they stand in the conversation. */

import type { StreamEvent } from '../../conversation/events.ts';
import type { Block, Conversation, Turn } from '../../conversation/types.ts';
import type { Offer } from './offer.ts';
import { runAll } from './round.ts';
import type { ServerCall } from './run-calls.ts';
import type { Session } from './session.ts';

/**
 * The same call has the same id in every request of its turn (a client that runs tools of its own sends
 * the turn again): a vendor's prompt cache knows it by its text.
 */
const forcedId = (name: string, input: string): string =>
  `call_${new Bun.CryptoHasher('sha256').update(`${name}\0${input}`).digest('hex').slice(0, 24)}`;

/** Milliseconds for all of them: the model waits, and nobody has been told anything yet. */
const PATIENCE = 10_000;

/**
 * Makes the forced calls and keeps them with their results as the session's preface.
 * @returns what the client is told of it; undefined when there was nothing to do, or it was given up
 */
export async function makeForced(
  session: Session,
  asked: Conversation,
  offered: () => Offer,
  signal: AbortSignal,
): Promise<readonly StreamEvent[] | undefined> {
  const { forced = [] } = session.options;
  if (forced.length === 0 || session.preface.length > 0) return undefined;
  const offer = offered();
  const calls = forced.flatMap(({ name, input }): readonly ServerCall[] => {
    const offered = offer.list.find((one) => one.tool.name === name);
    const args = offered === undefined ? undefined : input(asked);
    if (offered === undefined || args === undefined) return [];
    const written = JSON.stringify(args);
    return [{ id: forcedId(name, written), offered, input: written }];
  });
  if (calls.length === 0) return undefined;
  const told: StreamEvent[] = [];
  const results = await runAll(session, calls, {
    signal,
    emit: (events) => told.push(...events),
    leftMs: PATIENCE,
    asked,
  });
  const blocks = calls.map(
    ({ id, offered, input }): Block => ({
      type: 'tool-call',
      id,
      name: offered.name,
      kind: 'function',
      input,
      by: 'client',
    }),
  );
  session.preface = [
    { role: 'assistant', blocks },
    { role: 'user', blocks: results },
  ];
  return told;
}

/**
 * The turns with the preface behind the latest words of the user (and what the app says there to the
 * model), in front of anything that answers them: a prefill, or calls of a turn that is under way.
 */
export function withPreface(turns: readonly Turn[], preface: readonly Turn[]): readonly Turn[] {
  if (preface.length === 0) return turns;
  let at = turns.findLastIndex(({ role, blocks }) => role === 'user' && blocks.some(isWord)) + 1;
  if (at === 0) {
    at = turns.length;
    while (turns[at - 1]?.role === 'assistant') at--;
  }
  while (turns[at]?.role === 'system' || turns[at]?.role === 'developer') at++;
  return [...turns.slice(0, at), ...preface, ...turns.slice(at)];
}

const isWord = ({ type }: Block) => type !== 'tool-result';
