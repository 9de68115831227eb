/** The session id that a client sends with a request. */

import { asBuffer } from '../../lib/bytes/bytes.ts';
import type { ReadonlyHeaders } from '../../lib/http/headers.ts';
import type { Block, Conversation } from '../types.ts';

// Headers of Claude Code, Codex (both spellings) and other agents.
const HEADERS = [
  'x-claude-code-session-id',
  'session_id',
  'session-id',
  'x-session-id',
  'conversation_id',
  'x-conversation-id',
  'x-opencode-session',
  'x-session-affinity',
] as const;

// Claude Code puts its session into the metadata of Messages: `user_<hash>_account_<id>_session_<uuid>`;
// newer versions send a JSON text with `session_id`.
const IN_METADATA = /_session_([0-9a-fA-F-]{36})|session_id\\?"\s*:\s*\\?"([0-9A-Za-z_-]{8,64})/;
const CACHE_KEY = /"prompt_cache_key"\s*:\s*"([^"\\]{1,100})"/;

const USER_ID = Buffer.from('"user_id"');
const PROMPT_CACHE_KEY = Buffer.from('"prompt_cache_key"');

/** The client's session id, '' when it sends none. Costs a search through the bytes. */
export function sessionOf(headers: ReadonlyHeaders, body: Uint8Array): string {
  for (const name of HEADERS) {
    const value = headers.get(name);
    if (value !== null && value !== '') return value.slice(0, 100);
  }
  const bytes = asBuffer(body);
  return near(bytes, USER_ID, IN_METADATA) ?? near(bytes, PROMPT_CACHE_KEY, CACHE_KEY) ?? '';
}

/** The first group of a pattern right after the last occurrence of a marker. */
function near(bytes: Buffer, marker: Buffer, pattern: RegExp): string | undefined {
  const at = bytes.lastIndexOf(marker);
  if (at < 0) return undefined;
  const found = pattern.exec(bytes.toString('latin1', at, at + 600));
  return found?.[1] ?? found?.[2];
}

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
