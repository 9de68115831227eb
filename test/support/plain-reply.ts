/** Checks what a digest reports for a plain-text reply. */

import { expect } from 'bun:test';
import type { Digest } from '../../src/codecs/codec.ts';
import type { Reply } from '../../src/conversation/events.ts';

/** If the digest holds texts, they are the whole content of the reply. @returns whether it holds texts */
export function expectPlain({ texts }: Digest, reply: Reply, where?: string): boolean {
  if (texts === undefined) return false;
  const blocks = reply.blocks.map(({ wire: _, residue: __, ...block }) => block);
  const wanted = texts.map((text) => ({ type: 'text', text }));
  expect(blocks as unknown[], where).toEqual(wanted);
  return true;
}
