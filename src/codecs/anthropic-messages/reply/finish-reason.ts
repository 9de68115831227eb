/** Decodes and encodes the stop reasons of Messages. */

import type { FinishDetails, FinishReason } from '../../../conversation/events.ts';
import type { Block } from '../../../conversation/types.ts';
import { isObject, type Json } from '../../../lib/json/json.ts';
import { memberOf } from '../../../lib/json/json-members.ts';
import { object, ownWire, PROTOCOL, text } from '../wire.ts';

const FINISH: Readonly<Record<string, FinishReason>> = {
  end_turn: 'stop',
  stop_sequence: 'stop-sequence',
  max_tokens: 'length',
  model_context_window_exceeded: 'context-overflow',
  tool_use: 'tool-calls',
  refusal: 'refusal',
  pause_turn: 'pause',
};

/** Words of Chat Completions, which relays hand on. */
const FOREIGN: Readonly<Record<string, FinishReason>> = {
  stop: 'stop',
  length: 'length',
  tool_calls: 'tool-calls',
  content_filter: 'refusal',
};

/** The finish reason for a stop reason; unknown ones mean `stop`. */
export function decodeFinish(reason: Json | undefined): FinishReason {
  if (typeof reason !== 'string') return 'stop';
  return memberOf(FINISH, reason) ?? memberOf(FOREIGN, reason) ?? 'stop';
}

/** Does the answer end with this call? One that code of the vendor's made (`caller`) may have its result already. */
export function isClientCall(block: Block): boolean {
  if (block.type !== 'tool-call' || block.by === 'provider') return false;
  const caller = object(object(ownWire(block))?.caller)?.type;
  return caller === undefined || caller === 'direct';
}

/** Clients cannot use the reason: it is missing, another protocol's word, or wrong about the calls. Undefined: they can. */
export function oddFinish(reason: Json | undefined, calls: boolean): 'finish_reason' | undefined {
  const isForeign = typeof reason !== 'string' || memberOf(FOREIGN, reason) !== undefined;
  const isWrong = isForeign || memberOf(FINISH, reason) === (calls ? 'stop' : 'tool-calls');
  return isWrong ? 'finish_reason' : undefined;
}

/** The `stop_details` of an answer: why it was refused. */
export function decodeStopDetails(value: Json | undefined): FinishDetails | undefined {
  if (value === undefined || value === null) return undefined;
  const explanation = isObject(value) ? text(value.explanation) : undefined;
  return { protocol: PROTOCOL, value, explanation };
}

/** The `stop_details` for a client; of another protocol's details, the explanation of a refusal. */
export function encodeStopDetails(
  details: FinishDetails | undefined,
  stopReason: string,
): { readonly stop_details?: Json } {
  if (details?.protocol === PROTOCOL) return { stop_details: details.value };
  if (details === undefined || stopReason !== 'refusal') return {};
  const explanation = details.explanation ?? null;
  return { stop_details: { type: 'refusal', category: null, explanation } };
}

/** Facts about an answer that decide its stop reason together with the finish reason. */
export interface AnswerFacts {
  /** A call that the client must run. */
  readonly calls: boolean;
  readonly refused: boolean;
}

/**
 * The stop reason for a finish reason. Only calls lead to `tool_use`: several vendors send `stop` with calls,
 * and a `tool_use` without a call would leave the client waiting.
 */
export function encodeFinish(reason: FinishReason, answer: AnswerFacts): string {
  switch (reason) {
    case 'stop':
    case 'tool-calls':
      return answer.calls ? 'tool_use' : answer.refused ? 'refusal' : 'end_turn';
    case 'stop-sequence':
      return 'stop_sequence';
    case 'length':
      return 'max_tokens';
    case 'context-overflow':
      return 'model_context_window_exceeded';
    case 'refusal':
    case 'content-filter':
      return 'refusal';
    case 'pause':
      return 'pause_turn';
  }
}
