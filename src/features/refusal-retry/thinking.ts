/** Reasoning and signatures that a vendor has just refused: dropped, or stood in for. */

import { editNode, mapUnchanged, withParts } from '../../conversation/edit.ts';
import type { Target } from '../../conversation/target.ts';
import type { Block, Conversation, Turn } from '../../conversation/types.ts';

/** Notes what was taken out, and where. */
export type NoteStripped = (where: string, what: string) => void;

export interface RefusedBlock {
  /** Indices of the message and of its block, as the vendor counts them. */
  readonly at?: { readonly message: number; readonly block: number };
  /** Everything behind it is refused for the same reason. */
  readonly onwards?: boolean;
}

/** What DeepSeek and Kimi take for reasoning where there was none; an empty one is refused. */
const REASONING_PLACEHOLDER = ' ';

/**
 * Google's own word for a call that another model made: its signature is not checked
 * (https://ai.google.dev/gemini-api/docs/thought-signatures).
 */
const UNCHECKED_SIGNATURE = 'skip_thought_signature_validator';

/**
 * Without the block that was named; where none was, or where the index names something else (messages
 * were merged on the way), without any reasoning.
 */
export function withoutThinking(
  conversation: Conversation,
  { at, onwards }: RefusedBlock,
  stripped: NoteStripped,
): Conversation {
  const { turns } = conversation;
  const precise = at !== undefined && turns[at.message]?.blocks[at.block]?.type === 'reasoning';
  const goes = (block: Block, turn: number, place: number): boolean => {
    if (block.type !== 'reasoning') return false;
    if (!precise) return true;
    if (turn === at.message) return place === at.block || (onwards === true && place > at.block);
    return onwards === true && turn > at.message;
  };
  let count = 0;
  const kept = mapUnchanged(turns, (turn, i): Turn | undefined => {
    if (turn.role !== 'assistant') return turn;
    const blocks = turn.blocks.filter((block, place) => !goes(block, i, place));
    if (blocks.length === turn.blocks.length) return turn;
    count += turn.blocks.length - blocks.length;
    return blocks.length === 0 ? undefined : editNode(turn, { blocks });
  });
  if (count === 0) return conversation;
  const where = precise ? `/messages/${at.message}/content/${at.block}` : '/messages';
  stripped(where, `${count} reasoning ${count === 1 ? 'block' : 'blocks'}`);
  return withParts(conversation, { turns: kept });
}

/** With a placeholder on the named assistant turn, or on every one with calls and without reasoning. */
export function withPlaceholders(
  conversation: Conversation,
  message: number | undefined,
  stripped: NoteStripped,
): Conversation {
  const lacks = (turn: Turn | undefined): turn is Turn =>
    turn?.role === 'assistant' &&
    turn.blocks.length > 0 &&
    !turn.blocks.some((block) => block.type === 'reasoning' && block.text !== '');
  const { turns, origin } = conversation;
  const named = message !== undefined && lacks(turns[message]);
  // Responses: an item of its own, in front of the item that lacks it.
  const items = origin?.protocol === 'openai-responses';
  const withCalls = turns.some((turn) => lacks(turn) && turn.blocks.some(isCall));
  let count = 0;
  const filled = mapUnchanged(turns, (turn, i): Turn | readonly Turn[] => {
    // Whoever names one message stops at the first: the others like it are filled with it.
    const concerned = named || !withCalls || turn.blocks.some(isCall);
    if (!lacks(turn) || !concerned) return turn;
    const placeholder = { type: 'reasoning', text: REASONING_PLACEHOLDER } as const;
    if (items) {
      if (turns[i - 1]?.blocks.some((block) => block.type === 'reasoning')) return turn;
      count++;
      return [{ role: 'assistant', blocks: [placeholder] }, turn];
    }
    count++;
    const rest = turn.blocks.filter((block) => block.type !== 'reasoning');
    return editNode(turn, { blocks: [placeholder, ...rest] });
  });
  if (count === 0) return conversation;
  stripped(named ? `/messages/${message}` : '/messages', `${count} reasoning placeholders added`);
  return withParts(conversation, { turns: filled });
}

const isCall = (block: Block) => block.type === 'tool-call' && block.by !== 'provider';

/** Every first call of an answer with a signature that is not checked; the others with none. */
export function withUncheckedSignatures(
  conversation: Conversation,
  target: Target,
  stripped: NoteStripped,
): Conversation {
  let count = 0;
  const turns = mapUnchanged(conversation.turns, (turn) => {
    if (turn.role !== 'assistant') return turn;
    const first = turn.blocks.findIndex(isCall);
    const blocks = mapUnchanged(turn.blocks, (block, i): Block => {
      if (block.type !== 'tool-call' || block.by === 'provider') return block;
      const value = i === first ? UNCHECKED_SIGNATURE : undefined;
      if (block.sealed?.value === value) return block;
      count++;
      const sealed =
        value === undefined
          ? undefined
          : ({ protocol: target.protocol, kind: 'signature', value } as const);
      const bare = editNode(block, { sealed });
      return bare.residue === undefined ? bare : withoutExtraContent(bare);
    });
    return blocks === turn.blocks ? turn : editNode(turn, { blocks });
  });
  if (count === 0) return conversation;
  stripped('/messages', `signatures of ${count} calls`);
  return withParts(conversation, { turns });
}

/** The old signature also stands in what the call was decoded from. */
function withoutExtraContent<T extends Block>(block: T): T {
  const value = block.residue?.value;
  if (typeof value !== 'object' || value === null || !('extra_content' in value)) return block;
  const { extra_content: _, ...rest } = value;
  return { ...block, residue: { ...block.residue!, value: rest } };
}
