/** Checks what a digest reports for a plain-text reply. */

import { expect } from 'bun:test';
import type { Digest } from '../../src/codecs/codec.ts';
import type { Reply } from '../../src/conversation/events.ts';

/** If the digest holds texts, they are the whole content of the reply. @returns whether it holds texts */
export function expectPlain({ texts }: Digest, reply: Reply, where?: string): boolean {
  if (texts === undefined) return false;
  // The texts do not say which of them begins a message of its own.
  const blocks = reply.blocks.map(({ wire: _, residue: __, ...block }) => block);
  const wanted = texts.map((text) => expect.objectContaining({ type: 'text', text }));
  expect(blocks as unknown[], where).toEqual(wanted);
  const members = new Set(
    blocks.flatMap((block) =>
      Object.entries(block).flatMap(([name, value]) => (value === undefined ? [] : name)),
    ),
  );
  members.delete('paragraph');
  expect([...members], where).toEqual(['type', 'text']);
  return true;
}
