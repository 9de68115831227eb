/** `bun bench/beside.ts BINARY…`: the same load on several builds in turn, so that a slow moment of the machine meets all of them. */

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { stopChildren, stopOnSignals } from './children.ts';
import { startGenerator } from './generator.ts';
import { cpuBetween, cpuSample } from './process-usage.ts';
import { lasting, planFor, SCENARIOS } from './scenarios.ts';
import { type Bench, TARGET_NAMES, type Target } from './target.ts';
import { startMock, startTargets } from './targets.ts';

const HELP = `bun bench/beside.ts BINARY… [options]

The first is what the others are compared with; \`relay\` among them is the bare relay.

  --target NAMES    hopgate, or others of its ways as \`run.ts\` names them, with commas: each build in each (hopgate)
  --scenario NAME   the load: J50, S50, B50, … (J50)
  --slices N        how often each is measured (15)
  --warm N          slices before that at most, until hardly anything is compiled (40)
  --ms N            milliseconds of one slice (1500)
`;

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    target: { type: 'string', default: 'hopgate' },
    scenario: { type: 'string', default: 'J50' },
    slices: { type: 'string', default: '15' },
    warm: { type: 'string', default: '40' },
    ms: { type: 'string', default: '1500' },
    help: { type: 'boolean', default: false },
  },
});

const scenario = SCENARIOS.find(({ name }) => name === values.scenario);
const names = TARGET_NAMES.filter(
  (one) => values.target.split(',').includes(one) && one.startsWith('hopgate'),
);
if (values.help || positionals.length === 0 || scenario === undefined || names.length === 0) {
  console.log(HELP);
  process.exit(values.help ? 0 : 2);
}
interface Build {
  readonly binary: string;
  readonly target: Target;
  /** CPU of all threads and of each, for each slice. */
  readonly micros: number[];
  readonly threads: Map<string, number[]>;
}

const median = (list: readonly number[]) => list.toSorted((a, b) => a - b)[list.length >> 1] ?? 0;
const dir = mkdtempSync(join(tmpdir(), 'hopgate-beside-'));
stopOnSignals();
try {
  const mock = await startMock(dir);
  const generator = startGenerator(`${dir}/generator.log`);
  const builds: Build[] = [];
  const asked = positionals.flatMap((binary) =>
    binary === 'relay'
      ? [[binary, 'relay'] as const]
      : names.map((name) => [binary, name] as const),
  );
  for (const [binary, name] of asked) {
    const bench: Bench = {
      mockPort: mock.port,
      mockPid: mock.pid,
      dir: mkdtempSync(join(dir, 'build-')),
      say: (line) => console.error(line),
      program: { binary, env: {} },
    };
    const target = (await startTargets([name], bench)).targets[0];
    if (target === undefined) throw new Error(`${binary} does not start`);
    builds.push({ binary, target, micros: [], threads: new Map() });
  }
  const plan = lasting(scenario, Number(values.ms));
  /** One slice of a build: CPU by thread, µs a unit. */
  const sliceOf = async ({ target }: Build) => {
    const before = cpuSample(target.pid);
    const result = await generator.run(planFor(plan, target));
    const after = cpuSample(target.pid);
    const units = scenario.unit === 'event' ? result.events : result.requests;
    const spent = (thread?: string) => cpuBetween(before, after, thread) / 1000 / units;
    const names = new Set([...after.values()].map(({ name }) => name));
    return { all: spent(), threads: [...names].map((one) => [one, spent(one)] as const) };
  };
  for (let slice = 0, calm = 0; slice < Number(values.warm) && calm < 2; slice++) {
    let isCalm = true;
    for (const build of builds) {
      const { all, threads } = await sliceOf(build);
      const compiling = threads.find(([thread]) => thread === 'JITWorker')?.[1] ?? 0;
      if (compiling > all / 50) isCalm = false;
    }
    calm = isCalm ? calm + 1 : 0;
  }
  for (let slice = 0; slice < Number(values.slices); slice++) {
    for (const build of builds) {
      const { all, threads } = await sliceOf(build);
      build.micros.push(all);
      for (const [thread, spent] of threads) {
        build.threads.set(thread, [...(build.threads.get(thread) ?? []), spent]);
      }
    }
  }
  const first = builds[0]!.micros;
  for (const { binary, target, micros, threads } of builds) {
    const ratio = median(micros.map((one, at) => one / first[at]!));
    const parts = [...threads]
      .map(([thread, spent]) => [thread, median(spent)] as const)
      .filter(([, spent]) => spent > median(micros) / 100)
      .toSorted(([, a], [, b]) => b - a)
      .map(([thread, spent]) => `${thread} ${spent.toFixed(1)}`);
    console.log(
      `${median(micros).toFixed(2).padStart(8)} µs a ${scenario.unit}  ×${ratio.toFixed(3)}  ${binary}${target.name === 'relay' ? '' : ` ${target.name}`}  (${parts.join(', ')})`,
    );
  }
} finally {
  await stopChildren();
  rmSync(dir, { recursive: true, force: true });
}
