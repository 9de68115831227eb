/** The answer of the demo model on the wire: cut into words within the request's limits, as one object or as a stream. */

import { createHash } from 'node:crypto';
import { sseEvent } from '../../lib/bytes/sse.ts';
import type { JsonObject } from '../../lib/json/json.ts';
import { type DemoRequest, estimateTokens, wordsOf } from './request.ts';

export interface PlannedCall {
  readonly kind: 'function' | 'custom';
  readonly name: string;
  readonly input: string;
}

/** The whole answer, decided before any of it is sent. */
export interface Plan {
  readonly reasoning: string;
  readonly text: string;
  readonly calls: readonly PlannedCall[];
}

interface Piece {
  /** A number: part of that call; the first one carries its name. */
  readonly to: 'reasoning' | 'text' | number;
  readonly text: string;
}

export interface Delivery {
  readonly pieces: readonly Piece[];
  readonly calls: readonly PlannedCall[];
  readonly finish: 'stop' | 'length' | 'tool_calls';
  readonly usage: JsonObject;
}

export interface ReplyHead {
  readonly id: string;
  readonly model: string;
  /** Seconds since 1970. */
  readonly created: number;
}

export interface Frame {
  readonly text: string;
  /** Carries something that was "said": this is where the pace waits. */
  readonly paced: boolean;
}

/** An id that the same body always gets. */
export const hashId = (prefix: string, seed: string | Uint8Array, position = 0): string =>
  prefix + createHash('sha256').update(seed).update(String(position)).digest('hex').slice(0, 24);

function* piecesOf({ reasoning, text, calls }: Plan): Generator<Piece> {
  for (const word of wordsOf(reasoning)) yield { to: 'reasoning', text: word };
  for (const word of wordsOf(text)) yield { to: 'text', text: word };
  for (const [to, { input }] of calls.entries()) {
    yield { to, text: '' };
    for (const [part] of input.matchAll(/[\s\S]{1,12}/gu)) yield { to, text: part };
  }
}

/** What is sent of the plan: up to a stop sequence, up to the token limit. */
export function deliver(plan: Plan, { stop, maxTokens, promptTokens }: DemoRequest): Delivery {
  const stops = stop.map((one) => plan.text.indexOf(one)).filter((at) => at >= 0);
  const said =
    stops.length === 0
      ? plan
      : { ...plan, text: plan.text.slice(0, Math.min(...stops)), calls: [] };
  const pieces: Piece[] = [];
  const tokens = { reasoning: 0, all: 0 };
  let cut = false;
  for (const piece of piecesOf(said)) {
    const isHead = typeof piece.to === 'number' && piece.text === '';
    const count = isHead
      ? 3 + estimateTokens(said.calls[piece.to as number]!.name)
      : estimateTokens(piece.text);
    cut = tokens.all + count > maxTokens;
    if (cut) break;
    tokens.all += count;
    if (piece.to === 'reasoning') tokens.reasoning += count;
    pieces.push(piece);
  }
  // A limit that lets nothing through was still used up.
  if (cut) tokens.all = Math.min(maxTokens, tokens.all + 1);
  const calls = said.calls.filter((_, index) => pieces.some(({ to }) => to === index));
  return {
    pieces,
    calls,
    finish: cut ? 'length' : calls.length > 0 ? 'tool_calls' : 'stop',
    usage: {
      prompt_tokens: promptTokens,
      completion_tokens: tokens.all,
      total_tokens: promptTokens + tokens.all,
      prompt_tokens_details: { cached_tokens: 0 },
      completion_tokens_details: { reasoning_tokens: tokens.reasoning },
    },
  };
}

/** `{id, type, function: {name, arguments}}`, or its custom twin. */
const callOf = ({ id }: ReplyHead, { kind, name }: PlannedCall, index: number, input: string) => ({
  id: hashId('call_', id, index),
  type: kind,
  [kind]: kind === 'custom' ? { name, input } : { name, arguments: input },
});

/** The whole answer as one object. */
export function completion(
  head: ReplyHead,
  { pieces, calls, finish, usage }: Delivery,
): JsonObject {
  const said = (to: Piece['to']) =>
    pieces
      .filter((piece) => piece.to === to)
      .map(({ text }) => text)
      .join('');
  const [text, reasoning] = [said('text'), said('reasoning')];
  const message = {
    role: 'assistant',
    content: text === '' && calls.length > 0 ? null : text,
    refusal: null,
    ...(reasoning !== '' && { reasoning_content: reasoning }),
    ...(calls.length > 0 && {
      tool_calls: calls.map((call, index) => callOf(head, call, index, said(index))),
    }),
  };
  const choices = [{ index: 0, message, logprobs: null, finish_reason: finish }];
  return { ...head, object: 'chat.completion', choices, usage };
}

/** The answer as SSE frames, in the order in which OpenAI sends them. */
export function* frames(
  head: ReplyHead,
  { pieces, calls, finish, usage }: Delivery,
  includeUsage: boolean,
): Generator<Frame> {
  const chunk = (
    choices: readonly JsonObject[],
    paced: boolean,
    last: JsonObject | null = null,
  ) => ({
    text: sseEvent(
      '',
      JSON.stringify({
        ...head,
        object: 'chat.completion.chunk',
        choices,
        ...(includeUsage && { usage: last }),
      }),
    ),
    paced,
  });
  const delta = (value: JsonObject, paced: boolean, reason: string | null = null) =>
    chunk([{ index: 0, delta: value, logprobs: null, finish_reason: reason }], paced);
  yield delta({ role: 'assistant', content: '', refusal: null }, false);
  for (const { to, text } of pieces) {
    if (typeof to === 'number') {
      const call = calls[to]!;
      const more = { [call.kind]: { [call.kind === 'custom' ? 'input' : 'arguments']: text } };
      yield delta(
        { tool_calls: [{ index: to, ...(text === '' ? callOf(head, call, to, '') : more) }] },
        true,
      );
    } else yield delta({ [to === 'text' ? 'content' : 'reasoning_content']: text }, true);
  }
  yield delta({}, false, finish);
  if (includeUsage) yield chunk([], false, usage);
  yield { text: sseEvent('', '[DONE]'), paced: false };
}

const utf8 = new TextEncoder();

/**
 * Frames at reading speed, on demand: a reader that stalls stalls the model.
 * @param pace milliseconds before each frame that says something; 0: none
 * @param signal aborting it errors the stream with its reason, also in the middle of a pause
 */
export function pacedStream(
  frames: Iterator<Frame>,
  pace: number,
  signal: AbortSignal,
): ReadableStream<Uint8Array> {
  let wake: (() => void) | undefined;
  let isOver = false;
  let onAbort = () => {};
  const leave = () => {
    isOver = true;
    wake?.();
    signal.removeEventListener('abort', onAbort);
  };
  const pause = () =>
    new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, pace);
      wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  return new ReadableStream<Uint8Array>(
    {
      start(controller) {
        onAbort = () => {
          leave();
          controller.error(signal.reason);
        };
        if (signal.aborted) onAbort();
        else signal.addEventListener('abort', onAbort);
      },
      async pull(controller) {
        const next = frames.next();
        if (next.done) {
          leave();
          controller.close();
          return;
        }
        if (pace > 0 && next.value.paced) await pause();
        if (!isOver) controller.enqueue(utf8.encode(next.value.text));
      },
      cancel: leave,
    },
    { highWaterMark: 0 },
  );
}
