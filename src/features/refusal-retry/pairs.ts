/** Calls and results that a vendor says do not pair: the calls go, the results become words. */

import { editNode, mapUnchanged, withParts } from '../../conversation/edit.ts';
import type { Block, Conversation, Turn } from '../../conversation/types.ts';
import type { NoteStripped } from './thinking.ts';

/**
 * Without the calls whose ids stand in the vendor's words. Where none of them does (Gemini and Zhipu
 * name nothing), without any: a history in words still answers, one that is refused never will.
 */
export function withoutPairs(
  conversation: Conversation,
  words: string,
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
  const named = idsNamedIn(words, ids);
  const gone = named.size > 0 ? named : ids;
  const turns = mapUnchanged(conversation.turns, (turn): Turn | undefined => {
    const blocks = mapUnchanged(turn.blocks, (block): Block | readonly Block[] | undefined => {
      const id = callIdOf(block);
      if (id === undefined || !gone.has(id)) return block;
      return block.type === 'tool-result' ? resultAsText(block) : undefined;
    });
    if (blocks === turn.blocks) return turn;
    // Reasoning that led to nothing but the call goes with it: no vendor takes it alone.
    const silent = blocks.every((block) => block.type === 'reasoning');
    if (silent) return undefined;
    return withoutToolRole(editNode(turn, { blocks }));
  });
  stripped('/messages', `${gone.size} calls: ${[...gone].slice(0, 5).join(', ')}`);
  return withParts(conversation, { turns });
}

function callIdOf(block: Block): string | undefined {
  if (block.type === 'tool-call') return block.id;
  return block.type === 'tool-result' ? block.callId : undefined;
}

/** What may stand around an id, and between several of them. */
const SEPARATORS = /[\s,;`'"“”‘’()[\]{}]+/;
const PLAIN_ID = /[\w-]+/g;
/** Ids of odd characters, which may stand in words in any way, are looked for one by one; so many at most. */
const MAX_ODD_IDS = 200;

/** The ids that stand in the text as words of their own. Reads it once, however many they are. */
function idsNamedIn(text: string, ids: ReadonlySet<string>): ReadonlySet<string> {
  const named = new Set<string>();
  const look = (word: string) => {
    if (ids.has(word)) named.add(word);
  };
  for (const [word] of text.matchAll(PLAIN_ID)) look(word);
  for (const word of text.split(SEPARATORS)) {
    look(word);
    // The end of a sentence or of a path.
    look(word.endsWith('.') || word.endsWith(':') ? word.slice(0, -1) : word);
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

/** A result as the user's words; its media stay. */
function resultAsText(result: Block & { type: 'tool-result' }): readonly Block[] {
  const said = result.content.flatMap((block) => ('text' in block ? [block.text ?? ''] : []));
  const head = result.isError ? 'Error of an earlier tool call' : 'Result of an earlier tool call';
  const text = `${head}: ${said.join('\n') || '(no content)'}`;
  return [{ type: 'text', text }, ...result.content.filter((block) => block.type === 'media')];
}

/** What was a message of the role `tool`, or an item of its own kind, is a user's message now. */
function withoutToolRole(turn: Turn): Turn {
  if (turn.role !== 'user' || turn.blocks.some((block) => block.type === 'tool-result'))
    return turn;
  const { residue: _, ...rest } = turn;
  return rest;
}
