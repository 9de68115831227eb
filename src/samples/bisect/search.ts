/** The search for the smallest failing cut as a generator: it yields candidates and receives verdicts. */

import type { ProtocolName } from '../../conversation/types.ts';
import type { Json, JsonObject } from '../../lib/json/json.ts';
import { partsOf, valueAt } from '../../lib/json/pointer.ts';
import { listOf } from '../../lib/json/typed-reads.ts';
import { ddmin } from '../../lib/text/ddmin.ts';
import { applyCut, type Cut, isGone, leaveOut, replace } from './cut.ts';
import type { Verdict } from './types.ts';
import {
  blockUnits,
  type CutUnit,
  extraUnits,
  fieldUnits,
  halves,
  historyKey,
  type LongText,
  longTexts,
  type MessageUnit,
  memberUnits,
  messageUnits,
  needsTool,
  toolUnits,
  withUser,
} from './units.ts';

export interface Candidate {
  readonly cut: Cut;
  readonly phase:
    | 'messages'
    | 'tools'
    | 'fields'
    | 'texts'
    | 'blocks'
    | 'extras'
    | 'schemas'
    | 'halves';
}

export interface Subject {
  readonly body: JsonObject;
  readonly protocol: ProtocolName;
  /** The failure's message, once known: parts that it names are tried first. */
  readonly failure: () => string;
}

type Search = Generator<Candidate, Cut, Verdict>;

/** Characters; shorter texts are not halved. */
const MIN_HALF = 64;
/** Levels of a schema that are entered. */
const MAX_DEPTH = 40;

/**
 * Reduces a failing cut until nothing more can be left out. What is large and independent comes first, so that few
 * requests suffice: messages, tools, fields, texts; then parts of messages, then the members of schemas, level by
 * level; the remaining texts are halved last.
 */
export function* search(subject: Subject, start: Cut): Search {
  const { body, protocol } = subject;
  let cut = yield* messagePhase(subject, start);
  cut = yield* toolPhase(subject, cut);
  cut = yield* allButTools(subject, cut);
  cut = yield* unitPhase(subject, 'fields', cut, fieldUnits(body, protocol));
  cut = yield* textPhase(subject, cut);
  cut = yield* unitPhase(subject, 'blocks', cut, blockUnits(body, cut, protocol));
  cut = yield* unitPhase(subject, 'extras', cut, extraUnits(body, cut, protocol));
  cut = yield* schemaPhase(subject, cut);
  return yield* halfPhase(subject, cut);
}

const stillThere = <U extends CutUnit>(cut: Cut, units: readonly U[]) =>
  units.filter(({ pointers }) => pointers.some((pointer) => !isGone(cut, pointer)));

const without =
  <U extends CutUnit>(start: Cut, units: readonly U[]) =>
  (kept: readonly U[]): Cut => {
    const all = new Set(kept);
    return leaveOut(
      start,
      units.filter((unit) => !all.has(unit)).flatMap(({ pointers }) => pointers),
    );
  };

function* messagePhase(subject: Subject, start: Cut): Search {
  const units = stillThere(start, messageUnits(subject.body, subject.protocol));
  if (units.length < 2) return start;
  const cutTo = (kept: readonly MessageUnit[]) => without(start, units)(withUser(kept, units));
  // Trying the last and the largest message alone saves most requests.
  const largest = units.toSorted((a, b) => b.bytes - a.bytes)[0]!;
  let rest: readonly MessageUnit[] = units;
  for (const guess of new Set([units.at(-1)!, largest])) {
    if ((yield { cut: cutTo([guess]), phase: 'messages' }) !== 'same') continue;
    rest = [guess];
    break;
  }
  return cutTo(yield* minimized(subject, rest, cutTo, 'messages'));
}

/**
 * The fewest units without which the request passes: first those that the failure names, then a single one, which
 * is to blame in most cases, then ddmin. A request without a history is no request and is not sent.
 */
function* minimized<U extends CutUnit>(
  { body, protocol, failure }: Subject,
  units: readonly U[],
  cutTo: (kept: readonly U[]) => Cut,
  phase: Candidate['phase'],
): Generator<Candidate, readonly U[], Verdict> {
  function* fails(kept: readonly U[]): Generator<Candidate, boolean, Verdict> {
    const cut = cutTo(kept);
    const history = applyCut(body, cut)[historyKey(protocol)];
    if (Array.isArray(history) && listOf(history).length === 0) return false;
    return (yield { cut, phase }) === 'same';
  }
  if (units.length === 0 || (yield* fails([]))) return [];
  let rest = units;
  const named = unitsNamed(failure(), body, units);
  if (named.length > 0 && named.length < units.length && (yield* fails(named))) rest = named;
  if (rest.length > 2) {
    let one = rest;
    while (one.length > 1) {
      const middle = one.length >> 1;
      const newer = one.slice(middle);
      // Where the newer half passes, the older one is taken without a look; the last one is looked at.
      one = (yield* fails(newer)) ? newer : one.slice(0, middle);
    }
    if (yield* fails(one)) return one;
  }
  const dialogue = ddmin(rest);
  let step = dialogue.next();
  while (step.done !== true) step = dialogue.next(yield* fails(step.value));
  return step.value;
}

function* unitPhase(
  subject: Subject,
  phase: Candidate['phase'],
  start: Cut,
  all: readonly CutUnit[],
): Search {
  const units = stillThere(start, all);
  const cutTo = without(start, units);
  return cutTo(yield* minimized(subject, units, cutTo, phase));
}

function* toolPhase(subject: Subject, start: Cut): Search {
  const units = stillThere(start, toolUnits(subject.body));
  if (units.length === 0) return start;
  const smallest = units.toSorted((a, b) => a.bytes - b.bytes)[0]!;
  const one = needsTool(subject.body, start, subject.protocol);
  const cutTo = (kept: readonly CutUnit[]) =>
    without(start, units)(one && kept.length === 0 ? [smallest] : kept);
  return cutTo(yield* minimized(subject, units, cutTo, 'tools'));
}

/** If tools remain, they are probably to blame: removes everything else in one request. */
function* allButTools(subject: Subject, start: Cut): Search {
  const { body, protocol } = subject;
  if (stillThere(start, toolUnits(body)).length === 0) return start;
  const fields = stillThere(start, fieldUnits(body, protocol));
  const extras = stillThere(start, extraUnits(body, start, protocol));
  const fewer = without(start, [...fields, ...extras])([]);
  const cut = stubbed(fewer, longTexts(body, fewer, protocol));
  return (yield { cut, phase: 'fields' }) === 'same' ? cut : start;
}

const stubbed = (cut: Cut, texts: readonly LongText[]): Cut => ({
  gone: cut.gone,
  values: new Map([
    ...cut.values,
    ...texts.map(({ pointer, stub }): [string, Json] => [pointer, stub]),
  ]),
});

/** Replaces long texts by stubs: a text that can be replaced does not matter. */
function* textPhase(subject: Subject, start: Cut): Search {
  const units = longTexts(subject.body, start, subject.protocol).map((text) => ({
    pointers: [text.pointer],
    bytes: text.bytes,
    text,
  }));
  const cutTo = (kept: readonly CutUnit[]) => {
    const all = new Set(kept);
    return stubbed(
      start,
      units.filter((unit) => !all.has(unit)).map(({ text }) => text),
    );
  };
  return cutTo(yield* minimized(subject, units, cutTo, 'texts'));
}

function* schemaPhase(subject: Subject, start: Cut): Search {
  let cut = start;
  for (let depth = 0; depth < MAX_DEPTH; depth++) {
    const { units, isDeepest } = memberUnits(subject.body, cut, subject.protocol, depth);
    cut = yield* unitPhase(subject, 'schemas', cut, units);
    if (isDeepest) break;
  }
  return cut;
}

function* halfPhase({ body, protocol }: Subject, start: Cut): Search {
  let cut = start;
  for (const { pointer, value } of longTexts(body, cut, protocol)) {
    if (typeof value !== 'string') continue;
    let text = value;
    while (text.length > MIN_HALF) {
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

/** Characters: a vendor may quote the whole request in its error. */
const MAX_READ = 2000;
const WORD = /[A-Za-z_$][\w$-]{2,60}/g;
/** `tools.3.input_schema`, `messages[17]`. */
const PLACE = /\b(tools|messages|input|contents)[.[](\d{1,6})\b/g;

/** The units at places that the failure names, else those that hold its rarest word; none where it names nothing. */
function unitsNamed<U extends CutUnit>(
  failure: string,
  body: JsonObject,
  units: readonly U[],
): readonly U[] {
  const said = failure.slice(0, MAX_READ);
  const places = [...said.matchAll(PLACE)].map(([, root, index]) => `/${root}/${index}`);
  const placed = units.filter(({ pointers }) => pointers.some((one) => places.includes(one)));
  if (placed.length > 0) return placed;
  const texts = units.map(({ pointers }) =>
    pointers.map((at) => JSON.stringify([partsOf(at).at(-1), valueAt(body, at)])).join(),
  );
  let best: readonly U[] = [];
  for (const word of new Set(said.match(WORD))) {
    const quoted = JSON.stringify(word);
    const holding = units.filter((_, at) => texts[at]!.includes(quoted));
    if (holding.length > 0 && (best.length === 0 || holding.length < best.length)) best = holding;
  }
  return best;
}
