/** The search for the smallest failing cut as a generator: it yields candidates and receives verdicts. */

import type { ProtocolName } from '../../conversation/types.ts';
import type { JsonObject } from '../../lib/json/json.ts';
import { ddmin } from '../../lib/text/ddmin.ts';
import { type Cut, isGone, leaveOut, replace } from './cut.ts';
import { halves, longTexts } from './long-texts.ts';
import { type CutUnit, type MessageUnit, messageUnits, withUser } from './message-units.ts';
import { blockUnits, extraUnits, fieldUnits, needsTool, toolUnits } from './part-units.ts';
import type { Verdict } from './types.ts';

export interface Candidate {
  readonly cut: Cut;
  readonly phase: 'messages' | 'texts' | 'tools' | 'fields' | 'blocks' | 'extras' | 'halves';
}

export interface Subject {
  readonly body: JsonObject;
  readonly protocol: ProtocolName;
}

type Search = Generator<Candidate, Cut, Verdict>;

/** Characters; shorter texts are not halved. */
const LEAST_HALF = 64;

/**
 * Reduces a failing cut until nothing more can be left out. Whole messages come first (the newest and the
 * largest are tried alone), then long texts, tools and fields, then parts of messages; the remaining texts
 * are halved last.
 */
export function* search(subject: Subject, start: Cut): Search {
  let cut = yield* messagePhase(subject, start);
  cut = yield* textPhase(subject, cut);
  cut = yield* unitPhase('fields', cut, fieldUnits(subject.body, subject.protocol));
  cut = yield* toolPhase(subject, cut);
  cut = yield* unitPhase('blocks', cut, blockUnits(subject.body, cut, subject.protocol));
  cut = yield* unitPhase('extras', cut, extraUnits(subject.body, cut, subject.protocol));
  return yield* halfPhase(subject, cut);
}

const stillThere = <U extends CutUnit>(cut: Cut, units: readonly U[]) =>
  units.filter(({ pointers }) => pointers.some((pointer) => !isGone(cut, pointer)));

function* messagePhase({ body, protocol }: Subject, start: Cut): Search {
  const units = stillThere(start, messageUnits(body, protocol));
  if (units.length < 2) return start;
  const cutTo = (kept: readonly MessageUnit[]) => {
    const all = new Set(withUser(kept, units));
    return leaveOut(
      start,
      units.filter((unit) => !all.has(unit)).flatMap(({ pointers }) => pointers),
    );
  };
  // Trying the last and the largest message alone saves most requests.
  const largest = units.toSorted((a, b) => b.bytes - a.bytes)[0]!;
  let rest: readonly MessageUnit[] = units;
  for (const guess of new Set([units.at(-1)!, largest])) {
    if ((yield { cut: cutTo([guess]), phase: 'messages' }) !== 'same') continue;
    rest = [guess];
    break;
  }
  return cutTo(yield* minimized(rest, cutTo, 'messages'));
}

/** Runs ddmin over units, each subset made a cut. */
function* minimized<U>(
  units: readonly U[],
  cutTo: (kept: readonly U[]) => Cut,
  phase: Candidate['phase'],
): Generator<Candidate, readonly U[], Verdict> {
  const dialogue = ddmin(units);
  let step = dialogue.next();
  while (step.done !== true) {
    const verdict = yield { cut: cutTo(step.value), phase };
    step = dialogue.next(verdict === 'same');
  }
  return step.value;
}

function* unitPhase(phase: Candidate['phase'], start: Cut, all: readonly CutUnit[]): Search {
  const units = stillThere(start, all);
  if (units.length === 0) return start;
  const cutTo = (kept: readonly CutUnit[]) =>
    leaveOut(
      start,
      units.filter((unit) => !kept.includes(unit)).flatMap(({ pointers }) => pointers),
    );
  return cutTo(yield* minimized(units, cutTo, phase));
}

function* toolPhase({ body, protocol }: Subject, start: Cut): Search {
  const units = stillThere(start, toolUnits(body));
  if (units.length === 0) return start;
  const smallest = units.toSorted((a, b) => a.bytes - b.bytes)[0]!;
  const one = needsTool(body, start, protocol);
  const cutTo = (kept: readonly CutUnit[]) => {
    const all = one && kept.length === 0 ? [smallest] : kept;
    return leaveOut(
      start,
      units.filter((unit) => !all.includes(unit)).flatMap(({ pointers }) => pointers),
    );
  };
  return cutTo(yield* minimized(units, cutTo, 'tools'));
}

/** Replaces every long text by a stub: a text that can be replaced does not matter. */
function* textPhase({ body, protocol }: Subject, start: Cut): Search {
  let cut = start;
  for (const { pointer, stub } of longTexts(body, cut, protocol)) {
    const shorter = replace(cut, pointer, stub);
    if ((yield { cut: shorter, phase: 'texts' }) === 'same') cut = shorter;
  }
  return cut;
}

/** Halves the texts that matter, the longest first. */
function* halfPhase({ body, protocol }: Subject, start: Cut): Search {
  let cut = start;
  for (const { pointer, value } of longTexts(body, cut, protocol)) {
    if (typeof value !== 'string') continue;
    let text = value;
    while (text.length > LEAST_HALF) {
      let smaller: string | undefined;
      for (const half of halves(text)) {
        const candidate = replace(cut, pointer, half);
        if ((yield { cut: candidate, phase: 'halves' }) !== 'same') continue;
        smaller = half;
        cut = candidate;
        break;
      }
      if (smaller === undefined) break;
      text = smaller;
    }
  }
  return cut;
}
