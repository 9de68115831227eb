/** A name of a session for vendors: the same in each of its requests, and without a way back to whose it is. */

import type { Block, Conversation } from '../types.ts';

const MAX_CHARS = 4096;

/**
 * 32 hex digits. @param sessionId the client's own, of any length and script; '': what stands up to the user's first
 * message tells one session from another
 */
export function sessionKey(owner: string, sessionId: string, conversation: Conversation): string {
  const sign = sessionId === '' ? firstWords(conversation) : ['id', sessionId];
  const hasher = new Bun.CryptoHasher('sha256').update(JSON.stringify([owner, ...sign]));
  return hasher.digest('hex').slice(0, 32);
}

function firstWords({ system, turns }: Conversation): readonly string[] {
  const first = turns.findIndex(({ role }) => role === 'user');
  const leading = first < 0 ? turns.slice(0, 1) : turns.slice(0, first + 1);
  return [wordsOf(system), ...leading.map(({ blocks }) => wordsOf(blocks))];
}

function wordsOf(blocks: readonly Block[]): string {
  let words = '';
  for (const block of blocks) {
    if (words.length >= MAX_CHARS) break;
    if (block.type === 'text') words += `${block.text}\n`;
  }
  return words.slice(0, MAX_CHARS);
}
