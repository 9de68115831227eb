/** Detects the language for the texts of the conversation tools where none is configured. */

import type { Block, Conversation, Turn } from '../../conversation/types.ts';
import type { Locale } from './texts.ts';

/** Characters of a text that are read. */
const SAMPLE = 4000;
/** Instructions with fewer letters do not decide the language. */
const ENOUGH = 20;
const LETTERS = /\p{L}/gu;
const HAN = /\p{Script=Han}/gu;
const KANA = /[\p{Script=Hiragana}\p{Script=Katakana}]/gu;

const count = (text: string, which: RegExp) => text.match(which)?.length ?? 0;

/**
 * Chinese where at least a fifth of the letters are Chinese characters, since one of them says about as
 * much as four letters. Japanese text contains them too, but also kana.
 */
function languageOf(text: string): Locale {
  const han = count(text, HAN);
  return han > 0 && han * 5 >= count(text, LETTERS) && count(text, KANA) * 5 < han ? 'zh' : 'en';
}

const textOf = (blocks: readonly Block[]): string => {
  let text = '';
  for (const block of blocks) {
    if (block.type === 'text') text += `${block.text.slice(0, SAMPLE)}\n`;
    if (text.length >= SAMPLE) break;
  }
  return text.slice(0, SAMPLE);
};

const firstOf = (turns: readonly Turn[], role: (turn: Turn) => boolean): string => {
  for (const turn of turns) {
    if (!role(turn)) continue;
    const text = textOf(turn.blocks);
    if (text.trim() !== '') return text;
  }
  return '';
};

/**
 * The language of the instructions, otherwise of the first user message. Both stay the same over the
 * turns of a conversation, so that a vendor's prompt cache stays valid.
 */
export function conversationLanguage({
  system,
  turns,
}: Pick<Conversation, 'system' | 'turns'>): Locale {
  const own = textOf(system);
  const instructions =
    own.trim() !== ''
      ? own
      : firstOf(turns, ({ role }) => role === 'system' || role === 'developer');
  return languageOf(
    count(instructions, LETTERS) >= ENOUGH
      ? instructions
      : firstOf(turns, ({ role }) => role === 'user') || instructions,
  );
}
