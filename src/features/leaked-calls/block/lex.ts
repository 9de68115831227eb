/** Reads one piece of markup at a position, or tells that more text is needed. */

import { keyOf, type Lexicon, type MarkupNotation, type MarkupWord } from '../grammars.ts';

export interface Lexeme {
  readonly word: MarkupWord;
  readonly closing: boolean;
  /** The raw text after the word in the tag. */
  readonly attributes: string;
  /** `<x/>`: opened and closed. */
  readonly empty: boolean;
  /** The index after it. */
  readonly end: number;
}

/** `partial`: the text ends too early to decide. */
export type LexResult = Lexeme | 'partial' | undefined;

/** Maximum length of a tag. Bounds the text that is held back, and every scan inside a tag. */
const MAX_TAG = 400;
const M3_MARK = ']<]minimax[>[';

const LESS = 0x3c;
const GREATER = 0x3e;
const SLASH = 0x2f;
const SQUARE_OPEN = 0x5b;
const SQUARE_CLOSE = 0x5d;

const isSpace = (code: number) => code === 0x20 || code === 0x0a || code === 0x0d || code === 0x09;
const isBar = (code: number) => code === 0x7c || code === 0xff5c;
const isWordChar = (code: number) =>
  (code >= 0x61 && code <= 0x7a) ||
  (code >= 0x41 && code <= 0x5a) ||
  (code >= 0x30 && code <= 0x39) ||
  code === 0x5f ||
  code === 0x2581 ||
  code === 0x3a;

/** The markup at `at` according to the lexicon. Reads at most {@link MAX_TAG} characters. */
export function lex(text: string, at: number, lexicon: Lexicon): LexResult {
  switch (text.charCodeAt(at)) {
    case LESS:
      return lexAngle(text, at, at, lexicon, false);
    case SQUARE_CLOSE:
      return lexM3(text, at, lexicon);
    case SQUARE_OPEN:
      return lexSquare(text, at, lexicon);
    default:
      return lexFixed(text, at, lexicon);
  }
}

/** Marks with a fixed text: headers of Harmony without their tokens, and Kimi's thinking. */
const FIXED: readonly (readonly [mark: string, key: string, closing: boolean])[] = [
  ['commentary to=', keyOf('bare', 'commentary to='), false],
  ['assistantcommentary to=', keyOf('bare', 'assistantcommentary to='), false],
  ['◁think▷', keyOf('plain', 'think'), false],
  ['◁/think▷', keyOf('plain', 'think'), true],
];

function lexFixed(text: string, at: number, { words }: Lexicon): LexResult {
  for (const [mark, key, closing] of FIXED) {
    const word = words.get(key);
    if (word === undefined) continue;
    if (text.startsWith(mark, at)) return bareLexeme(word, closing, at + mark.length);
    if (text.length - at < mark.length && mark.startsWith(text.slice(at))) return 'partial';
  }
  return undefined;
}

const bareLexeme = (word: MarkupWord, closing: boolean, end: number): Lexeme => ({
  word,
  closing,
  attributes: '',
  empty: false,
  end,
});

function lexSquare(text: string, at: number, { words, prefixes }: Lexicon): LexResult {
  let i = at + 1;
  const closing = text.charCodeAt(i) === SLASH;
  if (closing) i++;
  if (i < text.length && !isWordChar(text.charCodeAt(i))) return undefined;
  const start = i;
  while (i < text.length && isWordChar(text.charCodeAt(i))) i++;
  const key = keyOf('square', text.slice(start, i));
  if (i === text.length) return prefixes.has(key) ? 'partial' : undefined;
  const word = words.get(key);
  if (word === undefined || text.charCodeAt(i) !== SQUARE_CLOSE) return undefined;
  return bareLexeme(word, closing || word.closes === true, i + 1);
}

function lexM3(text: string, at: number, lexicon: Lexicon): LexResult {
  if (text.startsWith(M3_MARK, at)) {
    const tag = at + M3_MARK.length;
    if (tag === text.length) return 'partial';
    return text.charCodeAt(tag) === LESS ? lexAngle(text, at, tag, lexicon, true) : undefined;
  }
  const rest = text.length - at;
  return rest < M3_MARK.length && M3_MARK.startsWith(text.slice(at)) ? 'partial' : undefined;
}

/** Between the bars of DeepSeek's tags, and of GigaChat's. */
const MARKS: readonly string[] = ['DSML', 'GCML'];
const MARKED: ReadonlySet<number> = new Set([0x44, 0x47]);
/** Before the words of Claude, Muse and K2 Horizon; not part of them. */
const NAMESPACES: readonly string[] = ['antml:', 'atem:', 'ifm|'];

/** Reads a tag whose `<` is at `tag`; the whole markup begins at `at`. */
function lexAngle(text: string, at: number, tag: number, lexicon: Lexicon, m3: boolean): LexResult {
  let i = tag + 1;
  let slash = text.charCodeAt(i) === SLASH;
  if (slash) i++;
  const first = text.charCodeAt(i);
  if (i < text.length && !isBar(first) && !isSpace(first) && !isWordChar(first)) return undefined;
  let bars = 0;
  const skip = (limit: number) => {
    const from = i;
    while (i < text.length && i - from < limit) {
      const code = text.charCodeAt(i);
      if (isBar(code)) bars++;
      else if (!isSpace(code)) break;
      i++;
    }
  };
  skip(6);
  if (i === text.length) return 'partial';
  let marked = false;
  // The slash may stand between the marks, and the marks on one side may be missing.
  if (!slash && text.charCodeAt(i) === SLASH) {
    slash = true;
    i++;
    skip(6);
    if (i === text.length) return 'partial';
  }
  if (bars > 0 || MARKED.has(text.charCodeAt(i))) {
    const mark = text.slice(i, i + 4);
    if (MARKS.includes(mark)) {
      i += 4;
      skip(8);
      if (i === text.length) return 'partial';
      if (bars === 0) return undefined;
      marked = true;
      if (!slash && text.charCodeAt(i) === SLASH) {
        slash = true;
        if (++i === text.length) return 'partial';
      }
    } else if (mark.length < 4 && MARKS.some((each) => each.startsWith(mark))) return 'partial';
  }
  const start = i;
  while (i < text.length && isWordChar(text.charCodeAt(i))) i++;
  let name = text.slice(start, i);
  if (name === 'ifm' && text.charCodeAt(i) === 0x7c) {
    const own = ++i;
    while (i < text.length && isWordChar(text.charCodeAt(i))) i++;
    name = text.slice(own, i);
  }
  if (name.includes('▁')) name = name.replaceAll('▁', '_');
  if (name.startsWith('antml:')) name = name.slice(6);
  else if (name.startsWith('atem:')) name = name.slice(5);
  const setting: MarkupNotation = m3 ? 'm3' : marked ? 'dsml' : bars > 0 ? 'bars' : 'plain';
  if (setting === 'bars' && (name === 'open' || name === 'close') && i < text.length) {
    return lexXtml(text, at, i, name === 'close', lexicon);
  }
  const half = lexHalf(text, i, bars, name, lexicon);
  if (half !== undefined) return half;
  if (i === text.length) {
    if (i - at > MAX_TAG) return undefined;
    if (m3 && lexicon.nodes) return 'partial';
    if (setting === 'bars' && ('open'.startsWith(name) || 'close'.startsWith(name))) {
      return 'partial';
    }
    if (setting === 'plain' && NAMESPACES.some((each) => each.startsWith(name))) return 'partial';
    const known =
      lexicon.prefixes.has(keyOf(setting, name)) ||
      (bars < 2 && lexicon.prefixes.has(keyOf('half', name))) ||
      (setting === 'bars' && lexicon.prefixes.has(keyOf('dsml', name))) ||
      (setting === 'plain' && suffixed(name, lexicon) !== undefined);
    return known ? 'partial' : undefined;
  }
  const word =
    lexicon.words.get(keyOf(setting, name)) ??
    (setting === 'plain' ? suffixed(name, lexicon) : undefined) ??
    (m3 && name !== '' ? nodeOf(name, lexicon) : undefined) ??
    // The mark lost its letters: `<｜parameter name="…">`.
    (setting === 'bars' && !isBar(text.charCodeAt(i))
      ? lexicon.words.get(keyOf('dsml', name))
      : undefined);
  if (word === undefined) return undefined;
  return lexTagEnd(text, at, i, word, slash || word.closes === true);
}

/** Gemma's marks have a bar on one side: `<|word>` opens, and `<word|>` closes. `i` is the index after the word. */
function lexHalf(text: string, i: number, bars: number, name: string, lexicon: Lexicon): LexResult {
  if (bars > 1 || i === text.length) return undefined;
  const closing = bars === 0;
  const end = closing ? i + 1 : i;
  // Before the word is looked up: most tags have no bar.
  if (closing && !isBar(text.charCodeAt(i))) return undefined;
  const word = lexicon.words.get(keyOf('half', name));
  if (word === undefined) return undefined;
  if (end === text.length) return 'partial';
  if (text.charCodeAt(end) !== GREATER) return undefined;
  return bareLexeme(word, closing, end + 1);
}

/** Hunyuan's tokens end in a suffix of the checkpoint: `<tool_calls:opensource>`, `<arg_key:6124c78e>`. */
function suffixed(name: string, { words }: Lexicon): MarkupWord | undefined {
  const colon = name.indexOf(':');
  if (colon < 0) return undefined;
  const word = words.get(keyOf('plain', name.slice(0, colon)));
  return word?.suffixed ? word : undefined;
}

/** Any other tag with M3's mark is an argument's (or a nested member's) key. */
function nodeOf(name: string, { nodes }: Lexicon): MarkupWord | undefined {
  if (!nodes) return undefined;
  return { notation: 'm3', word: name, role: 'node', family: 'minimax-m3' };
}

/** Reads from the end of the word to the tag's `>`. */
function lexTagEnd(
  text: string,
  at: number,
  from: number,
  word: MarkupWord,
  closing: boolean,
): LexResult {
  let i = from;
  if (word.notation === 'bars') {
    let bars = 0;
    while (i < text.length && (isBar(text.charCodeAt(i)) || isSpace(text.charCodeAt(i)))) {
      if (isBar(text.charCodeAt(i))) bars++;
      i++;
    }
    if (i === text.length) return i - at > MAX_TAG ? undefined : 'partial';
    if (bars === 0 || text.charCodeAt(i) !== GREATER) return undefined;
    return bareLexeme(word, closing, i + 1);
  }
  const code = text.charCodeAt(i);
  if (code !== GREATER && code !== 0x3d && code !== SLASH && !isSpace(code) && !isBar(code)) {
    return undefined;
  }
  const equals = word.nameIn === '=';
  let quote = 0;
  for (const end = Math.min(text.length, at + MAX_TAG); i < end; i++) {
    const here = text.charCodeAt(i);
    if (quote !== 0) {
      if (here === quote) quote = 0;
    } else if ((here === 0x22 || here === 0x27) && !equals) quote = here;
    else if (here === GREATER) {
      const raw = text.slice(from, i);
      const empty = !closing && raw.endsWith('/');
      return { word, closing, attributes: empty ? raw.slice(0, -1) : raw, empty, end: i + 1 };
    }
  }
  return text.length - at < MAX_TAG ? 'partial' : undefined;
}

const SEPARATOR = '<|sep|>';

/** Reads `<|open|>word attributes<|sep|>`; `from` is the index after `open` or `close`. */
function lexXtml(
  text: string,
  at: number,
  from: number,
  closing: boolean,
  lexicon: Lexicon,
): LexResult {
  let i = from;
  const bars = i;
  while (i < text.length && i - bars < 8 && isBar(text.charCodeAt(i))) i++;
  if (i === text.length) return 'partial';
  if (text.charCodeAt(i) !== GREATER) return undefined;
  const start = ++i;
  while (i < text.length && isWordChar(text.charCodeAt(i))) i++;
  const key = keyOf('xtml', text.slice(start, i));
  if (i === text.length) return lexicon.prefixes.has(key) ? 'partial' : undefined;
  const word = lexicon.words.get(key);
  if (word === undefined) return undefined;
  const length = text.slice(i, at + MAX_TAG + SEPARATOR.length).indexOf(SEPARATOR);
  const end = i + length;
  if (length < 0 || end - at > MAX_TAG) {
    return length < 0 && text.length - at < MAX_TAG ? 'partial' : undefined;
  }
  const attributes = text.slice(i, end);
  return { word, closing, attributes, empty: false, end: end + SEPARATOR.length };
}

/** Patterns by attribute name; grammars have few names. */
const PATTERNS = new Map<string, RegExp>();

/**
 * The value of an attribute, or undefined. The name `=` means the `<word=value>` form. XTML escapes quotes
 * and ampersands in attributes; `&quot;` is decoded before `&amp;`.
 */
export function attribute(lexeme: Lexeme, name: string): string | undefined {
  const { attributes, word } = lexeme;
  if (attributes === '') return undefined;
  const bare = attributes.trim();
  if (bare.startsWith('=')) {
    if (name === 'string' || name === 'type') return undefined;
    const value = bare.slice(1).trim();
    const quote = value[0];
    const isQuoted = (quote === '"' || quote === "'") && value.length > 1 && value.endsWith(quote);
    return isQuoted ? value.slice(1, -1) : value;
  }
  if (name === '=') return undefined;
  let pattern = PATTERNS.get(name);
  if (pattern === undefined) {
    pattern = new RegExp(`(?:^|[\\s|｜])${name}\\s*=\\s*(?:"([^"]*)"|'([^']*)'|([^\\s"'>]+))`);
    PATTERNS.set(name, pattern);
  }
  const found = pattern.exec(attributes);
  const value = found?.[1] ?? found?.[2] ?? found?.[3];
  return word.notation === 'xtml'
    ? value?.replaceAll('&quot;', '"').replaceAll('&amp;', '&')
    : value;
}
