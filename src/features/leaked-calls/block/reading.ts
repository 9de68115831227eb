/** The state of a block while it is read, and helpers that its readers share. */

import type { ArgumentPair, RawCall, TreeNode } from '../build-calls.ts';
import type { Lexicon } from '../grammars.ts';
import type { BracketScan } from '../values/json-scan.ts';
import type { Repairs } from '../values/repair-json.ts';
import { type Lexeme, lex } from './lex.ts';

/** `more`: more text is needed; `fail`: it is no leak, the text stays; `done`: see `calls`, `rest` is text. */
export type BlockState = 'more' | 'done' | 'fail';

/** The beginning of a block: markup, or JSON or Python calls, whose text is not consumed by the opener. */
export type Opener =
  | { readonly type: 'tag'; readonly lexeme: Lexeme; readonly lineStart: boolean }
  | { readonly type: 'json'; readonly kind: 'envelope' | 'bare' | 'result' }
  | { readonly type: 'python' };

/** What the reader expects next. */
export type ReadState =
  | 'outer'
  | 'name'
  | 'args'
  | 'body'
  | 'tagged-name'
  | 'key'
  | 'value'
  | 'json'
  | 'python'
  | 'gemma'
  | 'tree'
  | 'header'
  | 'discard'
  | 'tail';

export interface OpenCall {
  name: string | undefined;
  pairs: ArgumentPair[];
  json: string | undefined;
  malformed: boolean;
}

export interface OpenValue {
  readonly key: string | undefined;
  readonly lexeme: Lexeme;
  readonly as: 'string' | 'json' | 'schema';
}

/** What a block needs to know about the request and the reply. */
export interface BlockRules {
  readonly isTool: (name: string) => boolean;
  readonly repairs: Repairs;
  readonly search: Search;
}

/** The mutable state of a block. Every reader advances `at` and sets `state` to what it expects next. */
export interface BlockReading extends BlockRules {
  readonly opener: Opener;
  readonly lexicon: Lexicon;
  readonly calls: RawCall[];
  family: string;
  /** Enough markup was read that what follows is treated as markup, recovered or not. */
  committed: boolean;
  outcome: BlockState;
  /** The text after the block, once it is done. */
  rest: string;
  /** The channel that begins after the block, if the block was a header. */
  channel: 'reasoning' | 'text' | undefined;
  /** Received text; it is read up to `at`. */
  text: string;
  at: number;
  /** No more text will follow. */
  final: boolean;
  state: ReadState;
  /** The number of open wrappers, and whether a box is open. */
  depth: number;
  boxed: boolean;
  call: OpenCall | undefined;
  value: OpenValue | undefined;
  /** The current value, key or JSON as far as it was read. */
  parts: string[];
  /** The current name or header as far as it was read. */
  head: string;
  keyFromBox: boolean;
  scan: BracketScan | undefined;
  tree: TreeNode[];
  /** Characters so far that belong to no grammar. */
  junk: number;
  /** Such characters stood in a call's name, so what follows is not its arguments. */
  spoiled: boolean;
  /** Its JSON is too broken to be repaired at acceptable cost. */
  unreadable: boolean;
}

/** With more characters that belong to no grammar, the block is no leak. */
export const MAX_JUNK = 400;
/** Maximum length of a header or key. */
export const MAX_HEADER = 200;

export function settle(b: BlockReading, outcome: 'done' | 'fail'): BlockState {
  if (b.outcome === 'more') {
    b.outcome = outcome;
    b.rest = b.text.slice(b.at);
  }
  return b.outcome;
}

export function skipSpace(b: BlockReading): number {
  let at = b.at;
  for (; at < b.text.length; at++) {
    const code = b.text.charCodeAt(at);
    if (code !== 0x20 && code !== 0x0a && code !== 0x0d && code !== 0x09) break;
  }
  b.at = at;
  return at < b.text.length ? b.text.charCodeAt(at) : -1;
}

/** The markup at `at`; undefined if there is none. */
export function lexHere(b: BlockReading, at = b.at): Lexeme | 'partial' | undefined {
  const code = b.text.charCodeAt(at);
  if (code !== 0x3c && code !== 0x5b && code !== 0x5d) return undefined;
  return lex(b.text, at, b.lexicon);
}

export function newCall(name: string | undefined): OpenCall {
  return { name, pairs: [], json: undefined, malformed: false };
}

/**
 * @param closed the call was closed by its own closer or an outer one (JSON arguments need none), or the text
 *   ended behind its last argument
 */
export function finishCall(b: BlockReading, closed: boolean | 'by the end' = false): void {
  const call = b.call;
  b.call = undefined;
  b.value = undefined;
  if (call === undefined) return;
  const { name, pairs, json } = call;
  const malformed =
    b.spoiled || call.malformed || (json === undefined && !closed && pairs.length === 0);
  const unclosed = closed === 'by the end';
  b.calls.push({
    name,
    family: b.family,
    input: json === undefined ? { type: 'pairs', pairs } : { type: 'json', text: json },
    malformed,
    ...(unclosed ? { unclosed } : {}),
  });
}

/** Handles text where the grammar has none: after complete calls it belongs to the answer, otherwise this is no leak. */
export function unexpected(b: BlockReading): boolean {
  if (b.calls.length > 0) settle(b, 'done');
  else if ((b.committed || standsAlone(b.opener)) && ++b.junk < MAX_JUNK) {
    b.spoiled ||= b.state === 'name';
    b.at++;
  } else settle(b, 'fail');
  return true;
}

/** An opener on a separate line waits for its closer whatever follows, since prose does not begin a line with it. */
const standsAlone = (opener: Opener): boolean =>
  opener.type === 'tag' &&
  opener.lineStart &&
  opener.lexeme.word.common === undefined &&
  (opener.lexeme.word.role === 'box' || opener.lexeme.word.role === 'wrap');

export function giveUp(b: BlockReading): false {
  settle(b, 'fail');
  return false;
}

/**
 * Limits the search for leaks in one reply to some 20 ms of the event loop: a place where one could begin costs 1, a
 * block that is read more than a hundred. A reply with thousands of calls is about markup, so its rest stays text.
 */
export class Search {
  /** Below 0 no more is looked for. */
  left = 131_072;
}
