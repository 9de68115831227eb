/** Decides whether a leak begins at a position of a text, also where the reply breaks off. */

import type { Opener } from '../block/block.ts';
import { attribute, type Lexeme, lex } from '../block/lex.ts';
import type { Search } from '../block/reading.ts';
import type { Lexicon } from '../grammars.ts';
import type { ToolIndex } from '../tool-index.ts';
import { JSON_OPENINGS, matchOpening } from '../values/calls-in-json.ts';
import type { Repairs } from '../values/repair-json.ts';
import type { CodeMask } from './code-mask.ts';
import type { TextOut } from './text-out.ts';

export interface OpeningContext {
  /** Only white space comes before it in the reply. */
  readonly start: boolean;
  /** The character before it; 0 at the start. */
  readonly previous: number;
  /** Only white space comes before it on its line. */
  readonly lineStart: boolean;
}

export interface OpeningRules {
  readonly lexicon: Lexicon;
  /** The words of whole calls, not only those that begin one. */
  readonly all: Lexicon;
  readonly tools: ToolIndex;
  /** Whether calls written as JSON count. They do not if the client asked for a JSON answer. */
  readonly json: boolean;
  readonly results: boolean;
  readonly pythonic: boolean;
}

export type OpeningMatch =
  | { readonly type: 'opener'; readonly opener: Opener }
  /** A closer, or a token that ends something; the caller knows what is open. */
  | { readonly type: 'closer'; readonly lexeme: Lexeme }
  /** It is quoted: the rest of the line is no leak either. */
  | { readonly type: 'quoted' }
  | 'partial'
  | undefined;

const QUOTES = new Set([...'"\'`“‘「『«(=\\/_'].map((char) => char.charCodeAt(0)));
const isAscii = (code: number) =>
  (code >= 0x61 && code <= 0x7a) ||
  (code >= 0x41 && code <= 0x5a) ||
  (code >= 0x30 && code <= 0x39);

/** What begins at `at`, a character at which {@link CodeMask} stopped. */
export function openingAt(
  text: string,
  at: number,
  place: OpeningContext,
  rules: OpeningRules,
): OpeningMatch {
  const found = matchAt(text, at, place, rules);
  if (!QUOTES.has(place.previous) || found === undefined || found === 'partial') return found;
  return { type: 'quoted' };
}

function matchAt(
  text: string,
  at: number,
  place: OpeningContext,
  rules: OpeningRules,
): OpeningMatch {
  const code = text.charCodeAt(at);
  if (code === 0x7b) return jsonAt(text, at, place, rules);
  const found = lex(text, at, rules.lexicon);
  if (found === 'partial') return 'partial';
  if (found !== undefined) return tagAt(text, found, place, rules);
  if (code !== 0x5b || !place.start) return undefined;
  const json = jsonAt(text, at, place, rules);
  return json ?? pythonAt(text, at, rules);
}

function tagAt(
  text: string,
  lexeme: Lexeme,
  place: OpeningContext,
  rules: OpeningRules,
): OpeningMatch {
  const { word, closing } = lexeme;
  if (closing || word.role === 'stop') return { type: 'closer', lexeme };
  // A tag right after a word is ordinary markup, unless only models write it.
  if (word.notation === 'plain' && word.role !== 'box' && isAscii(place.previous)) return undefined;
  switch (word.opens) {
    case 'yes':
      break;
    case 'named': {
      if (attribute(lexeme, word.nameIn ?? 'name')) break;
      // Other XML writes this too, so only a tool's name proves it.
      const given = attribute(lexeme, 'name');
      const name = given ? { text: given } : nameBehind(text, lexeme.end, rules.all);
      if (name === 'partial') return 'partial';
      if (name === undefined || rules.tools.resolve(name.text) === undefined) return undefined;
      break;
    }
    case 'start':
      if (!place.start) return undefined;
      break;
    default:
      return undefined;
  }
  return { type: 'opener', opener: { type: 'tag', lexeme, lineStart: place.lineStart } };
}

/** Maximum white space between a call's tag and its name's. */
const MAX_GAP = 80;
/** A name up to the next tag. */
const TAGGED_NAME = /\s{0,80}([\w.:/-]{0,128})\s{0,80}(<)?/y;

/** The name in a `<name>` right after a call's tag that holds none. */
function nameBehind(
  text: string,
  from: number,
  lexicon: Lexicon,
): { readonly text: string } | 'partial' | undefined {
  let at = from;
  while (at - from < MAX_GAP && /\s/.test(text[at] ?? '')) at++;
  if (at === text.length) return 'partial';
  const found = text[at] === '<' ? lex(text, at, lexicon) : undefined;
  if (found === 'partial') return 'partial';
  if (found === undefined || found.word.role !== 'name' || found.closing) return undefined;
  TAGGED_NAME.lastIndex = found.end;
  const [whole, name = '', tag] = TAGGED_NAME.exec(text)!;
  if (tag !== undefined) return { text: name };
  return found.end + whole.length === text.length ? 'partial' : undefined;
}

const NAME = /[\w.:/-]{0,128}/y;

function jsonAt(
  text: string,
  at: number,
  place: OpeningContext,
  rules: OpeningRules,
): OpeningMatch {
  // Every opening continues with a quotation mark, a brace or white space.
  const next = text.charCodeAt(at + 1);
  if (next > 0x22 && next !== 0x7b && next < 0x80) return undefined;
  if (next === 0x7b && text.charCodeAt(at) === 0x7b) return undefined;
  let partial = false;
  for (const opening of JSON_OPENINGS) {
    if (opening.kind === 'result' ? !rules.results : !rules.json) continue;
    if (opening.kind === 'bare' && !place.start) continue;
    const end = matchOpening(text, at, opening);
    if (end === 'partial') partial = true;
    else if (end >= 0) {
      if (opening.named) {
        NAME.lastIndex = end;
        const name = NAME.exec(text)![0];
        if (end + name.length === text.length) return name.length < 128 ? 'partial' : undefined;
        const known = rules.tools.resolve(name) !== undefined || name.endsWith('parallel');
        if (text[end + name.length] !== '"' || !known) continue;
      }
      return { type: 'opener', opener: { type: 'json', kind: opening.kind } };
    }
  }
  return partial ? 'partial' : undefined;
}

/** `[fn(`: Llama 4's calls. */
function pythonAt(text: string, at: number, { tools, pythonic }: OpeningRules): OpeningMatch {
  if (!pythonic || tools.size === 0) return undefined;
  const found = /^\[\s{0,8}([A-Za-z_][\w.-]{0,128})?(\()?/.exec(text.slice(at, at + 150))!;
  const [whole, name = '', bracket] = found;
  if (at + whole.length === text.length && bracket === undefined) return 'partial';
  if (bracket === undefined || tools.resolve(name) === undefined) return undefined;
  return { type: 'opener', opener: { type: 'python' } };
}

/** The sentence continues: a word or a comma comes before the position. */
const SENTENCE_CONTINUES = /(?:[\p{L}\p{N},;、，；–—-])$/u;

/**
 * Is markup at this position shown rather than used: inside a sentence, a list, a table or indented code?
 * A real call is on a separate line or directly follows the text.
 */
export function standsAmongWords(mask: CodeMask, out: TextOut): boolean {
  if (mask.listed) return true;
  if (mask.lineStart) return mask.indented && (out.spoken || !out.isBlank);
  if (mask.previous !== 0x20 && mask.previous !== 0x09) return false;
  return SENTENCE_CONTINUES.test(out.words.trimEnd().slice(-2));
}

/**
 * `same`: all held text may pass unchanged; `held`: it has to wait; `changed`: the segments replace it;
 * `open` (from `finish` only): the text ends with calls, and what follows in the reply decides whether they
 * are real; see `TextScanner.decide`.
 */
export type ScanVerdict = 'same' | 'held' | 'changed' | 'open';

export interface ScanRules extends OpeningRules {
  /** All words of the active families; `lexicon` holds those that may begin a leak. */
  readonly all: Lexicon;
  /** The text is thinking until `</think>`, because the opening tag was in the prompt. */
  readonly unopened: boolean;
  readonly repairs: Repairs;
  readonly search: Search;
  /** Does the request contain this markup word for word? */
  isQuotation(markup: string): boolean;
}

/** Is an opener at the end of the reply a leak that was cut off, rather than text that mentions it? */
export function isLoneOpener(opener: Opener, raw: string): boolean {
  if (opener.type !== 'tag') return false;
  if (opener.lexeme.word.notation === 'bare') return raw.includes('to=functions.');
  return opener.lexeme.word.notation !== 'plain' || opener.lineStart;
}

/** Is this end of the reply the beginning of an opener? */
export function beginsOpener(pending: string, lineStart: boolean): boolean {
  if (!/^[<[\]]/.test(pending)) return false;
  if (/^<\/?[|｜]/.test(pending)) return pending.length >= 4 && !/^<[|｜](?:im|e)/.test(pending);
  // A whole tag without a name is text.
  return pending.length >= 7 && lineStart && !/^<\w+>\s*$/.test(pending);
}

/** The family of an opener that was cut off. */
export function familyOf(pending: string): string {
  if (pending.includes('DSML')) return 'dsml';
  if (pending.startsWith(']')) return 'minimax-m3';
  if (pending.startsWith('[')) return 'mistral';
  return /[｜▁]/.test(pending) ? 'deepseek' : 'unknown';
}
