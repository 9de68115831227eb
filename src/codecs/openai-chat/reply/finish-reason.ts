/** Decodes and encodes finish reasons of Chat Completions and its vendors. */

import { GatewayError } from '../../../conversation/errors.ts';
import type { FinishReason } from '../../../conversation/events.ts';
import { memberOf } from '../../../lib/json/json-members.ts';
import type { UpstreamContext } from '../../codec.ts';

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

/**
 * Finish reasons that report a failure of the vendor (GLM, DeepSeek, Mistral, OpenRouter; vLLM and SGLang, which abort
 * an answer; Google's address for Chat, which could not read a call of the model).
 */
const FAILURES: Readonly<Record<string, 'upstream' | 'overloaded'>> = {
  error: 'upstream',
  abort: 'upstream',
  function_call_filter: 'upstream',
  network_error: 'upstream',
  insufficient_system_resource: 'overloaded',
};

/** The error that a finish reason reports; undefined for others. */
export function finishFailure(reason: string): GatewayError | undefined {
  const kind = memberOf(FAILURES, plain(reason));
  return kind === undefined
    ? undefined
    : new GatewayError(kind, `The upstream stopped with finish_reason "${reason}".`, {
        fromUpstream: true,
        code: plain(reason),
      });
}

/** Google's address for Chat adds its own word: `function_call_filter: MALFORMED_FUNCTION_CALL`. */
function plain(reason: string): string {
  const end = reason.indexOf(':');
  return end < 0 ? reason : reason.slice(0, end);
}

const meaningOf = (reason: string): FinishReason => {
  const word = plain(reason);
  return memberOf(REASONS, word) ?? memberOf(REASONS, word.toLowerCase()) ?? 'stop';
};

/**
 * The meaning of a finish reason; '' and unknown reasons mean `stop`. With calls, `stop` means `tool-calls`,
 * because several vendors send it so. Without calls, `tool_calls` means `stop`.
 */
export function decodeFinish(reason: string, answer: { calls: boolean; refusal: boolean }) {
  const meaning = meaningOf(reason);
  if (meaning === 'stop' || meaning === 'tool-calls') {
    if (answer.calls) return 'tool-calls';
    return answer.refusal ? 'refusal' : 'stop';
  }
  return meaning;
}

export const saysCalls = (reason: string): boolean => meaningOf(reason) === 'tool-calls';

/** Does the word say of calls what is not so? A call that was asked for may end in `stop`, as at OpenAI. */
export function isOddFinish(
  reason: string,
  calls: boolean,
  context: Pick<UpstreamContext, 'sent'>,
): boolean {
  if (!calls) return saysCalls(reason);
  if (meaningOf(reason) !== 'stop') return false;
  // Asked for last: it may have to decode the request.
  const { tools, settings } = context.sent;
  const choice = settings.toolChoice?.type;
  return tools.length > 0 && choice !== 'tool' && choice !== 'required';
}

/** The wire's finish reason. A refusal with text is a `stop`, as at OpenAI. */
export function encodeFinish(reason: FinishReason, answer: { calls: boolean; refusal: boolean }) {
  switch (reason) {
    case 'length':
    case 'context-overflow':
    case 'pause':
      return 'length';
    case 'content-filter':
      return 'content_filter';
    case 'refusal':
      return answer.refusal ? 'stop' : 'content_filter';
    case 'tool-calls':
      return answer.calls ? 'tool_calls' : 'stop';
    default:
      return answer.calls ? 'tool_calls' : 'stop';
  }
}
