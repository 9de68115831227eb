/** Encodes the answer of the demo model: one Chat Completions object, or its chunks. */

import { createHash } from 'node:crypto';
import { sseEvent } from '../../lib/bytes/sse.ts';
import type { JsonObject } from '../../lib/json/json.ts';
import type { DemoRequest } from './chat-request.ts';
import type { Delivery } from './pieces.ts';

export interface ReplyHead {
  readonly id: string;
  readonly model: string;
  /** Seconds since 1970. */
  readonly created: number;
}

/** An id that the same body always gets. */
export function hashId(prefix: string, seed: string | Uint8Array, position = 0): string {
  return (
    prefix + createHash('sha256').update(seed).update(String(position)).digest('hex').slice(0, 24)
  );
}

function usageOf({ usage }: Delivery): JsonObject {
  return {
    prompt_tokens: usage.prompt,
    completion_tokens: usage.completion,
    total_tokens: usage.prompt + usage.completion,
    prompt_tokens_details: { cached_tokens: 0 },
    completion_tokens_details: { reasoning_tokens: usage.reasoning },
  };
}

/** `{id, type, function: {name, arguments}}`, or its custom twin; the input is what was said of it. */
function callOf(delivery: Delivery, index: number, id: string, input: string): JsonObject {
  const { kind, name } = delivery.calls[index]!;
  return kind === 'custom'
    ? { id, type: 'custom', custom: { name, input } }
    : { id, type: 'function', function: { name, arguments: input } };
}

/** The whole answer as one object. */
export function completion(head: ReplyHead, delivery: Delivery): JsonObject {
  const said = (to: string, index?: number) =>
    delivery.pieces
      .filter((piece) => piece.to === to && (piece.to !== 'call' || piece.index === index))
      .map((piece) => piece.text)
      .join('');
  const calls = delivery.calls.map((_, i) =>
    callOf(delivery, i, hashId('call_', head.id, i), said('call', i)),
  );
  const text = said('text');
  const reasoning = said('reasoning');
  return {
    id: head.id,
    object: 'chat.completion',
    created: head.created,
    model: head.model,
    choices: [
      {
        index: 0,
        message: {
          role: 'assistant',
          content: text === '' && calls.length > 0 ? null : text,
          refusal: null,
          ...(reasoning === '' ? {} : { reasoning_content: reasoning }),
          ...(calls.length === 0 ? {} : { tool_calls: calls }),
        },
        logprobs: null,
        finish_reason: delivery.finish,
      },
    ],
    usage: usageOf(delivery),
  };
}

export interface Frame {
  readonly text: string;
  /** Carries something that was "said": this is where the pace waits. */
  readonly paced: boolean;
}

/** The answer as SSE frames, in the order OpenAI sends them. */
export function* frames(
  head: ReplyHead,
  delivery: Delivery,
  request: DemoRequest,
): Generator<Frame> {
  const chunk = (
    choices: readonly JsonObject[],
    usage: JsonObject | null,
    paced = false,
  ): Frame => ({
    text: sseEvent(
      '',
      JSON.stringify({
        id: head.id,
        object: 'chat.completion.chunk',
        created: head.created,
        model: head.model,
        choices,
        ...(request.includeUsage ? { usage } : {}),
      }),
    ),
    paced,
  });
  const delta = (value: JsonObject, paced: boolean, finish: string | null = null) =>
    chunk([{ index: 0, delta: value, logprobs: null, finish_reason: finish }], null, paced);

  yield delta({ role: 'assistant', content: '', refusal: null }, false);
  let opened = -1;
  for (const piece of delivery.pieces) {
    if (piece.to !== 'call') {
      const field = piece.to === 'text' ? 'content' : 'reasoning_content';
      yield delta({ [field]: piece.text }, true);
    } else if (piece.index > opened) {
      opened = piece.index;
      const call = callOf(delivery, opened, hashId('call_', head.id, opened), '');
      yield delta({ tool_calls: [{ index: opened, ...call }] }, true);
    } else {
      const custom = delivery.calls[opened]!.kind === 'custom';
      const more = custom
        ? { custom: { input: piece.text } }
        : { function: { arguments: piece.text } };
      yield delta({ tool_calls: [{ index: opened, ...more }] }, true);
    }
  }
  yield delta({}, false, delivery.finish);
  if (request.includeUsage) yield chunk([], usageOf(delivery));
  yield { text: sseEvent('', '[DONE]'), paced: false };
}
