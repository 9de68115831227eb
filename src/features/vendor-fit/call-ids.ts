/** Ids of tool calls in the only shape that a vendor takes, the same for the same call in every request. */

import { edited, mapSame, withParts } from '../../conversation/edit.ts';
import type { Profile } from '../../conversation/target.ts';
import type { Block, Turn } from '../../conversation/types.ts';
import type { Rule } from './fit.ts';

type Shape = NonNullable<Profile['callIds']>;

const LEGAL: Readonly<Record<Shape, RegExp>> = {
  'nine-alphanumeric': /^[a-zA-Z0-9]{9}$/,
  short: /^[a-zA-Z0-9_-]{1,40}$/,
};
const ALPHABET = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';

export const fitCallIds: Rule = (conversation, { profile, notes }) => {
  if (profile.callIds === undefined) return conversation;
  const ids = newIds(conversation.turns, profile.callIds);
  if (ids.size === 0) return conversation;
  notes.add(
    'tool_ids_rewritten',
    '/messages',
    `${ids.size} in the shape that ${profile.name} takes`,
  );
  const turns = mapSame(conversation.turns, (turn) => {
    const blocks = mapSame(turn.blocks, (block): Block => {
      if (block.type === 'tool-call' && ids.has(block.id)) {
        return edited(block, { id: ids.get(block.id)! });
      }
      return block.type === 'tool-result' && ids.has(block.callId)
        ? edited(block, { callId: ids.get(block.callId)! })
        : block;
    });
    return blocks === turn.blocks ? turn : edited(turn, { blocks });
  });
  return withParts(conversation, { turns });
};

/** New ids for those that are refused; two ids never become one. */
function newIds(turns: readonly Turn[], shape: Shape): ReadonlyMap<string, string> {
  const taken = new Set<string>();
  const refused = new Set<string>();
  for (const turn of turns) {
    for (const block of turn.blocks) {
      const id =
        block.type === 'tool-call'
          ? block.id
          : block.type === 'tool-result'
            ? block.callId
            : undefined;
      if (id !== undefined) (LEGAL[shape].test(id) ? taken : refused).add(id);
    }
  }
  const made = new Map<string, string>();
  for (const id of refused) {
    let name = hashed(id, shape);
    for (let i = 1; taken.has(name); i++) name = hashed(`${id}\0${i}`, shape);
    taken.add(name);
    made.set(id, name);
  }
  return made;
}

function hashed(id: string, shape: Shape): string {
  const hash = Bun.hash.xxHash64(id);
  if (shape === 'short') return `call_${hash.toString(16).padStart(16, '0')}`;
  let out = '';
  for (let left = hash, i = 0; i < 9; i++, left /= 62n) out += ALPHABET[Number(left % 62n)];
  return out;
}
