/** Reads a question: its terms, the times that it names, and whether it asks for what the model said. */

import type { RecallQuery } from '../../../conversation/memory.ts';
import { localTime } from '../../../lib/text/calendar.ts';
import { changeTerms } from './changes.ts';
import { namedTimes, type TimeRange } from './dates.ts';
import { inflectedTerms } from './languages.ts';
import { queryTerms, termsOf } from './terms.ts';

export interface Question {
  /** Terms that are looked up, each once. */
  readonly terms: readonly string[];
  /** Other forms of some of them. */
  readonly forms: ReadonlyMap<string, readonly string[]>;
  /** The number of terms, the last ones, that only tell of a change. */
  readonly hints: number;
  /** All terms, also those that every question has. */
  readonly said: ReadonlySet<string>;
  /** Times that the question names; an event of one of them is preferred. */
  readonly times: readonly TimeRange[];
  /** Only events of this range are found. */
  readonly within: TimeRange;
  /** The question is about something that the model said: "What did you recommend?" */
  readonly asksModel: boolean;
}

const TOLD =
  'say|said|tell|told|recommend|recommended|suggest|suggested|mention|mentioned|advise|advised|promise|promised|offer|offered|propose|proposed|explain|explained|answer|answered|share|shared|teach|taught|write|wrote';
const ASKS_MODEL = new RegExp(
  `\\b(?:did|have|had) you (?:\\w+ )?(?:${TOLD})\\b|\\byou (?:\\w+ )?(?:told|recommended|suggested|mentioned|advised|promised|proposed|explained)\\b|\\byour (?:\\w+ )?(?:recommendations?|suggestions?|advice|answer|reply)\\b`,
  'i',
);
const ASKS_MODEL_CHINESE =
  /(?<![和跟给向对與給對])[你您](?!的)[^，。？！我]{0,6}(?:[给跟和向对给對為为]我)?[^，。？！我]{0,4}(?:推荐|推薦|告诉|告訴|建议|建議|说|說|提到|提过|提過|介绍|介紹|讲|講|回答|答应|答應|教|分享)/;

/**
 * @param query shortened
 * @param now milliseconds since 1970
 */
export function readQuestion(
  query: string,
  now: number,
  { since, until, timeZone = 'UTC' }: Pick<RecallQuery, 'since' | 'until' | 'timeZone'> = {},
): Question {
  const ahead = timeZone === 'UTC' ? 0 : localTime(timeZone, now) - now;
  const { ranges, rest } = namedTimes(query, now, ahead);
  const { terms, forms } = inflectedTerms(rest, queryTerms(rest));
  const hints = changeTerms(terms);
  const within = { since: since ?? 0, until: until ?? Number.MAX_SAFE_INTEGER };
  return {
    terms: [...terms, ...hints],
    forms,
    hints: hints.length,
    said: new Set(termsOf(query).counts.keys()),
    times: since === undefined && until === undefined ? ranges : [...ranges, within],
    within,
    asksModel: ASKS_MODEL.test(query) || ASKS_MODEL_CHINESE.test(query),
  };
}
