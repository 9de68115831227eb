/** The rules and verdicts of a text scanner. */

import type { Lexicon } from '../grammar.ts';
import type { Repairs } from '../values/repair-json.ts';
import type { OpeningRules } from './openings.ts';
import type { Search } from './search.ts';

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
