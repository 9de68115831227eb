/** What a block knows while it is being read, and the small moves that all of its readers share. */

import type { ArgumentPair, RawCall, TreeNode } from '../build-calls.ts';
import type { Lexicon } from '../grammar.ts';
import type { BracketScan } from '../values/json-scan.ts';
import type { Repairs } from '../values/repair-json.ts';
import { type Lexeme, lex } from './lex.ts';

/** `fail`: it is no leak after all, the text stays; `done`: see `calls`, `rest` goes on as text. */
export type BlockState = 'more' | 'done' | 'fail';

/** What a block begins with: markup, or JSON or Python calls as such (whose text is not consumed). */
export type Opener =
  | { readonly type: 'tag'; readonly lexeme: Lexeme; readonly lineStart: boolean }
  | { readonly type: 'json'; readonly kind: 'envelope' | 'bare' | 'result' }
  | { readonly type: 'python' };

/** What is expected next. */
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

/** What a block has to know of the request and of the reply around it. */
export interface BlockRules {
  /** Is this the name of one of the request's tools? */
  readonly isTool: (name: string) => boolean;
  readonly repairs: Repairs;
}

/** The one mutable record of a block; every reader moves `at` on and says what comes next in `state`. */
export interface BlockReading extends BlockRules {
  readonly opener: Opener;
  readonly lexicon: Lexicon;
  readonly calls: RawCall[];
  family: string;
  /** So much of a grammar has been seen that what follows is markup, recovered or not. */
  committed: boolean;
  outcome: BlockState;
  /** Text behind the block, once it is done. */
  rest: string;
  /** The block was a header after which another channel begins. */
  channel: 'reasoning' | 'text' | undefined;
  /** Text that has come; up to `at` it has been read. */
  text: string;
  at: number;
  /** No more text will come. */
  final: boolean;
  state: ReadState;
  /** Wrappers that are open, and whether a box is. */
  depth: number;
  boxed: boolean;
  call: OpenCall | undefined;
  value: OpenValue | undefined;
  /** What has been read of the value, key or JSON at hand. */
  parts: string[];
  /** What has been read of the name or header at hand. */
  head: string;
  keyFromBox: boolean;
  scan: BracketScan | undefined;
  tree: TreeNode[];
  /** Characters so far that belong to no grammar. */
  junk: number;
  /** They stood in a call's name: what follows is none of its arguments. */
  spoiled: boolean;
  /** Its JSON is too broken to be read at a bearable cost. */
  unreadable: boolean;
}

/** Text that belongs to no grammar: more than this, and the block is given up. */
export const MAX_JUNK = 400;
/** Longer headers (and keys) are none. */
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

/** Reads markup at the place; undefined: none. */
export function lexHere(b: BlockReading, at = b.at): Lexeme | 'partial' | undefined {
  const code = b.text.charCodeAt(at);
  if (code !== 0x3c && code !== 0x5b && code !== 0x5d) return undefined;
  return lex(b.text, at, b.lexicon);
}

export function newCall(name: string | undefined): OpenCall {
  return { name, pairs: [], json: undefined, malformed: false };
}

/** @param closed its own closer, or one around it, has been seen; JSON arguments need none */
export function finishCall(b: BlockReading, closed = false): void {
  const call = b.call;
  b.call = undefined;
  b.value = undefined;
  if (call === undefined) return;
  const { name, pairs, json } = call;
  const malformed =
    b.spoiled || call.malformed || (json === undefined && !closed && pairs.length === 0);
  b.calls.push({
    name,
    family: b.family,
    input: json === undefined ? { type: 'pairs', pairs } : { type: 'json', text: json },
    malformed,
  });
}

/** Text where the grammar has none: behind complete calls it is the answer's, else this is no leak. */
export function unexpected(b: BlockReading): boolean {
  if (b.calls.length > 0) settle(b, 'done');
  else if ((b.committed || standsAlone(b.opener)) && ++b.junk < MAX_JUNK) {
    b.spoiled ||= b.state === 'name';
    b.at++;
  } else settle(b, 'fail');
  return true;
}

/** On a line of its own an opener waits for its closer, whatever stands between: nobody's prose. */
const standsAlone = (opener: Opener): boolean =>
  opener.type === 'tag' &&
  opener.lineStart &&
  opener.lexeme.word.common === undefined &&
  (opener.lexeme.word.role === 'box' || opener.lexeme.word.role === 'wrap');

export function giveUp(b: BlockReading): false {
  settle(b, 'fail');
  return false;
}
