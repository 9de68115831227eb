/** What a digest may call a reply of plain words. */

import { expect } from 'bun:test';
import type { Digest } from '../../src/codecs/codec.ts';
import type { Reply } from '../../src/conversation/events.ts';

/** Where the digest tells texts, they are all that the reply holds. @returns whether it does */
export function expectPlain({ texts }: Digest, reply: Reply, where?: string): boolean {
  if (texts === undefined) return false;
  const blocks = reply.blocks.map(({ wire: _, residue: __, ...block }) => block);
  const wanted = texts.map((text) => ({ type: 'text', text }));
  expect(blocks as unknown[], where).toEqual(wanted);
  return true;
}
