/** Between two hops: the turn's server calls are run, shown where somebody asked, and appended. */

import { withParts } from '../../conversation/edit.ts';
import { clientGone } from '../../conversation/errors.ts';
import type { StreamEvent, ToolEvent } from '../../conversation/events.ts';
import type {
  Block,
  Conversation,
  ProtocolName,
  ToolResultBlock,
  Turn,
} from '../../conversation/types.ts';
import { tryParse } from '../../lib/json/json.ts';
import { callKey, textKeys, textOf } from './ledger.ts';
import { type Ran, runCalls, type ServerCall } from './run-calls.ts';
import type { Session } from './session.ts';
import { shownCall, shownId, shownResult } from './shown.ts';
import type { ToolOutcome } from './tool.ts';

const ENDPOINTS: Readonly<Record<ProtocolName, string>> = {
  'anthropic-messages': '/v1/messages',
  'openai-chat': '/v1/chat/completions',
  'openai-responses': '/v1/responses',
};

type Emit = (events: readonly StreamEvent[]) => void;

export interface RoundOptions {
  readonly signal: AbortSignal;
  /** Tells the client. */
  readonly emit: Emit;
  /** The hop that asked for the calls; left out: none has been sent yet. */
  readonly hop?: number;
}

/**
 * Runs the calls of a turn and appends what came of them to the session.
 * @param blocks the whole turn as the upstream said it
 * @throws GatewayError when the client has gone
 */
export async function runRound(
  session: Session,
  blocks: readonly Block[],
  calls: readonly ServerCall[],
  { signal, emit, hop }: RoundOptions,
): Promise<void> {
  const { options } = session;
  const asked = session.base;
  if (!session.cloned) {
    session.cloned = true;
    const hasMessages = (asked?.turns.length ?? 0) > 0;
    options.log('chat.process.raw.cloned', { endpoint: ENDPOINTS[options.client], hasMessages });
  }
  const leftMs = session.leftMs();
  const results = await runAll(session, calls, { signal, emit, hop, leftMs, asked });
  if (session.leftMs() <= 0) session.exhausted = true;
  const turns: Turn[] = [{ role: 'assistant', blocks }];
  if (results.length > 0) turns.push({ role: 'user', blocks: results });
  session.delta = [...session.delta, ...turns];
}

/**
 * Runs calls and gives their results, in order. Nothing of the session changes but what counts runs,
 * numbers sources and has been told.
 * @throws GatewayError when the client has gone
 */
export async function runAll(
  session: Session,
  calls: readonly ServerCall[],
  more: RoundOptions & {
    /** Milliseconds for all of them. */
    readonly leftMs: number;
    readonly asked: Conversation | undefined;
  },
): Promise<readonly ToolResultBlock[]> {
  const { options } = session;
  const { signal, emit, hop, leftMs, asked } = more;
  checkAborted(signal);
  const outcomes = runCalls(calls, {
    parallel: options.limits.parallel ?? 4,
    uses: session.uses,
    declared: session.declared(asked),
    signal,
    leftMs,
    conversation: asked,
    client: options.client,
    owner: options.owner,
    log: options.log,
    hop,
    onRun: options.onRun,
  });
  const results: ToolResultBlock[] = [];
  for (let at = 0; at < calls.length; at++) {
    results.push(await oneResult(session, calls[at]!, outcomes[at]!, emit));
    checkAborted(signal);
  }
  return results;
}

/** In the order of the calls: one pair is told whole before the next one begins. */
async function oneResult(
  session: Session,
  call: ServerCall,
  running: Promise<Ran>,
  emit: Emit,
): Promise<ToolResultBlock> {
  const tells = session.options.events === true;
  if (tells) emit([callEvent(call)]);
  const hosted = call.offered.declared?.name;
  // Chat has no item for a call that somebody else ran.
  const visible = hosted !== undefined && session.options.client !== 'openai-chat';
  const id = visible ? shownId(session.options.client) : '';
  if (visible) {
    session.shown.push(id);
    emit(shownCall(call, id, session.blocks++));
  }
  const { outcome, ms } = await running;
  if (tells) emit([resultEvent(call, outcome, ms)]);
  const sources = session.sources.add(outcome.sources ?? []);
  const first = sources[0]?.n ?? session.sources.next;
  if (hosted !== undefined && outcome.code !== 'max_uses_exceeded') session.count(hosted);
  if (visible && hosted !== undefined) {
    emit(shownResult(hosted, id, outcome, sources, session.blocks++));
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
  if (signal.aborted) throw clientGone(signal.reason);
}

/** The conversation of the next hop: the original, and what was said and found since, nothing else. */
export function nextConversation(session: Session, base: Conversation): Conversation {
  const { delta, options } = session;
  const assistant = delta.filter((turn) => turn.role === 'assistant').length;
  const results = delta.reduce(
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
  return withParts(base, { turns: [...base.turns, ...delta] });
}

/** Keeps what the client did not see (or will not give back whole) of this answer. */
export function remember(session: Session): void {
  const { base, delta, options } = session;
  if (base === undefined || delta.length === 0) return;
  const { owner } = options;
  const { said: told, clientCalls } = session;
  const before = textOf(base.turns.at(-1));
  const ids = [...clientCalls, ...session.shown].map((id) => callKey(owner, id, told, before));
  const said = clientCalls.length > 0 ? [] : textKeys(owner, told, before);
  const keys = [...ids, ...said];
  if (keys.length === 0) return;
  options.ledger.put(keys, { turns: delta, sources: session.sources.all, clientCalls });
}
