/** Tells calls apart whose vendor uses an id again in later answers, and gives the vendor its own ids back. */

import { editNode, mapUnchanged, withParts } from '../../conversation/edit.ts';
import { unwrapRepeatedId } from '../../conversation/tools/call-ids.ts';
import type { Block, Conversation, Turn } from '../../conversation/types.ts';
import type { Feature, FeatureContext } from '../feature.ts';
import { UniqueIds } from './unique-ids.ts';

/** Between client and vendor of one protocol, calls keep the ids that they have. */
const converts = ({ client, target }: FeatureContext): boolean => client !== target.protocol;

/** The history of an exchange with the ids that the client knows. */
const histories = new WeakMap<FeatureContext, readonly Turn[]>();

/** Wraps ids in answers. Place it before every feature that reads calls of answers. */
export const uniqueCallIds: Feature = {
  name: 'unique-call-ids',
  mayApply: (_body, context) => converts(context),
  intercept(sent, context) {
    if (!converts(context)) return undefined;
    const turns = histories.get(context) ?? sent.turns;
    if (sent.tools.length === 0 && !turns.some(hasCall)) return undefined;
    return new UniqueIds(turns, context.hop, context.notes);
  },
};

/**
 * Unwraps ids in requests. Place it behind every feature that knows calls by their id, and before tool pairing,
 * which makes a history with repeated ids sound. Messages refuses such histories, so its vendors keep the
 * client's ids.
 */
export const vendorCallIds: Feature = {
  name: 'vendor-call-ids',
  mayApply: (_body, context) => converts(context),
  request(conversation, context): Conversation {
    if (!converts(context)) return conversation;
    histories.set(context, conversation.turns);
    if (context.target.protocol === 'anthropic-messages') return conversation;
    const turns = withVendorIds(conversation.turns);
    return withParts(conversation, { turns });
  },
};

const hasCall = ({ blocks }: Turn): boolean => blocks.some(({ type }) => type === 'tool-call');

const isWrapped = (block: Block): boolean =>
  block.type === 'tool-call' && unwrapRepeatedId(block.id) !== block.id;

function withVendorIds(turns: readonly Turn[]): readonly Turn[] {
  if (!turns.some(({ blocks }) => blocks.some(isWrapped))) return turns;
  /** The vendor's ids of calls without a result so far, and the client's ids of unwrapped ones. */
  const open = new Set<string>();
  const unwrapped = new Set<string>();
  return mapUnchanged(turns, (turn) => {
    const blocks = mapUnchanged(turn.blocks, (block): Block => {
      if (block.type === 'tool-call') {
        const id = unwrapRepeatedId(block.id);
        // Results of two open calls of one id could be mistaken for each other.
        if (id === block.id || open.has(id)) {
          open.add(block.id);
          return block;
        }
        open.add(id);
        unwrapped.add(block.id);
        return edited(block, { id });
      }
      if (block.type !== 'tool-result') return block;
      if (!unwrapped.has(block.callId)) {
        open.delete(block.callId);
        return block;
      }
      const callId = unwrapRepeatedId(block.callId);
      open.delete(callId);
      return edited(block, { callId });
    });
    return blocks === turn.blocks ? turn : editedTurn(turn, blocks);
  });
}

/** What was made of a node; the next request of the session finds the same node again. */
const blocksMade = new WeakMap<Block, Block>();
const turnsMade = new WeakMap<Turn, Turn>();

function edited<T extends Block>(block: T, changes: Partial<T>): Block {
  const known = blocksMade.get(block);
  if (known !== undefined) return known;
  const made = editNode<Block>(block, changes);
  blocksMade.set(block, made);
  return made;
}

function editedTurn(turn: Turn, blocks: readonly Block[]): Turn {
  const known = turnsMade.get(turn);
  if (known?.blocks.every((block, at) => block === blocks[at]) === true) return known;
  const made = editNode(turn, { blocks });
  turnsMade.set(turn, made);
  return made;
}
