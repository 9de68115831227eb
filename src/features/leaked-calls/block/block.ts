/** Reads one leaked block from its opener on, in any grammar. Incremental; reads each character once. */

import type { Lexicon } from '../grammars.ts';
import {
  readGemma,
  readJson,
  readPython,
  readTail,
  recoverUnclosedGemma,
  recoverUnclosedJson,
} from './read-json.ts';
import {
  readArgs,
  readDiscard,
  readHeader,
  readName,
  readOuter,
  readTagText,
} from './read-names.ts';
import { applyTag } from './read-tags.ts';
import { readBody, readTree, readValue } from './read-values.ts';
import {
  type BlockReading,
  type BlockRules,
  type BlockState,
  finishCall,
  type Opener,
  type ReadState,
  settle,
} from './reading.ts';

export type { BlockRules, BlockState, Opener } from './reading.ts';

/** One step of each state; false if it needs more text. */
const STEPS: Readonly<Record<ReadState, (reading: BlockReading) => boolean>> = {
  outer: readOuter,
  name: readName,
  args: readArgs,
  body: readBody,
  'tagged-name': readTagText,
  key: readTagText,
  value: readValue,
  json: readJson,
  python: readPython,
  gemma: readGemma,
  tree: readTree,
  header: readHeader,
  discard: readDiscard,
  tail: readTail,
};

/** What one step costs of the search, and one call. */
const STEP_WORK = 4;
const CALL_WORK = 128;

export class LeakBlock {
  /** Read so far; its readers alone change it. */
  readonly reading: Readonly<BlockReading>;
  readonly #reading: BlockReading;
  #truncated = false;

  constructor(opener: Opener, lexicon: Lexicon, rules: BlockRules) {
    const reading: BlockReading = {
      opener,
      lexicon,
      ...rules,
      calls: [],
      family: familyOf(opener),
      committed: opener.type === 'json' && opener.kind === 'result',
      outcome: 'more',
      rest: '',
      channel: undefined,
      text: '',
      at: 0,
      final: false,
      state: opener.type === 'python' ? 'python' : 'outer',
      depth: 0,
      boxed: false,
      call: undefined,
      value: undefined,
      parts: [],
      head: '',
      keyFromBox: false,
      scan: undefined,
      tree: [],
      junk: 0,
      spoiled: false,
      unreadable: false,
    };
    this.#reading = reading;
    this.reading = reading;
    if (opener.type === 'tag') applyTag(reading, opener.lexeme);
  }

  /** Only an opener and its closer. */
  get isEmpty(): boolean {
    const { calls, opener, junk } = this.#reading;
    return calls.length === 0 && !this.#truncated && junk === 0 && opener.type === 'tag';
  }

  /** The text ended inside the block. */
  get truncated(): boolean {
    return this.#truncated;
  }

  push(text: string): BlockState {
    const reading = this.#reading;
    if (reading.outcome !== 'more') {
      reading.rest += text;
      return reading.outcome;
    }
    reading.text = reading.at < reading.text.length ? reading.text.slice(reading.at) + text : text;
    reading.at = 0;
    return this.#run();
  }

  /** The text ends here. Complete calls count, also without their closer; no argument is completed. */
  finish(): BlockState {
    const reading = this.#reading;
    if (reading.outcome !== 'more') return reading.outcome;
    reading.final = true;
    if (this.#run() !== 'more') return reading.outcome;
    if (reading.state === 'tail') return settle(reading, 'done');
    if (reading.call?.json !== undefined && reading.state === 'body') {
      finishCall(reading);
      return settle(reading, 'done');
    }
    if (reading.state === 'json') recoverUnclosedJson(reading);
    if (reading.state === 'gemma') recoverUnclosedGemma(reading);
    if (isUnclosed(reading)) finishCall(reading, 'by the end');
    const { opener, calls } = reading;
    this.#truncated = !(reading.state === 'outer' && calls.length > 0);
    // Unreadable text is part of the markup.
    reading.at = reading.text.length;
    const whole = opener.type === 'json' && opener.kind !== 'result';
    const leak = reading.committed || calls.length > 0 || whole;
    return settle(reading, leak ? 'done' : 'fail');
  }

  #run(): BlockState {
    const reading = this.#reading;
    const { calls, search } = reading;
    while (reading.outcome === 'more' && reading.at < reading.text.length) {
      if (search.left < 0) {
        reading.unreadable = true;
        return settle(reading, 'done');
      }
      const before = calls.length;
      const goesOn = STEPS[reading.state](reading);
      search.left -= STEP_WORK + (calls.length - before) * CALL_WORK;
      if (!goesOn) break;
    }
    return reading.outcome;
  }
}

/** The text ended behind a whole argument, perhaps within the call's closer. */
function isUnclosed({ call, state, text, at }: BlockReading): boolean {
  if (state !== 'body' || call === undefined || call.pairs.length === 0) return false;
  return !call.malformed && /^\s*(?:<[|｜\s]{0,6}\/|$)/.test(text.slice(at, at + MAX_REST));
}

/** Maximum length of white space and the beginning of a closer. */
const MAX_REST = 440;

function familyOf(opener: Opener): string {
  if (opener.type === 'tag') return opener.lexeme.word.family;
  if (opener.type === 'python') return 'pythonic';
  return opener.kind === 'result' ? 'tool-result' : 'json';
}
