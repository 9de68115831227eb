/** `bun bench/beside.ts BINARY…`: the same load on several builds in turn, so that a slow moment of the machine meets all of them. */

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { stopChildren, stopOnSignals } from './children.ts';
import { startGenerator } from './generator.ts';
import { cpuBetween, cpuSample } from './process-usage.ts';
import { lasting, planFor, SCENARIOS } from './scenarios.ts';
import { type Bench, TARGET_NAMES } from './target.ts';
import { startMock, startTargets } from './targets.ts';

const HELP = `bun bench/beside.ts BINARY… [options]

The first binary is what the others are compared with.

  --target NAME     hopgate, or another of its ways as \`run.ts\` names them (hopgate)
  --scenario NAME   the load: J50, S50, B50, … (J50)
  --slices N        how often each is measured (15)
  --ms N            milliseconds of one slice (1500)
`;

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    target: { type: 'string', default: 'hopgate' },
    scenario: { type: 'string', default: 'J50' },
    slices: { type: 'string', default: '15' },
    ms: { type: 'string', default: '1500' },
    help: { type: 'boolean', default: false },
  },
});

const scenario = SCENARIOS.find(({ name }) => name === values.scenario);
const name = TARGET_NAMES.find((one) => one === values.target && one.startsWith('hopgate'));
if (values.help || positionals.length === 0 || scenario === undefined || name === undefined) {
  console.log(HELP);
  process.exit(values.help ? 0 : 2);
}
const median = (list: readonly number[]) => list.toSorted((a, b) => a - b)[list.length >> 1] ?? 0;
const dir = mkdtempSync(join(tmpdir(), 'hopgate-beside-'));
stopOnSignals();
try {
  const mock = await startMock(dir);
  const generator = startGenerator(`${dir}/generator.log`);
  const builds = [];
  for (const binary of positionals) {
    const bench: Bench = {
      mockPort: mock.port,
      mockPid: mock.pid,
      dir: mkdtempSync(join(dir, 'build-')),
      say: (line) => console.error(line),
      program: { binary, env: {} },
    };
    const target = (await startTargets([name], bench)).targets[0];
    if (target === undefined) throw new Error(`${binary} does not start`);
    builds.push({ binary, target, micros: [] as number[] });
  }
  const plan = lasting(scenario, Number(values.ms));
  for (let slice = -2; slice < Number(values.slices); slice++) {
    for (const { target, micros } of builds) {
      const before = cpuSample(target.pid);
      const result = await generator.run(planFor(plan, target));
      const units = scenario.unit === 'event' ? result.events : result.requests;
      // The first slices compile.
      if (slice >= 0) micros.push(cpuBetween(before, cpuSample(target.pid)) / 1000 / units);
    }
  }
  const first = builds[0]!.micros;
  for (const { binary, micros } of builds) {
    const ratio = median(micros.map((one, at) => one / first[at]!));
    console.log(
      `${median(micros).toFixed(2).padStart(8)} µs a ${scenario.unit}  ×${ratio.toFixed(3)}  ${binary}`,
    );
  }
} finally {
  await stopChildren();
  rmSync(dir, { recursive: true, force: true });
}
