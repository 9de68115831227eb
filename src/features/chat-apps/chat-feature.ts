/** The feature of a chat: states the recall limit, leaves the client its own tools, and cleans the reply. */

import type { Target } from '../../conversation/target.ts';
import type { Feature } from '../feature.ts';
import { cleanReply } from './clean-reply.ts';
import { withInstruction } from './recall-limit.ts';
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
