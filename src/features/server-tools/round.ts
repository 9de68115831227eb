/** One tool round between two hops: runs the server calls, shows them where declared, appends the results. */

import { withParts } from '../../conversation/edit.ts';
import { departure } from '../../conversation/errors.ts';
import type { StreamEvent, ToolEvent } from '../../conversation/events.ts';
import type {
  Block,
  Conversation,
  ProtocolName,
  ToolResultBlock,
  Turn,
} from '../../conversation/types.ts';
import { tryParse } from '../../lib/json/json.ts';
import { answerKeys } from './hop-ledger.ts';
import { type FinishedCall, runCalls, type ServerCall } from './run-calls.ts';
import type { Session } from './session.ts';
import { newShownId, shownCallEvents, shownResultEvents } from './shown-calls.ts';
import type { ToolOutcome } from './tool.ts';

const ENDPOINTS: Readonly<Record<ProtocolName, string>> = {
  'anthropic-messages': '/v1/messages',
  'openai-chat': '/v1/chat/completions',
  'openai-responses': '/v1/responses',
  'google-gemini': '/v1beta/models',
};

type Emit = (events: readonly StreamEvent[]) => void;

export interface RoundOptions {
  readonly signal: AbortSignal;
  /** Sends events to the client. */
  readonly emit: Emit;
  /** The hop that made the calls; left out: before the first hop. */
  readonly hop?: number;
}

/**
 * Runs the calls of a turn and appends the turn and the results to the session.
 * @param blocks the whole turn as the upstream sent it
 * @throws GatewayError when the client has gone
 */
export async function runRound(
  session: Session,
  blocks: readonly Block[],
  calls: readonly ServerCall[],
  { signal, emit, hop }: RoundOptions,
): Promise<void> {
  const { options } = session;
  const original = session.base;
  if (!session.cloneLogged) {
    session.cloneLogged = true;
    const hasMessages = (original?.turns.length ?? 0) > 0;
    options.log('chat.process.raw.cloned', { endpoint: ENDPOINTS[options.client], hasMessages });
  }
  const more = { signal, emit, hop, leftMs: session.leftMs(), original };
  const results = await runServerCalls(session, calls, more);
  if (session.leftMs() <= 0) session.exhausted = true;
  const turns: Turn[] = [{ role: 'assistant', blocks }];
  if (results.length > 0) turns.push({ role: 'user', blocks: results });
  session.addedTurns = [...session.addedTurns, ...turns];
}

/**
 * Runs calls and returns their results in order. In the session it changes only the counts of runs and
 * blocks, the numbered sources and the ids of shown calls.
 * @throws GatewayError when the client has gone
 */
export async function runServerCalls(
  session: Session,
  calls: readonly ServerCall[],
  more: RoundOptions & {
    /** Milliseconds for all calls together. */
    readonly leftMs: number;
    readonly original: Conversation | undefined;
  },
): Promise<readonly ToolResultBlock[]> {
  const { options } = session;
  const { signal, emit, hop, leftMs, original } = more;
  checkAborted(signal);
  const outcomes = runCalls(calls, {
    ...options,
    parallel: options.limits.parallel ?? 4,
    uses: session.uses,
    declaredCalls: session.declaredCalls(original),
    signal,
    leftMs,
    conversation: original,
    hop,
  });
  const results: ToolResultBlock[] = [];
  for (let at = 0; at < calls.length; at++) {
    results.push(await resultOf(session, calls[at]!, outcomes[at]!, emit));
    checkAborted(signal);
  }
  return results;
}

/** Shows one call with its result: completely, before the next call is shown. */
async function resultOf(
  session: Session,
  call: ServerCall,
  running: Promise<FinishedCall>,
  emit: Emit,
): Promise<ToolResultBlock> {
  const sendsToolEvents = session.options.events === true;
  if (sendsToolEvents) emit([callEvent(call)]);
  const hosted = call.offered.declared?.name;
  // Chat has no item for a call that the client does not run.
  const visible = hosted !== undefined && session.options.client !== 'openai-chat';
  const id = visible ? newShownId(session.options.client) : '';
  if (visible) {
    session.shownCallIds.push(id);
    emit(shownCallEvents(call, id, session.blockCount++));
  }
  const { outcome, ms } = await running;
  if (sendsToolEvents) emit([resultEvent(call, outcome, ms)]);
  const sources = session.sources.add(outcome.sources ?? []);
  const first = sources[0]?.n ?? session.sources.next;
  if (hosted !== undefined && outcome.code !== 'max_uses_exceeded') session.countHostedRun(hosted);
  if (visible && hosted !== undefined) {
    emit(shownResultEvents(hosted, id, outcome, sources, session.blockCount++));
  }
  const text = typeof outcome.text === 'string' ? outcome.text : outcome.text(first);
  return {
    type: 'tool-result',
    callId: call.id,
    kind: 'function',
    content: [{ type: 'text', text }, ...(outcome.media ?? [])],
    isError: !outcome.ok,
    by: 'client',
  };
}

const callEvent = ({ id, offered, input }: ServerCall): ToolEvent => ({
  type: 'tool-event',
  event: 'tool_call',
  id,
  name: offered.tool.name,
  arguments: input.trim() === '' ? {} : (tryParse(input) ?? input),
});

const resultEvent = (
  { id, offered }: ServerCall,
  { ok, payload }: ToolOutcome,
  durationMs: number,
): ToolEvent => ({
  type: 'tool-event',
  event: 'tool_result',
  id,
  name: offered.tool.name,
  result: payload,
  ...(ok ? {} : { failed: true }),
  durationMs,
});

function checkAborted(signal: AbortSignal): void {
  if (signal.aborted) throw departure(signal);
}

/** The conversation of the next hop: the original and the turns added since, nothing else. */
export function nextConversation(session: Session, base: Conversation): Conversation {
  const { addedTurns, options } = session;
  const assistant = addedTurns.filter((turn) => turn.role === 'assistant').length;
  const results = addedTurns.reduce(
    (sum, { role, blocks }) => sum + (role === 'user' ? blocks.length : 0),
    0,
  );
  const original = base.turns.length;
  options.log('chat.process.hop3.assembled', {
    originalMessageCount: original,
    assistantMessageCount: assistant,
    toolMessageCount: results,
    finalMessageCount: original + assistant + results,
  });
  return withParts(base, { turns: [...base.turns, ...addedTurns] });
}

/** Stores the hops of this answer that the client did not see, or will not send back completely. */
export function storeAnswer(session: Session): void {
  const { base, addedTurns, options } = session;
  if (base === undefined || addedTurns.length === 0) return;
  const { clientText: text, clientCallIds: clientIds, shownCallIds: shownIds } = session;
  const keys = answerKeys(options.owner, { clientIds, shownIds, text }, base.turns.at(-1));
  if (keys.length === 0) return;
  options.ledger.put(keys, {
    turns: addedTurns,
    sources: session.sources.all,
    clientCalls: clientIds,
  });
}
