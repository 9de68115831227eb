/** Types of the grammars of leaked calls, and the lexicon built from their words. */

/**
 * The meaning of a piece of markup, independent of the vendor: `wrap` encloses calls; `call` is one call
 * (its name is in the tag or is the text after it); `box` is either, depending on what follows; `arg` is one
 * argument; `key`/`value` are an argument in two tags; `args` comes before JSON arguments; `name` holds a
 * call's name; `fence` separates header and body; `header` begins a header; `stop` ends a message; `channel`
 * switches between thinking and answer; `node` is a key of nested arguments; `skip` is ignored; `python` comes
 * before Python calls.
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
 * How the word is written: `plain` `<word …>` (also with a namespace, `<ns:word>`); `dsml`
 * `<｜DSML｜word …>`; `bars` `<|word|>` or `<｜word｜>`; `xtml` `<|open|>word …<|sep|>`;
 * `m3` `]<]minimax[>[<word …>`; `square` `[WORD]`; `half` `<|word>` and `<word|>`; `bare` the word itself.
 */
export type MarkupNotation = 'plain' | 'dsml' | 'bars' | 'xtml' | 'm3' | 'square' | 'half' | 'bare';

export interface MarkupWord {
  readonly notation: MarkupNotation;
  /** The word between the marks; `▁` counts as `_`. */
  readonly word: string;
  readonly role: MarkupRole;
  readonly family: string;
  /** A closer with its own word (`tool_call_end`) instead of a slash. */
  readonly closes?: true;
  /**
   * Whether it may begin a leak: `yes`; `named` only with a name in the tag, or with a
   * tool's name in another attribute or in a `<name>` right after it; `start` only at the beginning of
   * the reply.
   */
  readonly opens?: 'yes' | 'named' | 'start';
  /** Other XML uses the word too, so it proves nothing alone. */
  readonly common?: true;
  /** The attribute that holds the name (of the tool, of the argument). */
  readonly nameIn?: string;
  /** For `channel`: the channel that begins. */
  readonly channel?: 'reasoning' | 'text';
}

export interface Lexicon {
  readonly words: ReadonlyMap<string, MarkupWord>;
  /** All prefixes of all words, to recognise an incomplete one. */
  readonly prefixes: ReadonlySet<string>;
  /** M3: any other tag with M3's mark is an argument's key. */
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
