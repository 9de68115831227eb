/** Cuts an answer into token-sized pieces, within the limits of the request. */

import type { DemoRequest } from './chat-request.ts';
import type { Plan, PlannedCall } from './plan.ts';
import { estimateTokens, slicesOf, wordsOf } from './token-estimate.ts';

export type Piece =
  | { readonly to: 'reasoning' | 'text'; readonly text: string; readonly tokens: number }
  /** The head of a call, which carries its name, or a part of its input. */
  | { readonly to: 'call'; readonly index: number; readonly text: string; readonly tokens: number };

export interface Delivery {
  readonly pieces: readonly Piece[];
  readonly calls: readonly PlannedCall[];
  readonly finish: 'stop' | 'length' | 'tool_calls';
  readonly usage: Readonly<Record<'prompt' | 'completion' | 'reasoning', number>>;
}

function* allPieces({ reasoning, text, calls }: Plan): Generator<Piece> {
  for (const word of wordsOf(reasoning))
    yield { to: 'reasoning', text: word, tokens: estimateTokens(word) };
  for (const word of wordsOf(text)) yield { to: 'text', text: word, tokens: estimateTokens(word) };
  for (const [index, call] of calls.entries()) {
    yield { to: 'call', index, text: '', tokens: 3 + estimateTokens(call.name) };
    for (const part of slicesOf(call.input, 12)) {
      yield { to: 'call', index, text: part, tokens: estimateTokens(part) };
    }
  }
}

/** The plan with the text up to the first stop sequence; what would come behind it is not said. */
function stopped(plan: Plan, stop: readonly string[]): Plan {
  const cuts = stop.map((one) => plan.text.indexOf(one)).filter((at) => at >= 0);
  return cuts.length === 0
    ? plan
    : { ...plan, text: plan.text.slice(0, Math.min(...cuts)), calls: [] };
}

/** What is sent of the plan: up to a stop sequence, up to the token limit. */
export function deliver(plan: Plan, request: DemoRequest): Delivery {
  const said = stopped(plan, request.stop);
  const pieces: Piece[] = [];
  let completion = 0;
  let reasoning = 0;
  let cut = false;
  for (const piece of allPieces(said)) {
    if (completion + piece.tokens > request.maxTokens) {
      cut = true;
      break;
    }
    completion += piece.tokens;
    if (piece.to === 'reasoning') reasoning += piece.tokens;
    pieces.push(piece);
  }
  const begun = new Set(pieces.map((piece) => (piece.to === 'call' ? piece.index : -1)));
  const calls = said.calls.filter((_, index) => begun.has(index));
  const finish = cut ? 'length' : calls.length > 0 ? 'tool_calls' : 'stop';
  // A limit that lets nothing through was still used up.
  if (cut) completion = Math.max(completion, Math.min(request.maxTokens, completion + 1));
  return { pieces, calls, finish, usage: { prompt: request.promptTokens, completion, reasoning } };
}
