/** The one way to change a conversation: new nodes, with what they came from kept as residue. */

import type { Block, Conversation, Tool, Turn } from './types.ts';

/**
 * A changed node. It is no longer what the wire said, so `wire` goes; what it was decoded from stays
 * as `residue`, from which an encoder of the same protocol keeps the fields that have no meaning here.
 */
export function editNode<T extends Turn | Block | Tool>(node: T, changes: Partial<T>): T {
  const { wire, ...rest } = node as T & { wire?: T['wire'] };
  return { ...rest, residue: wire ?? node.residue, ...changes } as T;
}

/** The conversation with other parts; the origin stays, since encoders compare with it part by part. */
export function withParts(
  conversation: Conversation,
  changes: Partial<Omit<Conversation, 'origin'>>,
): Conversation {
  return { ...conversation, ...changes };
}

/**
 * Maps a list; the same reference comes back when nothing changed. `change` returns the item itself
 * to keep it, undefined to drop it, or a list to put in its place.
 */
export function mapUnchanged<T>(
  list: readonly T[],
  change: (item: T, index: number) => T | readonly T[] | undefined,
): readonly T[] {
  let out: T[] | undefined;
  for (let i = 0; i < list.length; i++) {
    const item = list[i]!;
    const next = change(item, i);
    if (next === item) {
      out?.push(item);
      continue;
    }
    out ??= list.slice(0, i);
    // Item by item: a call with as many arguments as a history has turns overflows the stack.
    if (Array.isArray(next)) for (const one of next as readonly T[]) out.push(one);
    else if (next !== undefined) out.push(next as T);
  }
  return out ?? list;
}
