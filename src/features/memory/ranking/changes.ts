/** Facts that change: "I moved to Munich" shares no word with "Where do I live?", and comes before "I live in Hamburg". */

import { stem } from '../../../lib/text/stem.ts';
import { countingIn, type Digest, hashAt, termHash } from './digest.ts';
import { STOP_WORDS } from './terms.ts';

/** Words of questions, each with the words that announce a change of the answer. */
const TOPICS: readonly (readonly [asked: string, told: string])[] = [
  ['live living reside home address city', 'move moved relocate relocated settled'],
  ['work job employer profession career company', 'hired quit resigned retired promoted'],
  [
    'girlfriend boyfriend partner wife husband dating married relationship',
    'broke split divorced engaged',
  ],
  ['drive car vehicle', 'sold bought'],
  ['vegetarian vegan diet', 'meat'],
  ['drink smoke', 'quit stopped'],
  ['school study university major', 'graduated transferred switched'],
  ['住 住在 地址', '搬 搬到 搬家'],
  ['上班 工作 公司 职业', '跳槽 入职 辞职 离职'],
  ['女朋 男朋 朋友 对象 老婆 老公', '分手 离婚 结婚'],
  ['车', '卖了 换了 买了'],
  ['喝 抽', '戒 改喝'],
];
/** Words of statements that replace others. */
const MARKERS =
  'now new change changed move moved gave again anymore longer instead switch become became 现在 新的 换 改 不再 变成 如今 目前';

const stems = (words: string) => words.split(' ').map(stem);
const STEMS = TOPICS.map(([asked, told]) => ({ asked: stems(asked), told: stems(told) }));
const ASKED: ReadonlySet<string> = new Set(STEMS.flatMap(({ asked }) => asked));
const TOPIC_CHARACTERS: ReadonlySet<string> = new Set(
  [...ASKED].filter((word) => /\p{Script=Han}/u.test(word)).flatMap((word) => [...word]),
);
const markersIn = countingIn([stems(MARKERS).map(termHash)]);
const EMPTY_HASHES: ReadonlySet<number> = new Set([...STOP_WORDS].map(termHash));

/** Is the change of a term told by other words? */
export const isTopic = (term: string): boolean =>
  ASKED.has(term) || [...term].some((one) => TOPIC_CHARACTERS.has(one));

/** Terms by which a change of what a question asks for may be told, unless it asks for the change itself. */
export function changeTerms(terms: readonly string[]): readonly string[] {
  const own = new Set(terms);
  const has = (words: readonly string[]) => words.some((word) => own.has(word));
  return [...new Set(STEMS.flatMap(({ asked, told }) => (has(asked) && !has(told) ? told : [])))];
}

/** The share of the terms of the shorter of two texts that the other one has, from which they are about the same. */
const ALIKE = 0.4;
/** The share of the older one's score that the newer one has at least. */
const MIN_SCORE = 0.5;
/** The share of what the older one holds of the question that the newer one holds. */
const MIN_HELD = 0.4;
/** The same where it tells of a change, whose topics count as held. */
const MIN_TOLD = 0.5;

/** A text that is more times longer than the older one says more than a change of it. */
const MAX_LONGER = 4;

/** A text with more terms tells more than one fact, and comparing many of them takes long. */
const MAX_TERMS = 150;

/** A ranked statement, and what it holds of the question. */
export interface Statement {
  readonly time: number;
  readonly digest: Digest;
  /** Shares of the question's own terms, then of those that tell of a change. */
  readonly shares: Float64Array;
  score: number;
}

export interface QuestionTerms {
  /** The number of the question's own terms. */
  readonly own: number;
  /** Indexes of terms that have such other words. */
  readonly topics: ReadonlySet<number>;
}

/** Raises statements above older ones of the same source that they replace. */
export function raiseChanges(statements: readonly Statement[], terms: QuestionTerms): void {
  // Nothing needs to be raised above a weak statement.
  const least = MIN_SCORE * Math.max(0, ...statements.map(({ score }) => score));
  const strong = new Map<string, Statement[]>();
  for (const newer of statements.toSorted((a, b) => a.time - b.time)) {
    const older = strong.get(newer.digest.source) ?? [];
    raise(newer, older, terms);
    if (newer.score < least) continue;
    older.push(newer);
    strong.set(newer.digest.source, older);
  }
}

/** @param all of the same source, in the order of time */
function raise(newer: Statement, all: readonly Statement[], terms: QuestionTerms): void {
  if (!all.some(({ score }) => score >= newer.score)) return;
  const tells = hasOne(newer.shares, terms.own);
  const isMarked = markersIn(newer.digest)[0]! > 0;
  if (!tells && !isMarked) return;
  for (const older of all) {
    if (older.score < newer.score || older.time === newer.time) continue;
    const isReplaced =
      (tells && heldOf(older, newer, terms, true) >= MIN_TOLD) ||
      (isMarked && isAboutTheSame(older, newer, terms));
    if (isReplaced) newer.score = older.score * 1.001;
  }
}

/** Whether a text holds one of the terms from `first` on. */
export function hasOne(shares: Float64Array, first: number): boolean {
  for (let at = first; at < shares.length; at++) if (shares[at]! > 0) return true;
  return false;
}

const isAboutTheSame = (older: Statement, newer: Statement, terms: QuestionTerms): boolean =>
  newer.score >= MIN_SCORE * older.score &&
  Math.max(newer.digest.terms, older.digest.terms) <= MAX_TERMS &&
  newer.digest.length <= MAX_LONGER * older.digest.length &&
  heldOf(older, newer, terms, false) >= MIN_HELD &&
  areAlike(older.digest, newer.digest);

/** The share of what the older one holds of the question that the newer one holds, too. */
function heldOf(
  older: Statement,
  newer: Statement,
  { own, topics }: QuestionTerms,
  tells: boolean,
): number {
  let all = 0;
  let both = 0;
  for (let term = 0; term < own; term++) {
    const share = older.shares[term]!;
    all += share;
    if (newer.shares[term]! > 0 || (tells && topics.has(term))) both += share;
  }
  return all === 0 ? 0 : both / all;
}

function areAlike(one: Digest, other: Digest): boolean {
  const [few, many] = one.terms < other.terms ? [one, other] : [other, one];
  let all = 0;
  let common = 0;
  // Both are in ascending order.
  let at = 0;
  for (let term = 0; term < few.terms; term++) {
    const hash = hashAt(few, term);
    if (EMPTY_HASHES.has(hash)) continue;
    all++;
    while (at < many.terms && hashAt(many, at) < hash) at++;
    if (at < many.terms && hashAt(many, at) === hash) common++;
  }
  return common >= ALIKE * all;
}
