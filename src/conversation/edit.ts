/** The one way to change a conversation: new nodes that keep their source as residue. */

import type { Block, Conversation, Tool, Turn } from './types.ts';

/**
 * A changed copy of a node. `wire` becomes `residue`, because the node no longer says what its wire says.
 * An encoder of the same protocol takes the fields without a common meaning from the residue.
 */
export function editNode<T extends Turn | Block | Tool>(node: T, changes: Partial<T>): T {
  const { wire, ...rest } = node as T & { wire?: T['wire'] };
  return { ...rest, residue: wire ?? node.residue, ...changes } as T;
}

/** The conversation with other parts. The origin stays: encoders compare each part with it. */
export function withParts(
  conversation: Conversation,
  changes: Partial<Omit<Conversation, 'origin'>>,
): Conversation {
  return { ...conversation, ...changes };
}

/**
 * Maps a list; returns the same list if nothing changed. `change` returns the item itself to keep it,
 * undefined to drop it, or a list to insert in its place.
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
    // Item by item: `push(...next)` overflows the stack for a long list.
    if (Array.isArray(next)) for (const one of next as readonly T[]) out.push(one);
    else if (next !== undefined) out.push(next as T);
  }
  return out ?? list;
}
