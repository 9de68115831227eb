/** Rewrites ids of tool calls to the format that a vendor accepts, the same way in every request. */

import { editNode, mapBlocks, mapUnchanged, withParts } from '../../conversation/edit.ts';
import type { Profile } from '../../conversation/profile-facts.ts';
import { legalCallIds } from '../../conversation/tools/call-ids.ts';
import type { Block } from '../../conversation/types.ts';
import type { FitRule } from './rule.ts';

type CallIdShape = NonNullable<Profile['callIds']>;

const LEGAL: Readonly<Record<CallIdShape, RegExp>> = {
  'nine-alphanumeric': /^[a-zA-Z0-9]{9}$/,
  short: /^[a-zA-Z0-9_-]{1,40}$/,
};
const ALPHABET = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';

export const fitCallIds: FitRule = (conversation, { profile, notes }) => {
  if (profile.callIds === undefined) return conversation;
  const shape = profile.callIds;
  const make = (seed: string) => hashedId(seed, shape);
  const ids = legalCallIds(conversation.turns, LEGAL[shape], make);
  if (ids.size === 0) return conversation;
  notes.add(
    'tool_ids_rewritten',
    '/messages',
    `${ids.size} in the shape that ${profile.name} takes`,
  );
  const fit = (block: Block): Block => {
    if (block.type === 'tool-call' && ids.has(block.id)) {
      return editNode(block, { id: ids.get(block.id)! });
    }
    return block.type === 'tool-result' && ids.has(block.callId)
      ? editNode(block, { callId: ids.get(block.callId)! })
      : block;
  };
  const turns = mapUnchanged(conversation.turns, (turn) => mapBlocks(turn, fit));
  return withParts(conversation, { turns });
};

function hashedId(id: string, shape: CallIdShape): string {
  const hash = Bun.hash.xxHash64(id);
  if (shape === 'short') return `call_${hash.toString(16).padStart(16, '0')}`;
  let out = '';
  for (let left = hash, i = 0; i < 9; i++, left /= 62n) out += ALPHABET[Number(left % 62n)];
  return out;
}
