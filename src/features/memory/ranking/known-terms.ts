/** Which terms of a question a space knows, in which forms, and how many of its events hold them. */

import type { Question } from './question.ts';
import { synonymsOf } from './synonyms.ts';
import { isSingleCharacter } from './terms.ts';
import { formsOf } from './word-forms.ts';

/** Terms of a query that are looked up at most. */
const MAX_TERMS = 96;
/** Rows read for one query. The ranking weighs common terms that are not read here. 8000 find nothing more (decision 44). */
export const MAX_ROWS_READ = 2000;

export interface KnownTerms {
  /** The number of the space's events that contain each term. */
  readonly eventCounts: ReadonlyMap<string, number>;
  /** The forms of each term that the space contains. */
  readonly forms: ReadonlyMap<string, readonly string[]>;
}

/** The terms by which one of a question is found: its forms, and what may stand in its place. */
export const findingTerms = (term: string, forms: readonly string[] = []): readonly string[] => [
  ...new Set([...formsOf(term), ...synonymsOf(term), ...forms]),
];

/** Terms that are looked up, each with those by which it is found. */
export type LookedUp = ReadonlyMap<string, readonly string[]>;

export const lookedUpTerms = ({ terms, forms }: Pick<Question, 'terms' | 'forms'>): LookedUp =>
  new Map(mostTelling(terms).map((term) => [term, findingTerms(term, forms.get(term))]));

/** The terms of a long query that are looked up: words and pairs before single characters, the last ones first. */
function mostTelling(terms: readonly string[]): readonly string[] {
  if (terms.length <= MAX_TERMS) return terms;
  const late = terms.toReversed();
  const whole = late.filter((term) => !isSingleCharacter(term));
  return [...whole, ...late.filter(isSingleCharacter)].slice(0, MAX_TERMS);
}

/**
 * @param events of the space
 * @param countOf the number of its events that contain a form
 */
export function knownTerms(
  lookedUp: LookedUp,
  events: number,
  countOf: (form: string) => number,
): KnownTerms {
  const eventCounts = new Map<string, number>();
  const forms = new Map<string, readonly string[]>();
  for (const [term, finding] of lookedUp) {
    const held = finding.flatMap((form) => {
      const having = countOf(form);
      return having > 0 ? [{ form, having }] : [];
    });
    const sum = held.reduce((all, one) => all + one.having, 0);
    eventCounts.set(term, Math.min(sum, events));
    forms.set(
      term,
      held.map(({ form }) => form),
    );
  }
  return { eventCounts, forms };
}
