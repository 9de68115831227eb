/** What a scanner of text has to know, and what it says of what it has read. */

import type { Lexicon } from '../grammar.ts';
import type { Repairs } from '../values/repair-json.ts';
import type { OpeningRules } from './openings.ts';

/**
 * `same`: everything that was held may pass as it came; `held`: it has to wait; `changed`: the segments
 * take its place; `open` (of `finish` alone): the text ends with calls, and what follows it in the reply
 * decides whether they are any: see `TextScanner.decide`.
 */
export type ScanVerdict = 'same' | 'held' | 'changed' | 'open';

export interface ScanRules extends OpeningRules {
  /** Every word of the families in force; `lexicon` holds those that may begin a leak. */
  readonly all: Lexicon;
  /** The block's text is thinking until `</think>`, whose opener stood in the prompt. */
  readonly unopened: boolean;
  readonly repairs: Repairs;
  /** Does this markup stand, word for word, in what the model was given to read? */
  isQuotation(markup: string): boolean;
}
