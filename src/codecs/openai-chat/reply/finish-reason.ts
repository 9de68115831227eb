/** Finish reasons of Chat Completions and its vendors, both ways. */

import { GatewayError } from '../../../conversation/errors.ts';
import type { FinishReason } from '../../../conversation/events.ts';
import { memberOf } from '../../../lib/json/json-members.ts';

const REASONS: Readonly<Record<string, FinishReason>> = {
  stop: 'stop',
  end_turn: 'stop',
  eos: 'stop',
  stop_sequence: 'stop-sequence',
  length: 'length',
  max_tokens: 'length',
  model_length: 'length',
  tool_calls: 'tool-calls',
  tool_use: 'tool-calls',
  function_call: 'tool-calls',
  content_filter: 'content-filter',
  sensitive: 'content-filter',
  safety: 'content-filter',
  refusal: 'refusal',
  model_context_window_exceeded: 'context-overflow',
};

/** Reasons with which a vendor says that it failed: GLM, DeepSeek, Mistral and OpenRouter. */
const FAILURES: Readonly<Record<string, 'upstream' | 'overloaded'>> = {
  error: 'upstream',
  network_error: 'upstream',
  insufficient_system_resource: 'overloaded',
};

/** The error that a finish reason stands for, if it stands for one. */
export function finishFailure(reason: string): GatewayError | undefined {
  const kind = memberOf(FAILURES, reason);
  return kind === undefined
    ? undefined
    : new GatewayError(kind, `The upstream stopped with finish_reason "${reason}".`, {
        fromUpstream: true,
        code: reason,
      });
}

/**
 * The meaning of a finish reason ('' or unknown: a plain stop). Calls make a stop `tool-calls`,
 * since several vendors say `stop` beside calls, and their absence makes `tool_calls` a stop.
 */
export function decodeFinish(reason: string, said: { calls: boolean; refusal: boolean }) {
  const meaning = memberOf(REASONS, reason) ?? memberOf(REASONS, reason.toLowerCase()) ?? 'stop';
  if (meaning === 'stop' || meaning === 'tool-calls') {
    if (said.calls) return 'tool-calls';
    return said.refusal ? 'refusal' : 'stop';
  }
  return meaning;
}

/** The wire's word. A refusal that was said in words is a `stop`, as OpenAI has it. */
export function encodeFinish(reason: FinishReason, said: { calls: boolean; refusal: boolean }) {
  switch (reason) {
    case 'length':
    case 'context-overflow':
      return 'length';
    case 'content-filter':
      return 'content_filter';
    case 'refusal':
      return said.refusal ? 'stop' : 'content_filter';
    case 'tool-calls':
      return said.calls ? 'tool_calls' : 'stop';
    default:
      return said.calls ? 'tool_calls' : 'stop';
  }
}
