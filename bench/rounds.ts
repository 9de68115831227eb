/** Interleaved rounds: every scenario on every target in shuffled order, CPU by target, ratios to the relay within the round. */

import { sleep } from './clock.ts';
import type { Generator } from './generator.ts';
import { type LoadResult, together } from './load-plan.ts';
import {
  type CpuSample,
  cpuBetween,
  cpuSample,
  peakResident,
  residentMegabytes,
} from './process-usage.ts';
import { lasting, leadIn, planFor, type Scenario, type ScenarioName } from './scenarios.ts';
import { median, shuffled } from './statistics.ts';
import type { Bench, Target, TargetName } from './target.ts';
import { isPeer, speaksGemini } from './targets.ts';

/** One scenario on one target, once. */
export interface Cell {
  readonly round: number;
  readonly scenario: ScenarioName;
  readonly target: TargetName;
  /** Microseconds of CPU per request, stream or event. */
  readonly cpu: number;
  /** Answers per second within the time of the run. */
  readonly rate: number;
  readonly eventRate: number;
  readonly residentPeak: number;
  readonly result: LoadResult;
}

/** What works on for seconds after a load: it runs at a stretch, as the peers do. */
const recording = (name: TargetName) => name === 'hopgate-recording';
const atAStretch = (name: TargetName) => isPeer(name) || recording(name);

/** Whether a cell is worth its time: the peers cannot carry 500 streams and crawl through 50 long ones; recording is read off the rest. */
export function measured(scenario: Scenario, target: TargetName): boolean {
  const { name } = scenario;
  if (recording(target)) return !name.startsWith('B') && name !== 'T8';
  if (isPeer(target)) return name !== 'P500' && name !== 'B50' && name !== 'T8';
  if (target === 'direct' || speaksGemini(target)) return name !== 'B1';
  return true;
}

// JavaScript is compiled in the background for its first tens of thousands of requests, at up to 70 µs of
// CPU for each; and other scenarios unlearn some of it, which costs as much again for some seconds. Sustained
// load is measured: a target gets back to its work until its compilers have none, before it counts.
const COMPILER = 'JITWorker';
const IDLE = 0.01;
const WARM_WINDOW_MS = 2000;
const WARM_WINDOWS = 8;
const RUN_IN_WINDOW_MS = 500;
const RUN_IN_WINDOWS = 10;

/** Runs a scenario for the first time; C and the bare relay have little to warm. */
async function warmUp(
  target: Target,
  scenario: Scenario,
  generator: Generator,
  share: number,
): Promise<void> {
  const window = lasting(scenario, WARM_WINDOW_MS * share);
  const once = !target.name.startsWith('hopgate') || recording(target.name);
  const most = once ? 1 : scenario.stamped ? 2 : WARM_WINDOWS;
  await settle(target, window, generator, most);
}

async function runIn(target: Target, scenario: Scenario, generator: Generator, share: number) {
  const window = scenario.stamped ? leadIn(scenario) : lasting(scenario, RUN_IN_WINDOW_MS * share);
  await settle(target, window, generator, recording(target.name) ? 1 : RUN_IN_WINDOWS);
}

/** Runs windows until in two of them hardly anything was compiled, at most `most`. */
async function settle(
  target: Target,
  window: Scenario,
  generator: Generator,
  most: number,
): Promise<void> {
  for (let run = 0, calm = 0; run < most && calm < 2; run++) {
    const { spent, compiling } = await slice(window, target, generator);
    calm = compiling < spent * IDLE ? calm + 1 : 0;
  }
}

/** One short run of a scenario on a target. */
interface Slice {
  /** Microseconds of CPU, and those of them in the compilers' threads. */
  readonly spent: number;
  readonly compiling: number;
  readonly residentPeak: number;
  readonly result: LoadResult;
}

async function slice(scenario: Scenario, target: Target, generator: Generator): Promise<Slice> {
  const before = cpuSample(target.pid);
  const [result, residentPeak] = await peakResident(
    target.pid,
    generator.run(planFor(scenario, target)),
  );
  const after = await atRest(target.pid);
  const spent = cpuBetween(before, after) / 1000;
  const compiling = cpuBetween(before, after, COMPILER) / 1000;
  return { spent, compiling, residentPeak, result };
}

// What a target still does when its load is over (a recorder writes, a collector sweeps) is its own cost and
// must not be the next one's: recording alone took a third of the others' requests per second.
const REST_WINDOW_MS = 40;
const REST_SHARE = 0.02;
const REST_LIMIT_MS = 10_000;

/** Waits until a process does hardly anything, and gives what it has spent by then. */
async function atRest(pid: number): Promise<CpuSample> {
  const deadline = Date.now() + REST_LIMIT_MS;
  let before = cpuSample(pid);
  for (;;) {
    const from = Date.now();
    await sleep(REST_WINDOW_MS);
    const after = cpuSample(pid);
    const share = cpuBetween(before, after) / 1e6 / (Date.now() - from);
    if (share < REST_SHARE || Date.now() > deadline) return after;
    before = after;
  }
}

const unitsOf = (scenario: Scenario, result: LoadResult) =>
  scenario.unit === 'event' ? result.events : result.requests;

/** What the slices of one round say together: sums of counts and times, medians of what is spread. */
function cellOf(
  round: number,
  scenario: Scenario,
  target: TargetName,
  slices: readonly Slice[],
): Cell {
  const result = together(slices.map((one) => one.result));
  const spent = slices.reduce((sum, one) => sum + one.spent, 0);
  return {
    round,
    scenario: scenario.name,
    target,
    cpu: spent / unitsOf(scenario, result),
    rate: (result.requestsInTime / result.elapsedMs) * 1000,
    eventRate: (result.eventsInTime / result.elapsedMs) * 1000,
    residentPeak: Math.max(...slices.map((one) => one.residentPeak)),
    result,
  };
}

// The speed of a shared machine moves by a third within minutes. What is to be compared runs side by
// side: each target's time with a scenario is cut into slices, and every slice of one target stands
// among the same slices of the others. A wave of paced streams cannot be cut, and the ratio of a single
// one moves by a tenth: there are four of them.
// A process that was idle for some seconds is slow for about 70 ms, while the caches hold what the others
// did: a lead-in comes before each slice and does not count.
const SLICE_MS = 200;
const WAVES = 4;

/** Runs one scenario on every target: some at a stretch, all others slice by slice. */
async function interleaved(
  round: number,
  scenario: Scenario,
  targets: readonly Target[],
  generator: Generator,
  share: number,
): Promise<Cell[]> {
  const slices = new Map(targets.map((target) => [target, [] as Slice[]]));
  const whole = scenario.durationMs * share;
  for (const target of shuffled(targets)) {
    await runIn(target, scenario, generator, share);
    if (atAStretch(target.name)) {
      slices.get(target)!.push(await slice(lasting(scenario, whole), target, generator));
    }
  }
  const passes = scenario.stamped ? WAVES : Math.max(1, Math.round(whole / SLICE_MS));
  const cut = lasting(scenario, whole / passes);
  const lead = leadIn(scenario);
  for (let pass = 0; pass < passes; pass++) {
    for (const target of shuffled(targets.filter(({ name }) => !atAStretch(name)))) {
      await slice(lead, target, generator);
      slices.get(target)!.push(await slice(cut, target, generator));
    }
  }
  return targets.map((target) => cellOf(round, scenario, target.name, slices.get(target)!));
}

export interface Rounds {
  readonly cells: readonly Cell[];
  /** Resident megabytes of every target after its start, before any load. */
  readonly idle: Readonly<Record<string, number>>;
}

/** Runs a warm-up round (not counted) and then `rounds` rounds; `share` shortens the closed loops. */
export async function runRounds(
  bench: Bench,
  generator: Generator,
  targets: readonly Target[],
  scenarios: readonly Scenario[],
  rounds: number,
  share: number,
): Promise<Rounds> {
  await sleep(500);
  const idle: Record<string, number> = {};
  for (const target of targets) idle[target.name] = residentMegabytes(target.pid);
  const cells: Cell[] = [];
  const pairs = targets.flatMap((target) =>
    scenarios.filter((s) => measured(s, target.name)).map((scenario) => ({ target, scenario })),
  );
  for (const { target, scenario } of pairs) {
    await warmUp(target, scenario, generator, share);
  }
  for (let round = 1; round <= rounds; round++) {
    const began = Date.now();
    for (const scenario of shuffled(scenarios)) {
      const involved = targets.filter((target) => measured(scenario, target.name));
      cells.push(...(await interleaved(round, scenario, involved, generator, share)));
    }
    bench.say(`round ${round} of ${rounds}: ${((Date.now() - began) / 1000).toFixed(0)} s`);
  }
  return { cells, idle };
}

/** The median of what `value` finds in the cells of a scenario on a target; NaN where there are none. */
export function medianOf(
  cells: readonly Cell[],
  scenario: ScenarioName,
  target: TargetName,
  value: (cell: Cell) => number,
): number {
  const found = cells.filter((c) => c.scenario === scenario && c.target === target).map(value);
  return median(found.filter(Number.isFinite));
}

/** The median over rounds of `value(a) / value(b)`, both from the same round. */
export function medianRatio(
  cells: readonly Cell[],
  scenario: ScenarioName,
  a: TargetName,
  b: TargetName,
  value: (cell: Cell) => number = (c) => c.cpu,
): number {
  const base = new Map(
    cells.filter((c) => c.scenario === scenario && c.target === b).map((c) => [c.round, value(c)]),
  );
  const ratios = cells
    .filter((c) => c.scenario === scenario && c.target === a)
    .map((c) => value(c) / (base.get(c.round) ?? Number.NaN));
  return median(ratios.filter(Number.isFinite));
}

/** Errors, lost events and unfinished answers of a target over all rounds of a scenario. */
export function faults(cells: readonly Cell[], scenario: ScenarioName, target: TargetName) {
  const mine = cells.filter((c) => c.scenario === scenario && c.target === target);
  const kinds = new Map<string, number>();
  for (const { result } of mine) {
    for (const [kind, n] of Object.entries(result.errors)) {
      kinds.set(kind, (kinds.get(kind) ?? 0) + n);
    }
  }
  const sum = (value: (c: Cell) => number) => mine.reduce((total, c) => total + value(c), 0);
  return {
    errors: [...kinds].map(([kind, n]) => `${n} × ${kind}`),
    lost: sum((c) => c.result.lost),
    unfinished: sum((c) => c.result.unfinished),
  };
}
