/** Leaves out what a vendor keeps, or has encrypted, of earlier answers and does not know again. */

import {
  editNode,
  mapBlocks,
  mapUnchanged,
  resultWords,
  withParts,
} from '../../conversation/edit.ts';
import type { EncryptedContent } from '../../conversation/refusal/refusal.ts';
import type { Block, Conversation, ToolResultBlock, Turn } from '../../conversation/types.ts';
import { isObject } from '../../lib/json/json.ts';
import { type NoteStripped, withoutThinking } from './thinking.ts';

type Change = (block: Block) => Block | readonly Block[] | undefined;

/**
 * Without what is nothing without its id: references to items, and reasoning that is not sealed. The ids of the other
 * items are left out of the body.
 * @param incomplete the vendor looks items up by their ids and finds reasoning that is not there: no reasoning stays
 */
export function withoutKept(
  conversation: Conversation,
  incomplete: boolean,
  stripped: NoteStripped,
): Conversation {
  const bare = incomplete ? withoutThinking(conversation, {}, stripped) : conversation;
  return withoutBlocks(bare, 'kept by the vendor', stripped, (block) => {
    const isLost =
      block.type === 'reasoning'
        ? block.sealed === undefined && block.wire !== undefined
        : block.type === 'opaque' && block.name === 'item_reference';
    return isLost ? undefined : block;
  });
}

/** A refusal that does not say which content it means is about reasoning if there is any. */
export function withoutEncrypted(
  conversation: Conversation,
  of: EncryptedContent,
  stripped: NoteStripped,
): Conversation {
  if (of === 'search results') return withSearchesAsText(conversation, stripped);
  const bare = of === 'summary' ? conversation : withoutThinking(conversation, {}, stripped);
  if (of === 'reasoning' && bare !== conversation) return bare;
  return withoutBlocks(bare, 'encrypted summaries', stripped, (block) => {
    const value = block.type === 'opaque' ? block.wire.value : undefined;
    return isObject(value) && typeof value.encrypted_content === 'string' ? undefined : block;
  });
}

/** Searches that the vendor ran, as their results' readable text; citations refer to what was encrypted. */
const withSearchesAsText = (conversation: Conversation, stripped: NoteStripped): Conversation =>
  withoutBlocks(conversation, 'search results', stripped, (block) => {
    if (block.type === 'tool-call') return block.by === 'provider' ? undefined : block;
    if (block.type === 'text' && block.citations !== undefined) {
      return editNode(block, { citations: undefined });
    }
    if (block.type !== 'tool-result' || block.by !== 'provider') return block;
    const text = resultWords(block);
    return text === '' ? undefined : { type: 'text', text };
  });

/** Results of functions as the text that they have for other vendors, where an object holds references. */
export const withResultsAsText = (
  conversation: Conversation,
  stripped: NoteStripped,
): Conversation =>
  withoutBlocks(conversation, 'references in results, now text', stripped, (block) => {
    const value = block.type === 'tool-result' ? block.wire?.value : undefined;
    return value !== undefined && JSON.stringify(value).includes('"$ref"')
      ? editNode(block, { content: (block as ToolResultBlock).content })
      : block;
  });

/** openai-node, responses.ts: ResponseFunctionWebSearch */
const isSound = (action: unknown): boolean =>
  isObject(action) &&
  ((action.type === 'search' && (action.query ?? action.queries) !== undefined) ||
    (action.type === 'open_page' && action.url !== undefined) ||
    action.type === 'find_in_page');

/** The vendor's own searches whose action it would not have written so, else all of them: what was found is in the answers. */
export function withoutOddSearches(
  conversation: Conversation,
  stripped: NoteStripped,
): Conversation {
  const without = (isOdd: (action: unknown) => boolean) =>
    withoutBlocks(conversation, 'searches', stripped, (block) => {
      const isSearch = block.type === 'tool-call' && block.by === 'provider';
      const value = isSearch ? block.wire?.value : undefined;
      return isObject(value) && value.type === 'web_search_call' && isOdd(value.action)
        ? undefined
        : block;
    });
  const left = without((action) => !isSound(action));
  return left.turns === conversation.turns ? without(() => true) : left;
}

function withoutBlocks(
  conversation: Conversation,
  what: string,
  stripped: NoteStripped,
  change: Change,
): Conversation {
  const turns = mapUnchanged(conversation.turns, (turn): Turn | undefined => {
    const left = mapBlocks(turn, change);
    return left !== turn && left.blocks.length === 0 ? undefined : left;
  });
  if (turns !== conversation.turns) stripped('/messages', what);
  return withParts(conversation, { turns });
}
