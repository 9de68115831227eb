/** The words that leaked calls are written in: what one entry of a grammar says, and the tables made of them. */

/**
 * What a piece of markup means to the engine, whatever vendor writes it so:
 * `wrap` stands around calls; `call` is one call (its name in the tag or as text behind it); `box` is
 * either, as what follows tells; `arg` is one argument; `key`/`value` are an argument in two tags;
 * `args` says that JSON arguments follow; `name` holds a call's name; `fence` separates header and
 * body; `header` begins a header; `stop` ends a message; `channel` switches between thinking and
 * answer; `skip` means nothing; `python` is followed by Python calls.
 */
export type MarkupRole =
  | 'wrap'
  | 'call'
  | 'box'
  | 'arg'
  | 'key'
  | 'value'
  | 'args'
  | 'name'
  | 'fence'
  | 'header'
  | 'stop'
  | 'channel'
  | 'node'
  | 'python'
  | 'skip';

/**
 * How the word is set: `plain` `<word …>` (also with a namespace, `<ns:word>`); `dsml`
 * `<｜DSML｜word …>`; `bars` `<|word|>` or `<｜word｜>`; `xtml` `<|open|>word …<|sep|>`;
 * `m3` `]<]minimax[>[<word …>`; `square` `[WORD]`; `bare` the word itself.
 */
export type MarkupNotation = 'plain' | 'dsml' | 'bars' | 'xtml' | 'm3' | 'square' | 'bare';

export interface MarkupWord {
  readonly notation: MarkupNotation;
  /** As written between the marks; `▁` reads as `_`. */
  readonly word: string;
  readonly role: MarkupRole;
  readonly family: string;
  /** A closer that has a word of its own (`tool_call_end`), not a slash. */
  readonly closes?: true;
  /**
   * It may begin a leak: `yes`; `named` only with a name in the tag; `start` only where the reply
   * begins.
   */
  readonly opens?: 'yes' | 'named' | 'start';
  /** Others' XML uses the word too: alone it proves nothing. */
  readonly common?: true;
  /** The attribute that holds the name (of the tool, of the argument). */
  readonly nameIn?: string;
  /** `channel`: which one begins. */
  readonly channel?: 'reasoning' | 'text';
}

export interface Lexicon {
  readonly words: ReadonlyMap<string, MarkupWord>;
  /** Every proper prefix of every word, to know what may still become one. */
  readonly prefixes: ReadonlySet<string>;
  /** M3: any other tag with its mark is an argument's key. */
  readonly nodes: boolean;
}

/** The key of a word in a lexicon. */
export const keyOf = (setting: MarkupNotation, word: string): string => `${setting} ${word}`;

export function lexicon(words: readonly MarkupWord[], nodes = false): Lexicon {
  const table = new Map<string, MarkupWord>();
  const prefixes = new Set<string>();
  for (const word of words) {
    const key = keyOf(word.notation, word.word);
    table.set(key, word);
    for (let n = word.notation.length + 1; n <= key.length; n++) prefixes.add(key.slice(0, n));
  }
  return { words: table, prefixes, nodes };
}
