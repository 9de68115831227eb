/** Runs the search for the smallest failing request: repeats flaky requests, keeps to the budget, stores every verdict. */

import { sha256Hex } from '../../lib/text/sha256.ts';
import { causeText, findCause, movedPointer } from './cause.ts';
import { applyCut, type Cut, NOTHING_CUT } from './cut.ts';
import { type Candidate, search } from './search.ts';
import type { BisectOptions, BisectReport, Verdict } from './types.ts';
import { sizeOf } from './units.ts';

/** Times that the whole request is sent first, to learn whether it is flaky; of a refusal, once. */
const CALIBRATE = 3;
const CALIBRATE_REFUSAL = 1;
/** Times that it is sent before it counts as not failing, or to learn its failure rate. */
const CALIBRATE_FLAKY = 6;
/** Accepted probability that a candidate that can fail passes all its tries. */
const MISSED = 0.02;
const MAX_REPEATS = 12;

class BudgetSpent extends Error {}

interface VerdictCounts {
  same: number;
  passes: number;
  other: number;
}

/** Finds the smallest failing request. Errors of `probe` end the search; see {@link BisectReport}. */
export async function bisect(options: BisectOptions): Promise<BisectReport> {
  const { body, protocol } = options;
  const failure = options.failure ?? (() => '');
  const calibrations = options.isRefusal === true ? CALIBRATE_REFUSAL : CALIBRATE;
  let { budget } = options;
  const tallies = new Map<string, VerdictCounts>();
  for (const [key, verdicts] of options.known ?? []) {
    const tally = { same: 0, passes: 0, other: 0 };
    for (const verdict of verdicts) tally[verdict]++;
    tallies.set(key, tally);
  }
  let spent = 0;
  let repeats = 1;
  let best: Cut = NOTHING_CUT;
  let bestBytes = sizeOf(body);
  /** Verdicts of requests that are known to fail. */
  const rate: VerdictCounts = { same: 0, passes: 0, other: 0 };
  const passing = new Map<string, Cut>();

  const tallyOf = (key: string): VerdictCounts => {
    const known = tallies.get(key) ?? { same: 0, passes: 0, other: 0 };
    tallies.set(key, known);
    return known;
  };

  const probe = async ({ cut, phase }: Candidate): Promise<Verdict> => {
    if (spent >= budget) budget += (await options.more?.(spent)) ?? 0;
    if (spent >= budget || options.signal?.aborted === true) throw new BudgetSpent();
    const candidate = applyCut(body, cut);
    const key = keyOf(candidate);
    const bytes = sizeOf(candidate);
    spent++;
    const verdict = await options.probe(candidate);
    tallyOf(key)[verdict]++;
    const smallest = verdict === 'same' ? Math.min(bytes, bestBytes) : bestBytes;
    options.onProbe?.({ key, verdict, spent, phase, bytes, best: smallest });
    return verdict;
  };

  /** A candidate fails once one try fails; it passes only after as many tries as the failure rate demands. */
  const decide = async (candidate: Candidate): Promise<Verdict> => {
    const key = keyOf(applyCut(body, candidate.cut));
    const tally = tallyOf(key);
    while (tally.same === 0 && tally.other === 0 && tally.passes < repeats) await probe(candidate);
    if (tally.same > 0) {
      passing.delete(key);
      take(candidate.cut);
      return 'same';
    }
    if (tally.passes > 0) passing.set(key, candidate.cut);
    return tally.passes > 0 ? 'passes' : 'other';
  };

  const take = (cut: Cut) => {
    const bytes = sizeOf(applyCut(body, cut));
    if (bytes > bestBytes) return;
    best = cut;
    bestBytes = bytes;
  };

  const calibrate = async (): Promise<boolean> => {
    const whole: Candidate = { cut: NOTHING_CUT, phase: 'messages' };
    const tally = tallyOf(keyOf(body));
    const tries = () => tally.same + tally.passes + tally.other;
    while (tries() < calibrations) await probe(whole);
    while (tally.same < tries() && tries() < CALIBRATE_FLAKY) await probe(whole);
    Object.assign(rate, tally);
    if (tally.same === 0) return false;
    repeats = repeatsFor(tally.same / tries());
    return true;
  };

  const explore = async (): Promise<void> => {
    for (;;) {
      const steps = search({ body, protocol, failure }, best);
      let step = steps.next();
      while (step.done !== true) step = steps.next(await decide(step.value));
      take(step.value);
      if (await holds()) return;
    }
  };

  /** Whether the best passing candidate still passes when it is sent more often; otherwise the failure is flakier than assumed. */
  const holds = async (): Promise<boolean> => {
    const found = findCause(body, best, [...passing.values()]);
    if (found === undefined) return true;
    const candidate: Candidate = { cut: found.passing, phase: 'halves' };
    const tally = tallyOf(keyOf(applyCut(body, found.passing)));
    while (tally.same === 0 && tally.passes < Math.max(calibrations, repeats)) {
      if ((await probe(candidate)) === 'other') return true;
    }
    if (tally.same === 0) return true;
    repeats = Math.max(repeatsFor(tally.same / (tally.same + tally.passes)), repeats + 1);
    await decide(candidate);
    return repeats >= MAX_REPEATS;
  };

  let result: BisectReport['result'] = 'partial';
  try {
    if (await calibrate()) {
      await explore();
      result = 'minimal';
    } else result = 'does-not-fail';
  } catch (thrown) {
    if (!(thrown instanceof BudgetSpent)) throw thrown;
  }
  const minimal = applyCut(body, best);
  const found =
    result === 'does-not-fail' ? undefined : findCause(body, best, [...passing.values()]);
  const tried = rate.same + rate.passes + rate.other;
  return {
    result,
    minimal,
    passing: found === undefined ? undefined : applyCut(body, found.passing),
    probes: spent,
    failure_rate: tried === 0 ? 0 : rate.same / tried,
    cause:
      found === undefined
        ? undefined
        : { ...found.cause, in_minimal: movedPointer(found.cause.at, best) },
    words: found === undefined ? without(result) : causeText(body, protocol, found),
  };
}

function without(result: BisectReport['result']): string {
  if (result === 'does-not-fail') return 'the request no longer fails in this way';
  if (result === 'minimal')
    return 'leaving out parts never made it pass: even the smallest request fails';
  return 'no candidate passed before the budget was spent';
}

/** The number of tries that a failing candidate rarely passes all. */
function repeatsFor(rate: number): number {
  if (rate >= 1) return 1;
  return Math.min(MAX_REPEATS, Math.max(2, Math.ceil(Math.log(MISSED) / Math.log(1 - rate))));
}

/** A key that identifies a body. */
export const keyOf = (body: unknown): string => sha256Hex(JSON.stringify(body)).slice(0, 16);
