/** Rewrites ids of tool calls to the format that a vendor accepts, the same way in every request. */

import {
  editNode,
  isClientCall,
  mapBlocks,
  mapUnchanged,
  withParts,
} from '../../conversation/edit.ts';
import type { Profile } from '../../conversation/profile-facts.ts';
import { legalCallIds } from '../../conversation/tools/call-ids.ts';
import type { Block, Turn } from '../../conversation/types.ts';
import type { FitRule } from './rule.ts';

type CallIdShape = NonNullable<Profile['callIds']>;

const LEGAL: Readonly<Record<CallIdShape, RegExp>> = {
  'nine-alphanumeric': /^[a-zA-Z0-9]{9}$/,
  short: /^[a-zA-Z0-9_-]{1,40}$/,
  functions: /^functions\.[\w.-]{1,128}:(\d{1,9})$/,
};
const ALPHABET = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';

export const fitCallIds: FitRule = (conversation, { profile, notes }) => {
  if (profile.callIds === undefined) return conversation;
  const shape = profile.callIds;
  const ids =
    shape === 'functions'
      ? numberedIds(conversation.turns)
      : legalCallIds(conversation.turns, LEGAL[shape], (seed) => hashedId(seed, shape));
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

/**
 * Kimi's models know a call by its function and its number in the conversation; behind other ids many end their turn without a
 * word. Only Moonshot's own API writes them so itself (github.com/MoonshotAI/Kimi-K2 docs/tool_call_guidance.md,
 * https://github.com/getkimchi/kimchi/pull/1066).
 */
function numberedIds(turns: readonly Turn[]): ReadonlyMap<string, string> {
  const calls = turns.flatMap(({ blocks }) => blocks.filter(isClientCall));
  const taken = new Set<string>();
  /** Above all numbers in use. */
  let next = calls.length;
  for (const { id } of calls) {
    const number = LEGAL.functions.exec(id)?.[1];
    if (number === undefined) continue;
    taken.add(id);
    next = Math.max(next, Number(number) + 1);
  }
  const ids = new Map<string, string>();
  calls.forEach(({ id, name }, at) => {
    if (taken.has(id) || ids.has(id)) return;
    const own = `functions.${name}:${at}`;
    ids.set(id, taken.has(own) ? `functions.${name}:${next++}` : own);
  });
  return ids;
}

function hashedId(id: string, shape: CallIdShape): string {
  const hash = Bun.hash.xxHash64(id);
  if (shape === 'short') return `call_${hash.toString(16).padStart(16, '0')}`;
  let out = '';
  for (let left = hash, i = 0; i < 9; i++, left /= 62n) out += ALPHABET[Number(left % 62n)];
  return out;
}
