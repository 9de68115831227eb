/** Reasoning that a vendor wants back on its assistant messages, where the history has none. */

import { editNode, withParts } from '../../conversation/edit.ts';
import type { Turn } from '../../conversation/types.ts';
import { willReason } from './reasoning.ts';
import type { FitContext, FitRule } from './rule.ts';

// DeepSeek V4 and Kimi answer 400 to an assistant message without `reasoning_content`, and V4 to an
// empty one too; one space is taken by both and says nothing.
const PLACEHOLDER = ' ';

/** A placeholder on each answer of the history that must have reasoning and has none. */
export const fitReplay: FitRule = (conversation, fit) => {
  const { turns } = conversation;
  if (fit.profile.reasoningReplay === undefined || fit.protocol !== 'openai-chat')
    return conversation;
  if (!willReason(conversation, fit.profile)) return conversation;
  const out: Turn[] = [];
  for (let at = 0; at < turns.length; ) {
    const run = answerAt(turns, at, fit);
    for (const turn of lacksReasoning(run, fit) ? withPlaceholder(run, fit) : run) out.push(turn);
    at += run.length;
  }
  return out.every((turn, i) => turn === turns[i])
    ? conversation
    : withParts(conversation, { turns: out });
};

/** One answer: a message, or (where the codec merges them) the neighbouring assistant turns. */
function answerAt(turns: readonly Turn[], at: number, fit: FitContext): readonly Turn[] {
  let end = at + 1;
  if (!fit.sameProtocol && turns[at]!.role === 'assistant') {
    while (turns[end]?.role === 'assistant') end++;
  }
  return turns.slice(at, end);
}

function lacksReasoning(run: readonly Turn[], { profile }: FitContext): boolean {
  if (run[0]!.role !== 'assistant') return false;
  const blocks = run.flatMap((turn) => turn.blocks);
  if (blocks.some((block) => block.type === 'reasoning' && block.text !== '')) return false;
  if (profile.reasoningReplay === 'all') return blocks.length > 0;
  return blocks.some((block) => block.type === 'tool-call' && block.by !== 'provider');
}

function withPlaceholder(
  [first, ...others]: readonly Turn[],
  { notes }: FitContext,
): readonly Turn[] {
  notes.add('reasoning_placeholder_added', '/messages');
  const blocks = [{ type: 'reasoning', text: PLACEHOLDER } as const, ...first!.blocks];
  return [editNode(first!, { blocks }), ...others];
}
