/** Recognises markup that the model only repeats from the conversation. */

import type { Block, Turn } from '../../../conversation/types.ts';

/** Maximum cost of all comparisons of one reply, in characters; beyond it everything counts as a quotation. */
const MAX_WORK = 2 * 1024 * 1024;
/** Each occurrence that is compared costs this many characters in addition. */
const OCCURRENCE_WORK = 16;
/** Maximum characters of markup that are compared; the beginning of a long call is enough. */
const MAX_COMPARED = 100_000;

/** A word of the markup, used to find candidates. */
const WORD = /[A-Za-z_][\w▁.:-]{3,63}/;
/** Closers at the end, which a model may add or lose. */
const CLOSERS = /(?:\s*(?:<[/|｜]|\[\/|\]<\]minimax\[>\[<\/)[^<>]{0,60}>){1,6}\s*$/;
const MAX_CLOSERS = 400;

/**
 * Returns a test: does the text of users or tools in these turns contain this markup word for word? White
 * space is ignored, and JSON and HTML escapes are decoded. Searches for one word of the markup and compares
 * from there; the cost of all comparisons is bounded.
 */
export function quotationsIn(turns: readonly Turn[]): (markup: string) => boolean {
  let texts: readonly string[] | undefined;
  let left = MAX_WORK;
  return (markup) => {
    texts ??= textsOf(turns);
    if (texts.length === 0) return false;
    const end = markup.length - MAX_CLOSERS;
    const tail = markup.slice(Math.max(0, end));
    const closers = CLOSERS.exec(tail);
    const core = closers === null ? markup : markup.slice(0, markup.length - closers[0].length);
    const word = WORD.exec(core.slice(0, MAX_COMPARED))?.[0];
    if (word === undefined) return false;
    const wanted = core.slice(core.indexOf(word), MAX_COMPARED);
    for (const text of texts) {
      for (let at = text.indexOf(word); at >= 0; at = text.indexOf(word, at + 1)) {
        const read = sameFrom(wanted, text, at, left);
        left -= OCCURRENCE_WORK + read.work;
        if (read.same || left <= 0) return true;
      }
    }
    return false;
  };
}

/** Texts of users and of tool results, without those of the model. */
function textsOf(turns: readonly Turn[]): readonly string[] {
  const texts: string[] = [];
  const add = (block: Block) => {
    if (block.type === 'text' && block.text !== '') texts.push(block.text);
  };
  for (const { role, blocks } of turns) {
    for (const block of blocks) {
      if (block.type === 'tool-result') for (const part of block.content) add(part);
      else if (role === 'user') add(block);
    }
  }
  return texts;
}

/** Does the text contain all of `wanted` from `at` on? */
function sameFrom(
  wanted: string,
  text: string,
  at: number,
  most: number,
): { readonly same: boolean; readonly work: number } {
  const a = new LetterReader(wanted, 0);
  const b = new LetterReader(text, at);
  for (let work = 0; work < most; work++) {
    const char = a.next();
    if (char === 0) return { same: true, work };
    if (char !== b.next()) return { same: false, work };
  }
  return { same: true, work: most };
}

const ENTITY = /&(?:lt|gt|amp|quot|apos|#39|#x27|#34);/iy;
const ENTITIES: Readonly<Record<string, string>> = {
  lt: '<',
  gt: '>',
  amp: '&',
  quot: '"',
  apos: "'",
  '#39': "'",
  '#x27': "'",
  '#34': '"',
};

/** Reads a text without white space and with decoded escapes. */
class LetterReader {
  constructor(
    readonly text: string,
    private at: number,
  ) {}

  /** The code of the next character; 0 at the end. */
  next(): number {
    const { text } = this;
    while (this.at < text.length) {
      const code = text.charCodeAt(this.at++);
      if (code === 0x5c) {
        const escaped = this.#escaped();
        if (escaped !== 0) return escaped;
      } else if (code === 0x26) {
        ENTITY.lastIndex = this.at - 1;
        const found = ENTITY.exec(text)?.[0];
        if (found === undefined) return code;
        this.at += found.length - 1;
        return ENTITIES[found.slice(1, -1).toLowerCase()]!.charCodeAt(0);
      } else if (code > 0x20 && code !== 0xa0) return code;
    }
    return 0;
  }

  /** The character that an escape stands for; 0 if it is white space, or if there is no escape. */
  #escaped(): number {
    const next = this.text.charCodeAt(this.at);
    if (next === 0x6e || next === 0x74 || next === 0x72) {
      this.at++;
      return 0;
    }
    if (next !== 0x75) return 0;
    const digits = this.text.slice(this.at + 1, this.at + 5);
    if (!/^[0-9a-fA-F]{4}$/.test(digits)) return 0;
    this.at += 5;
    const code = Number.parseInt(digits, 16);
    return code > 0x20 ? code : 0;
  }
}
