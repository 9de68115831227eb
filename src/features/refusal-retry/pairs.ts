/** Removes calls that a vendor could not pair, and turns their results into user text. */

import { mapBlocks, mapUnchanged, withParts } from '../../conversation/edit.ts';
import type { Block, Conversation, Turn } from '../../conversation/types.ts';
import type { NoteStripped } from './thinking.ts';

/**
 * Removes the calls whose ids the error message names, or all calls if it names none (Gemini and Zhipu
 * give no ids). A history in plain text can still be answered.
 * @param message the vendor's error message
 */
export function withoutPairs(
  conversation: Conversation,
  message: string,
  stripped: NoteStripped,
): Conversation {
  const ids = new Set<string>();
  for (const turn of conversation.turns) {
    for (const block of turn.blocks) {
      const id = callIdOf(block);
      if (id !== undefined) ids.add(id);
    }
  }
  if (ids.size === 0) return conversation;
  const named = idsNamedIn(message, ids);
  const removed = named.size > 0 ? named : ids;
  const turns = mapUnchanged(conversation.turns, (turn): Turn | undefined => {
    const left = mapBlocks(turn, (block) => {
      const id = callIdOf(block);
      if (id === undefined || !removed.has(id)) return block;
      return block.type === 'tool-result' ? resultAsText(block) : undefined;
    });
    if (left === turn) return turn;
    // Reasoning that led only to the call goes too: no vendor accepts it alone.
    const onlyReasoning = left.blocks.every((block) => block.type === 'reasoning');
    return onlyReasoning ? undefined : withoutToolRole(left);
  });
  stripped('/messages', `${removed.size} calls: ${[...removed].slice(0, 5).join(', ')}`);
  return withParts(conversation, { turns });
}

function callIdOf(block: Block): string | undefined {
  if (block.type === 'tool-call') return block.id;
  return block.type === 'tool-result' ? block.callId : undefined;
}

/** Characters that separate ids from other text. */
const SEPARATORS = /[\s,;`'"“”‘’()[\]{}]+/;
const PLAIN_ID = /[\w-]+/g;
/** Ids with other characters are searched one by one; this is the limit. */
const MAX_ODD_IDS = 200;

/** The ids that occur in the text as separate words. Reads the text once, however many ids there are. */
function idsNamedIn(text: string, ids: ReadonlySet<string>): ReadonlySet<string> {
  const named = new Set<string>();
  const check = (word: string) => {
    if (ids.has(word)) named.add(word);
  };
  for (const [word] of text.matchAll(PLAIN_ID)) check(word);
  for (const word of text.split(SEPARATORS)) {
    check(word);
    // A full stop or colon may follow the id.
    check(word.endsWith('.') || word.endsWith(':') ? word.slice(0, -1) : word);
  }
  let odd = 0;
  for (const id of ids) {
    if (named.has(id) || /^[\w-]+$/.test(id) || id === '') continue;
    if (++odd > MAX_ODD_IDS) break;
    if (occursAlone(text, id)) named.add(id);
  }
  return named;
}

function occursAlone(text: string, id: string): boolean {
  for (let at = text.indexOf(id); at >= 0; at = text.indexOf(id, at + id.length)) {
    if (!isIdPart(text[at - 1]) && !isIdPart(text[at + id.length])) return true;
  }
  return false;
}

const isIdPart = (char: string | undefined) => char !== undefined && /[\w-]/.test(char);

/** A result as text, followed by its media. */
function resultAsText(result: Block & { type: 'tool-result' }): readonly Block[] {
  const texts = result.content.flatMap((block) => ('text' in block ? [block.text ?? ''] : []));
  const head = result.isError ? 'Error of an earlier tool call' : 'Result of an earlier tool call';
  const text = `${head}: ${texts.join('\n') || '(no content)'}`;
  return [{ type: 'text', text }, ...result.content.filter((block) => block.type === 'media')];
}

/** Drops the wire form of a tool message or item that has become a user message. */
function withoutToolRole(turn: Turn): Turn {
  if (turn.role !== 'user' || turn.blocks.some((block) => block.type === 'tool-result'))
    return turn;
  const { residue: _, ...rest } = turn;
  return rest;
}
