/** Removes or replaces reasoning and signatures that a vendor has refused. */

import {
  editNode,
  isClientCall,
  mapBlocks,
  mapUnchanged,
  withParts,
} from '../../conversation/edit.ts';
import type { Target } from '../../conversation/target.ts';
import type { Block, Conversation, Turn } from '../../conversation/types.ts';
import { isObject } from '../../lib/json/json.ts';

/** Adds a note about what was removed, and where. */
export type NoteStripped = (where: string, what: string) => void;

export interface RefusedBlock {
  /** Indices of the message and of the block, as the vendor counts them. */
  readonly at?: { readonly message: number; readonly block: number };
  /** Everything after it is refused for the same reason. */
  readonly onwards?: boolean;
}

/** DeepSeek and Kimi accept a space as reasoning; they refuse an empty string. */
const REASONING_PLACEHOLDER = ' ';

/**
 * Google's value for a call that another model made; it turns off the check of the signature
 * (https://ai.google.dev/gemini-api/docs/thought-signatures).
 */
const UNCHECKED_SIGNATURE = 'skip_thought_signature_validator';

/**
 * Removes the named block. Removes all reasoning if none was named, or if the index points to something
 * else because messages were merged on the way.
 */
export function withoutThinking(
  conversation: Conversation,
  { at, onwards }: RefusedBlock,
  stripped: NoteStripped,
): Conversation {
  const { turns } = conversation;
  const precise = at !== undefined && turns[at.message]?.blocks[at.block]?.type === 'reasoning';
  const isRefused = (block: Block, turn: number, position: number): boolean => {
    if (block.type !== 'reasoning') return false;
    if (!precise) return true;
    if (turn === at.message)
      return position === at.block || (onwards === true && position > at.block);
    return onwards === true && turn > at.message;
  };
  let count = 0;
  const remaining = mapUnchanged(turns, (turn, i): Turn | undefined => {
    if (turn.role !== 'assistant') return turn;
    const left = mapBlocks(turn, (block, position) =>
      isRefused(block, i, position) ? undefined : block,
    );
    count += turn.blocks.length - left.blocks.length;
    return left !== turn && left.blocks.length === 0 ? undefined : left;
  });
  if (count === 0) return conversation;
  const where = precise ? `/messages/${at.message}/content/${at.block}` : '/messages';
  stripped(where, `${count} reasoning ${count === 1 ? 'block' : 'blocks'}`);
  return withParts(conversation, { turns: remaining });
}

/**
 * Adds placeholder reasoning to the named assistant turn, or to every one that has none: DeepSeek refuses a text before
 * the calls of a turn, too (github.com/experientiallabs/experiential/pull/890).
 */
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
  // Responses: reasoning is a separate item before the one that lacks it.
  const items = origin?.protocol === 'openai-responses';
  let count = 0;
  const filled = mapUnchanged(turns, (turn, i): Turn | readonly Turn[] => {
    // The vendor reports only the first such message, so the others are filled too.
    if (!lacks(turn)) return turn;
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

/**
 * Gives the first call of each answer a signature that is not checked, and the others none.
 * @param invalid one of any part may be meant: texts lose theirs, and reasoning that is sealed goes
 */
export function withUncheckedSignatures(
  conversation: Conversation,
  target: Target,
  invalid: boolean,
  stripped: NoteStripped,
): Conversation {
  let count = 0;
  const turns = mapUnchanged(conversation.turns, (turn): Turn | undefined => {
    if (turn.role !== 'assistant') return turn;
    const first = turn.blocks.findIndex(isClientCall);
    const left = mapBlocks(turn, (block, i): Block | undefined => {
      if (!isClientCall(block)) {
        const bare = invalid ? withoutSignature(block, turn.blocks[first]) : block;
        if (bare !== block) count++;
        return bare;
      }
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
    return left !== turn && left.blocks.length === 0 ? undefined : left;
  });
  if (count === 0) return conversation;
  stripped('/messages', `${count} signatures`);
  return withParts(conversation, { turns });
}

const SIGNATURE_NAMES = ['thoughtSignature', 'thought_signature'];

/** @param call the first one of the turn */
function withoutSignature(block: Block, call: Block | undefined): Block | undefined {
  if (block.type === 'reasoning') {
    const { sealed } = block;
    if (sealed === undefined) return block;
    // OpenRouter takes the signature of a call from the details: github.com/RooCodeInc/Roo-Code/pull/10640
    if (call?.type !== 'tool-call' || sealed.protocol !== 'openai-chat') return undefined;
    const detail = {
      type: 'reasoning.encrypted',
      data: UNCHECKED_SIGNATURE,
      id: call.id,
      format: 'google-gemini-v1',
      index: 0,
    };
    return editNode(block, { sealed: { ...sealed, value: JSON.stringify([detail]) } });
  }
  const { value } = block.wire ?? {};
  if (!isObject(value) || SIGNATURE_NAMES.every((name) => value[name] === undefined)) return block;
  const left = Object.entries(value).filter(([name]) => !SIGNATURE_NAMES.includes(name));
  return { ...block, wire: { ...block.wire!, value: Object.fromEntries(left) } };
}

/** Removes the old signature from the JSON that the call was decoded from. */
function withoutExtraContent<T extends Block>(block: T): T {
  const value = block.residue?.value;
  if (typeof value !== 'object' || value === null || !('extra_content' in value)) return block;
  const { extra_content: _, ...rest } = value;
  return { ...block, residue: { ...block.residue!, value: rest } };
}
