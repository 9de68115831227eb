/** Writes what was measured as Markdown: the machine, the goals, all medians, what to keep in mind. */

import { cpus, totalmem } from 'node:os';
import { placesText } from './children.ts';
import type { Checks, Verdict } from './goals.ts';
import { faults, medianOf, medianRatio, type Rounds } from './rounds.ts';
import type { Scenario } from './scenarios.ts';
import type { Target } from './target.ts';
import { TARGET_ABOUT } from './targets.ts';

export interface Run {
  readonly command: string;
  readonly rounds: number;
  readonly seconds: number;
  readonly targets: readonly Target[];
  readonly scenarios: readonly Scenario[];
  readonly skipped: readonly string[];
  readonly results: Rounds;
  readonly checks: Checks;
  readonly verdicts: readonly Verdict[];
}

const row = (cells: readonly string[]) => `| ${cells.join(' | ')} |`;

export function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = head.map((_, i) => (i === 0 ? '---' : '--:'));
  return [row(head), row(line), ...rows.map(row)].join('\n');
}

const whole = (value: number) =>
  Number.isNaN(value) ? '–' : Math.round(value).toLocaleString('en');
const fine = (value: number, digits = 2) => (Number.isFinite(value) ? value.toFixed(digits) : '–');

const mark = (pass: boolean | undefined) => (pass === undefined ? '–' : pass ? 'pass' : '**MISS**');

/** Processors, memory and kernel of this machine. */
export function machineName(): string {
  const processor = cpus()[0]?.model ?? 'unknown processor';
  const kernel = Bun.spawnSync(['uname', '-sr']).stdout.toString().trim();
  return `${cpus().length} × ${processor}, ${Math.round(totalmem() / 2 ** 30)} GiB, ${kernel}`;
}

function machine(run: Run): string {
  return [
    `- Machine: ${machineName()}; ${placesText()}; loopback only`,
    `- Bun ${Bun.version}; ${[...new Set(run.targets.map((t) => t.version))].join(', ')}`,
    `- Command: \`${run.command}\`; ${run.rounds} rounds, ${Math.round(run.seconds)} s, ${new Date().toISOString().slice(0, 10)}`,
    ...run.skipped.map((line) => `- **SKIPPED** ${line}`),
  ].join('\n');
}

function scenarioTable(run: Run, scenario: Scenario): string {
  const { cells, idle } = run.results;
  const rows = run.targets
    .filter((target) => cells.some((c) => c.target === target.name && c.scenario === scenario.name))
    .map(({ name }) => {
      const find = (value: Parameters<typeof medianOf>[3]) =>
        medianOf(cells, scenario.name, name, value);
      const wrong = faults(cells, scenario.name, name);
      const faulty = [
        ...wrong.errors,
        ...(wrong.lost > 0 ? [`${wrong.lost} events lost`] : []),
        ...(wrong.unfinished > 0 ? [`${wrong.unfinished} unfinished`] : []),
      ];
      return [
        name,
        name === 'direct' ? '–' : fine(find((c) => c.cpu)),
        name === 'direct' ? '–' : fine(medianRatio(cells, scenario.name, name, 'relay')),
        whole(find((c) => c.rate)),
        scenario.events > 0 ? whole(find((c) => c.eventRate)) : '–',
        `${whole(find((c) => c.result.latency.p50))} / ${whole(find((c) => c.result.latency.p99))}`,
        `${whole(find((c) => c.result.firstByte.p50))} / ${whole(find((c) => c.result.firstByte.p99))}`,
        scenario.stamped
          ? `${whole(find((c) => c.result.delay.p50))} / ${whole(find((c) => c.result.delay.p99))}`
          : '–',
        `${whole(idle[name] ?? Number.NaN)} / ${whole(find((c) => c.residentPeak))}`,
        faulty.length === 0 ? '0' : faulty.join(', '),
      ];
    });
  const head = [
    'target',
    `CPU µs per ${scenario.unit}`,
    '× relay',
    'answers/s',
    'events/s',
    'whole answer µs p50 / p99',
    'first byte µs p50 / p99',
    'event delay µs p50 / p99',
    'RSS MB idle / peak',
    'faults',
  ];
  return `### ${scenario.name}: ${scenario.about}\n\n${table(head, rows)}`;
}

const CAVEATS = `## How to read this

- CPU is the time that all threads of a gateway's processes spent on a CPU (\`/proc/PID/task/*/schedstat\`); the mock and the load generator are other processes and do not count. A ratio is taken within one round; the table shows the median of these ratios, so it need not equal the ratio of the medians.
- Every round runs every scenario on every target in a new random order, each target in its own process that lives through the whole run. Within a scenario a target's time is cut into slices (200 ms of a closed loop, four waves of paced streams) that stand among those of the other targets, in a new random order each time: the speed of a shared machine moves by a third within minutes. The peers run at a stretch, and so does the target that records, which goes on writing when its load is over: after every slice the next target waits until the last one is at rest, and what that took is its own cost.
- What is not counted: a warm-up before the first round; windows of half a second (or waves of 20 events) before each scenario until the compilers of the target's runtime had nothing to do in two of them, ten at most; a short lead-in (150 ms, or such a wave) before each slice.
- Three parties share the cores, so answers per second are lower bounds. Ratios hold on a busy machine, absolute times do not: leave the machine alone while this runs.
- The mock paces by a 1 ms clock: of 500 streams about 25 get their event at the same moment.
- \`direct\` is the mock without a gateway: what it shows as delay is the harness's own, and is subtracted where "added" is said.
- The blocking check asks /healthz without pause and takes the longest wait during each 2 MB request, eight of them at each target in turn, six times over; most of it is reading 2 MB from a socket, which the relay pays too and which is subtracted.
- The soak reads the resident memory at rest, 14 s after each fifth of its requests: under load it rises and falls by some forty megabytes with the collector's long rounds.
- The peers run on Node and saturate far below the rest; they are spared B50 and P500.
- The product runs with client authentication, routing, metrics, usage and its exchange log on; samples are recorded by \`hopgate-recording\` alone, which is the cost of that; the key has limits, budgets and prices at \`hopgate-limited\` alone; traces and metrics are sent by \`hopgate-traced\` alone.`;

/** The whole report. */
export function report(run: Run): string {
  const goals = table(
    ['goal', 'must', 'aim', 'measured', ''],
    run.verdicts.map((v) => [v.goal, v.must, v.aim, v.measured, mark(v.pass)]),
  );
  const about = run.targets.map((t) => `- \`${t.name}\`: ${TARGET_ABOUT[t.name]}`).join('\n');
  const checks =
    Object.keys(run.checks).length === 0
      ? ''
      : `\n## Single checks, as measured\n\n\`\`\`json\n${JSON.stringify(run.checks, rounded, 1)}\n\`\`\`\n`;
  return `# Benchmark

${machine(run)}

## Goals

${goals}

## Targets

${about}

## Medians

${run.scenarios.map((scenario) => scenarioTable(run, scenario)).join('\n\n')}
${checks}
${CAVEATS}
`;
}

function rounded(_key: string, value: unknown): unknown {
  return typeof value === 'number' ? Math.round(value * 100) / 100 : value;
}

const sectionsOf = (text: string) => text.split(/^(?=## )/m).slice(1);
const headingOf = (section: string) => section.split('\n', 1)[0]!;

/** A new report, and behind it the sections that only the earlier one has: people wrote them. */
export function withEarlierSections(text: string, earlier: string): string {
  const own = new Set(sectionsOf(text).map(headingOf));
  const kept = sectionsOf(earlier).filter((section) => !own.has(headingOf(section)));
  return `${[text, ...kept].map((part) => part.trimEnd()).join('\n\n')}\n`;
}
