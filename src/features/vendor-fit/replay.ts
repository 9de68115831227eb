/** Adds placeholder reasoning to assistant messages where a vendor requires reasoning and the history has none. */

import { editNode, isClientCall, withParts } from '../../conversation/edit.ts';
import { willReason } from '../../conversation/models/will-reason.ts';
import type { Turn } from '../../conversation/types.ts';
import type { FitContext, FitRule } from './rule.ts';

// DeepSeek V4 and Kimi refuse an assistant message without `reasoning_content` or, in Messages, without thinking (400),
// and V4 also an empty one. Both accept a single space.
const PLACEHOLDER = ' ';

/** Adds a placeholder to each answer that needs reasoning and has none. */
export const fitReplay: FitRule = (conversation, context) => {
  const { turns } = conversation;
  const { profile, protocol } = context;
  const unsigned = protocol === 'anthropic-messages' && profile.anySignature === true;
  if (profile.reasoningReplay === undefined || (protocol !== 'openai-chat' && !unsigned))
    return conversation;
  if (!willReason(conversation, profile)) return conversation;
  const out: Turn[] = [];
  for (let at = 0; at < turns.length; ) {
    const answer = answerAt(turns, at, context);
    for (const turn of lacksReasoning(answer, context) ? withPlaceholder(answer, context) : answer)
      out.push(turn);
    at += answer.length;
  }
  return out.every((turn, i) => turn === turns[i])
    ? conversation
    : withParts(conversation, { turns: out });
};

/** One answer: a message, or the neighbouring assistant turns that the codec merges into one. */
function answerAt(turns: readonly Turn[], at: number, context: FitContext): readonly Turn[] {
  let end = at + 1;
  if (!context.sameProtocol && turns[at]!.role === 'assistant') {
    while (turns[end]?.role === 'assistant') end++;
  }
  return turns.slice(at, end);
}

function lacksReasoning(answer: readonly Turn[], { profile }: FitContext): boolean {
  if (answer[0]!.role !== 'assistant') return false;
  const blocks = answer.flatMap((turn) => turn.blocks);
  if (blocks.some((block) => block.type === 'reasoning' && block.text !== '')) return false;
  if (profile.reasoningReplay === 'all') return blocks.length > 0;
  return blocks.some(isClientCall);
}

function withPlaceholder(
  [first, ...others]: readonly Turn[],
  { notes, protocol, provider }: FitContext,
): readonly Turn[] {
  notes.add('reasoning_placeholder_added', '/messages');
  const seal = { sealed: { protocol, provider, kind: 'signature', value: '' } } as const;
  const placeholder = {
    type: 'reasoning',
    text: PLACEHOLDER,
    ...(protocol === 'anthropic-messages' && seal),
  } as const;
  const blocks = [placeholder, ...first!.blocks];
  return [editNode(first!, { blocks }), ...others];
}
