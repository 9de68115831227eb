/** The one ranking of both stores: candidates of a question, weighed by their digests, their surroundings and their kind. */

import { hasOne, isTopic, type QuestionTerms, raiseChanges } from './changes.ts';
import { countingIn, type Digest, termHash } from './digest.ts';
import type { EventKind } from './event-kinds.ts';
import type { KnownTerms } from './known-terms.ts';
import type { Question } from './question.ts';
import { isSingleCharacter, termsOf } from './terms.ts';

/** Candidates whose terms are weighed. */
export const POOL = 128;
/** First candidates whose neighbours, the events before and after, are candidates, too. */
export const WITH_NEIGHBOURS = 32;
/** Events of a named day that are candidates whatever their words. */
export const OF_A_TIME = 64;
/** Vectors that are candidates. */
export const NEAREST = 50;

export interface Candidate {
  readonly row: number;
  readonly time: number;
  readonly importance: number;
  readonly digest: Digest;
}

/** The candidates of a question, from either store. */
export interface Found extends KnownTerms {
  /** Events of the space. */
  readonly events: number;
  /** Words of all texts of the space together, as in `Terms.length`. */
  readonly length: number;
  /** Each candidate once, in any order. */
  readonly candidates: readonly Candidate[];
  /** The neighbours of some rows. */
  readonly beside: readonly Beside[];
}

/** A row with the one before it and the one after it in the order of time. */
export type Beside = readonly [row: number, before: number | null, after: number | null];

/** The nearest vectors: row and cosine, the nearest first. */
export type Nearest = readonly (readonly [row: number, cosine: number])[];

export interface Ranked {
  readonly row: number;
  readonly score: number;
}

export interface Asked {
  readonly question: Question;
  /** The name that the model speaks under. */
  readonly speaker: string | undefined;
  readonly limit: number;
  readonly now: number;
  readonly nearest?: Nearest | undefined;
}

/** The share of its worth that a term has which the question does not have itself. */
const HINT = 0.1;
/** The shares of relevance that texts keep by their kind. */
const REQUEST = 0.25;
const REPLY = 0.4;
const OWN_WORDS = 0.8;
/** Factor for other speakers' words if the question asks for the model's words. */
const OTHERS_WORDS = 0.8;
/** Factor for the words of a speaker whom the question names. */
const NAMED = 1.5;
/** Share of the best relevance that an event of a named time gains. */
const OF_TIME = 0.5;
/** The weight of vectors beside words. */
const VECTORS = 0.35;
/** Without vectors, events below this share of the best relevance are left out. */
const FLOOR = 0.15;

interface Weighed {
  readonly candidate: Candidate;
  readonly relevance: number;
  /** The event states something: it is neither a request nor a reply of the assistant. */
  readonly isStatement: boolean;
  readonly shares: Float64Array;
}

/** The best events by score, the best first. */
export function rank(found: Found, given: Asked): readonly Ranked[] {
  // While no event has its vector yet, words alone decide.
  const asked = given.nearest?.length === 0 ? { ...given, nearest: undefined } : given;
  const terms = weighedTerms(found, asked.question);
  const weighed = weigh(found, terms, asked);
  const own = terms.filter(({ isHint }) => !isHint).length;
  const topics = new Set(terms.flatMap(({ term }, at) => (isTopic(term) ? [at] : [])));
  return select(weighed, keyTermOf(weighed, terms), { own, topics }, asked);
}

/** The question's own terms first. */
function weighedTerms(
  { eventCounts, forms, events }: Found,
  { terms, hints }: Question,
): readonly WeighedTerm[] {
  const hinting = new Set(terms.slice(terms.length - hints));
  const own = [...eventCounts.keys()].filter((term) => !hinting.has(term));
  return [...own, ...[...eventCounts.keys()].filter((term) => hinting.has(term))].map((term) => {
    const having = eventCounts.get(term)!;
    const worth = worthOf(term, having, events);
    return {
      term,
      hashes: forms.get(term)!.map(termHash),
      worth: hinting.has(term) ? HINT * worth : worth,
      share: having / Math.max(1, events),
      isHint: hinting.has(term),
    };
  });
}

function weigh(
  { candidates, beside, events, length }: Found,
  terms: readonly WeighedTerm[],
  { question, speaker, nearest }: Asked,
): readonly Weighed[] {
  const ordered = candidates.toSorted((a, b) => a.time - b.time || a.row - b.row);
  const neighbours = neighboursOf(ordered, beside);
  const sharesOf = termShares(terms, length / Math.max(1, events));
  const shares = ordered.map(({ digest }) => sharesOf(digest));
  const ownWords = shares.map(sum);
  const bestWords = Math.max(0, ...ownWords) || 1;
  const angles = scaledAngles(nearest ?? []);
  const placed = ordered.map(({ row, time, digest }, at) => ({
    time,
    shares: shares[at]!,
    kind: digest.kind,
    source: digest.source,
    // Events that a vector finds lend their neighbours as much as those that words find.
    own: ownWords[at]! + VECTORS * bestWords * (angles.get(row) ?? 0),
    before: neighbours.before.get(row),
    after: neighbours.after.get(row),
  }));
  const context = contextOf(placed, terms);
  const named = namedSources(question);
  const words = ordered.map(
    ({ digest }, at) => (ownWords[at]! + context[at]!) * (named(digest.source) ? NAMED : 1),
  );
  const best = Math.max(0, ...words);
  const isOfTime = ({ time }: Candidate) =>
    question.times.some(({ since, until }) => time >= since && time < until);
  const { within } = question;
  return ordered.flatMap((candidate, at) => {
    const { digest, time } = candidate;
    if (time < within.since || time >= within.until) return [];
    let relevance =
      nearest === undefined
        ? words[at]!
        : (best === 0 ? 0 : words[at]! / best) + VECTORS * (angles.get(candidate.row) ?? 0);
    if (isOfTime(candidate)) relevance += OF_TIME * (nearest === undefined ? best || 1 : 1);
    const weight = kindWeight(digest, speaker, question.asksModel);
    if (!(relevance * weight > 0)) return [];
    return {
      candidate,
      relevance: relevance * weight,
      isStatement:
        digest.kind === 'statement' && (question.asksModel || digest.source !== 'assistant'),
      shares: shares[at]!,
    };
  });
}

/** The places of the events right before and after each row, where they are candidates and known to be. */
function neighboursOf(ordered: readonly Candidate[], beside: readonly Beside[]) {
  const places = new Map(ordered.map(({ row }, at) => [row, at]));
  const before = new Map<number, number | undefined>();
  const after = new Map<number, number | undefined>();
  const follow = (earlier: number, later: number) => {
    after.set(earlier, places.get(later));
    before.set(later, places.get(earlier));
  };
  for (const [row, one, other] of beside) {
    if (one !== null) follow(one, row);
    if (other !== null) follow(row, other);
  }
  return { before, after };
}

function sum(shares: Float64Array): number {
  let all = 0;
  for (let at = 0; at < shares.length; at++) all += shares[at]!;
  return all;
}

/** Cosines between that of the last and the first one as 0 to 1. */
function scaledAngles(nearest: Nearest): ReadonlyMap<number, number> {
  const first = nearest[0]?.[1] ?? 0;
  const last = nearest.length < NEAREST ? 0 : nearest.at(-1)![1];
  const span = first - last;
  return new Map(nearest.map(([row, angle]) => [row, span > 0 ? (angle - last) / span : 1]));
}

function namedSources({ said }: Question): (source: string) => boolean {
  const known = new Map<string, boolean>();
  return (source) => {
    let is = known.get(source);
    if (is === undefined) {
      const terms = [...termsOf(source).counts.keys()];
      is = terms.length > 0 && terms.every((term) => said.has(term));
      known.set(source, is);
    }
    return is;
  };
}

/**
 * The share of its relevance that an event keeps, 0 to 1. A reply that is only a filler keeps nothing.
 * @param speaker the model's name in the chat
 */
export function kindWeight(
  { kind, source }: Pick<Digest, 'kind' | 'source'>,
  speaker: string | undefined,
  asksModel = false,
): number {
  const isReply = source === 'assistant' || source === speaker;
  if (kind === 'forget' || (kind === 'filler' && isReply)) return 0;
  if (kind === 'request') return REQUEST;
  if (asksModel) return isReply ? 1 : OTHERS_WORDS;
  return isReply ? (source === speaker ? OWN_WORDS : REPLY) : 1;
}

/** The place of the rarest term that a statement holds. */
function keyTermOf(weighed: readonly Weighed[], terms: readonly WeighedTerm[]): number {
  let key = -1;
  for (const { isStatement, shares } of weighed) {
    if (!isStatement) continue;
    for (let at = 0; at < terms.length; at++) {
      const { isHint, share } = terms[at]!;
      if (shares[at]! > 0 && !isHint && (key < 0 || share < terms[key]!.share)) key = at;
    }
  }
  return key;
}

/**
 * Requests and the assistant's replies take at most half of the places while there are statements left, and the same
 * words of a source take one place: that of the newest.
 */
function select(
  weighed: readonly Weighed[],
  key: number,
  terms: QuestionTerms,
  { question, limit, now, nearest }: Asked,
): readonly Ranked[] {
  const floor = nearest === undefined ? FLOOR : 0;
  const least = floor * Math.max(0, ...weighed.map(({ relevance }) => relevance));
  const newest = new Map<number, Candidate>();
  for (const { candidate } of weighed) {
    const { same } = candidate.digest;
    // The candidates are in the order of time.
    newest.set(same, candidate);
  }
  const ranked = weighed
    .filter(
      ({ candidate, relevance, isStatement, shares }) =>
        newest.get(candidate.digest.same) === candidate &&
        (relevance >= least ||
          (isStatement && ((key >= 0 && shares[key]! > 0) || hasOne(shares, terms.own)))),
    )
    .map(({ candidate, relevance, isStatement, shares }) => ({
      isStatement,
      candidate,
      time: candidate.time,
      digest: candidate.digest,
      shares,
      score: scoreOf(relevance, candidate, now),
    }));
  // A question about a named time wants what was true then, not what came later.
  if (question.times.length === 0) {
    raiseChanges(
      ranked.filter(({ isStatement }) => isStatement),
      terms,
    );
  }
  ranked.sort(
    (a, b) =>
      b.score - a.score ||
      Number(b.isStatement) - Number(a.isStatement) ||
      b.candidate.time - a.candidate.time ||
      b.candidate.row - a.candidate.row,
  );
  const statements = ranked.reduce((sum, { isStatement }) => sum + Number(isStatement), 0);
  const others = question.asksModel
    ? limit
    : Math.max(1, Math.floor(limit / 2), limit - statements);
  let taken = 0;
  return ranked
    .filter(({ isStatement }) => isStatement || ++taken <= others)
    .slice(0, limit)
    .map(({ candidate: { row }, score }) => ({
      row,
      score: Math.round(score * 10_000) / 10_000,
    }));
}

// BM25 with the usual K. B is low because the length of chat messages says little about their value.
const K = 1.2;
const B = 0.4;
/** The weight of a single character of an unspaced script, which says less than a pair or a word. */
export const SINGLE_CHARACTER = 0.4;

/** Events that a smaller space counts as, since it says little about how rare a term is. */
export const MIN_EVENTS = 50;

/** The rarity of a term in its space, above 0. */
export function rarityOf(having: number, events: number): number {
  const all = Math.max(MIN_EVENTS, events);
  return Math.log(1 + (all - having + 0.5) / (having + 0.5));
}

/** The largest weight of a term. */
export const worthOf = (term: string, having: number, events: number): number =>
  (isSingleCharacter(term) ? SINGLE_CHARACTER : 1) * rarityOf(having, events);

/** A term of a question as texts are weighed by it. */
export interface WeighedTerm {
  readonly term: string;
  /** Hashes of the forms in which the space has it. */
  readonly hashes: readonly number[];
  readonly worth: number;
  /** The share of the space's events that hold it. */
  readonly share: number;
  /** The question does not have it itself: it tells of a change of what is asked for. */
  readonly isHint: boolean;
}

/**
 * BM25 of texts for each term of a question, as shares of the maximum for any text: together 0 to 1.
 * @param averageLength of the space's texts
 */
export function termShares(
  terms: readonly WeighedTerm[],
  averageLength: number,
): (digest: Digest) => Float64Array {
  const countsOf = countingIn(terms.map(({ hashes }) => hashes));
  let most = 0;
  for (const { worth, isHint } of terms) if (!isHint) most += worth * (K + 1);
  return (digest) => {
    const shares = countsOf(digest);
    const norm = K * (1 - B + (B * digest.length) / Math.max(1, averageLength));
    for (let at = 0; at < terms.length; at++) {
      const often = shares[at]!;
      if (often === 0) continue;
      shares[at] = most === 0 ? 0 : (terms[at]!.worth * often * (K + 1)) / (often + norm) / most;
    }
    return shares;
  };
}

/** Milliseconds after which the freshness of an event has halved. */
const HALF_LIFE = 30 * 86_400_000;

/**
 * relevance × (0.75 + 0.15 × importance + 0.10 × 2^(−age / 30 days)). Importance and freshness make up
 * at most a quarter of a score, so they decide only between events of similar relevance.
 */
export function scoreOf(
  relevance: number,
  { time, importance }: Pick<Candidate, 'time' | 'importance'>,
  now: number,
): number {
  const fresh = 2 ** (-Math.max(0, now - time) / HALF_LIFE);
  return relevance * (0.75 + 0.15 * importance + 0.1 * fresh);
}

/** An event among its neighbours. */
export interface Placed {
  readonly time: number;
  /** Shares of the question's terms, as of `termShares`. */
  readonly shares: Float64Array;
  /** Their sum, and what its vector adds. */
  readonly own: number;
  readonly kind: EventKind;
  readonly source: string;
  /** Places of the events right before and after it; undefined where they are unknown or there are none. */
  readonly before: number | undefined;
  readonly after: number | undefined;
}

/** Milliseconds between neighbours that belong together, and between events of one talk. */
const NEIGHBOUR_MS = 10 * 60_000;
const TALK_MS = 60 * 60_000;
/** Share of a neighbour's relevance that is added, counted above a share of the best relevance. */
const BEFORE = 0.4;
const AFTER = 0.1;
const MIN_SHARE = 0.3;
/** Share of a conversation's joint relevance that is added, counted above a share of its best event's. */
const TALK = 0.4;
const TALK_ALONE = 0.5;
/** The share of either that stays where one source speaks alone: an answer is somebody else's. */
const ALONE = 0.5;
/** Events on each side. */
const TALK_EVENTS = 2;
/** A term that more of the events hold says nothing of a talk. */
const TALK_TERMS = 0.1;

/** Events of the very same time were brought in together, and are no talk. */
function isNear({ time }: Placed, other: Placed, ms: number): boolean {
  const apart = Math.abs(time - other.time);
  return apart > 0 && apart <= ms;
}

/** The added relevance of each event. @param events in the order of time */
export function contextOf(
  events: readonly Placed[],
  terms: readonly WeighedTerm[],
): readonly number[] {
  const least = MIN_SHARE * Math.max(0, ...events.map(({ own }) => own));
  const counted = terms.flatMap(({ share }, term) => (share <= TALK_TERMS ? [term] : []));
  const alone = events.map(({ shares }) => counted.reduce((sum, term) => sum + shares[term]!, 0));
  return events.map((event, at) =>
    // A question is not the answer to the one before it.
    event.kind === 'request'
      ? 0
      : BEFORE * lent(event, events[event.before ?? -1], least) +
        AFTER * lent(event, events[event.after ?? -1], least) +
        TALK * talkAround(events, at, { counted, alone }),
  );
}

/** Relevance that an event gains from one right beside it. */
function lent(event: Placed, other: Placed | undefined, least: number): number {
  if (other === undefined || other.own <= least || other.kind === 'filler') return 0;
  if (!isNear(event, other, NEIGHBOUR_MS)) return 0;
  return (other.source === event.source ? ALONE : 1) * (other.own - least);
}

/**
 * @param counted places of terms
 * @param alone what each event holds of them
 */
function talkAround(
  events: readonly Placed[],
  at: number,
  { counted, alone }: { readonly counted: readonly number[]; readonly alone: readonly number[] },
): number {
  let first = at;
  let last = at;
  const near = (one: number, next: number) =>
    events[next] !== undefined && isNear(events[one]!, events[next]!, TALK_MS);
  while (first > at - TALK_EVENTS && near(first, first - 1)) first--;
  while (last < at + TALK_EVENTS && near(last, last + 1)) last++;
  if (first === last) return 0;
  let best = 0;
  let isOneAlone = true;
  for (let one = first; one <= last; one++) {
    best = Math.max(best, alone[one]!);
    if (events[one]!.source !== events[at]!.source) isOneAlone = false;
  }
  let together = 0;
  for (const term of counted) {
    let most = 0;
    for (let one = first; one <= last; one++) most = Math.max(most, events[one]!.shares[term]!);
    together += most;
  }
  return (isOneAlone ? ALONE : 1) * Math.max(0, together - TALK_ALONE * best);
}
