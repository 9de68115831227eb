/** The feature of a chat: states the recall limit, leaves the client its own tools, and cleans the reply. */

import { editNode, isInstruction, withParts } from '../../conversation/edit.ts';
import type { StreamEvent } from '../../conversation/events.ts';
import type { Target } from '../../conversation/target.ts';
import type { Block, Conversation, Turn } from '../../conversation/types.ts';
import type { Feature, Interceptor } from '../feature.ts';
import { MarkupRemover } from './leaked-markup.ts';
import { type ConversationTool, RECALL } from './tools.ts';

export interface ChatFeatureOptions {
  readonly tools: readonly ConversationTool[];
  /** The recall limit as a sentence and a number; undefined: no limit. */
  readonly recallLimit: { readonly max: number; readonly sentence: string } | undefined;
  /** Called when the markup of a leaked call was removed from a reply. */
  readonly onMarkup: (target: Target) => void;
}

export function chatFeature({ tools, recallLimit, onMarkup }: ChatFeatureOptions): Feature {
  return {
    name: 'conversation-tools',
    request(conversation, { notes }) {
      const own = new Set(
        conversation.tools.flatMap((tool) =>
          tool.type === 'hosted' || tool.namespace !== undefined ? [] : [tool.name],
        ),
      );
      for (const { name } of tools) {
        if (own.has(name)) notes.add('conversation_tool_left_to_client', '/tools', name);
      }
      const recalls = tools.some(({ name }) => name === RECALL) && !own.has(RECALL);
      if (recallLimit === undefined || !recalls) return conversation;
      const changed = withInstruction(conversation, recallLimit.sentence);
      if (changed !== conversation) {
        notes.add('recall_limit_told', '/system', `at most ${recallLimit.max}`);
      }
      return changed;
    },
    intercept: (_, { target, notes }) =>
      cleanReply(
        () => {
          notes.add('leaked_markup_removed', undefined, 'dsml');
          onMarkup(target);
        },
        // Signed reasoning must be sent back unchanged.
        { reasoning: target.protocol !== 'anthropic-messages' },
      ),
  };
}

/**
 * @param onFound called at most once for each text that contained markup
 * @param cleans whether reasoning is cleaned like the text
 */
export function cleanReply(
  onFound: () => void,
  cleans: { readonly reasoning: boolean },
): Interceptor {
  let text: MarkupRemover | undefined;
  let reported = false;

  function reportOnce({ count }: MarkupRemover): void {
    if (count === 0 || reported) return;
    reported = true;
    onFound();
  }

  function event(event: StreamEvent): StreamEvent | readonly StreamEvent[] {
    if (event.type === 'delta') {
      if (text === undefined) return event;
      const cleaned = text.push(event.text);
      reportOnce(text);
      if (cleaned === event.text) return event;
      return cleaned === '' ? [] : { ...event, text: cleaned };
    }
    if (event.type === 'block-start') {
      const { head } = event;
      reported = false;
      const applies = head.type === 'text' || (head.type === 'reasoning' && cleans.reasoning);
      text = applies ? new MarkupRemover() : undefined;
      if (head.type !== 'whole' || head.block.type !== 'text') return event;
      const whole = new MarkupRemover();
      const cleaned = whole.push(head.block.text) + whole.end();
      reportOnce(whole);
      if (whole.count === 0) return event;
      const { wire: _, ...block } = head.block;
      return { ...event, head: { type: 'whole', block: { ...block, text: cleaned } } };
    }
    if (event.type !== 'block-stop' || text === undefined) return event;
    const rest = text.end();
    reportOnce(text);
    text = undefined;
    return rest === '' ? event : [{ type: 'delta', index: event.index, text: rest }, event];
  }

  return { event, end: () => [] };
}

/**
 * The conversation with a sentence after the app's own instructions, whose text stays unchanged. The
 * same reference where the sentence is already there.
 */
function withInstruction(conversation: Conversation, sentence: string): Conversation {
  const { system, turns } = conversation;
  if (system.length > 0) {
    if (system.some((block) => endsWith(block, sentence))) return conversation;
    return withParts(conversation, { system: [...system, { type: 'text', text: sentence }] });
  }
  let lead = 0;
  while (lead < turns.length && isInstruction(turns[lead]!)) lead++;
  const leading = turns.slice(0, lead);
  if (leading.some(({ blocks }) => blocks.some((block) => endsWith(block, sentence)))) {
    return conversation;
  }
  const own = leading.at(-1);
  const block: Block = { type: 'text', text: sentence };
  if (own === undefined) return withParts(conversation, { system: [block] });
  const changed = editNode(own, { blocks: appended(own, sentence) });
  return withParts(conversation, {
    turns: [...turns.slice(0, lead - 1), changed, ...turns.slice(lead)],
  });
}

const endsWith = (block: Block, sentence: string): boolean =>
  block.type === 'text' && block.text.endsWith(sentence);

/** Appends a paragraph to the last text, so that a system message of one string stays one. */
function appended({ blocks }: Turn, sentence: string): readonly Block[] {
  const last = blocks.at(-1);
  if (last?.type !== 'text') return [...blocks, { type: 'text', text: sentence }];
  return [...blocks.slice(0, -1), editNode(last, { text: `${last.text}\n\n${sentence}` })];
}
