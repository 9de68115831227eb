/** `bun bench/objects.ts`: how many objects of each type a request makes, which is the same on a busy machine as on a quiet one. */

import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { stopChildren, stopOnSignals } from './children.ts';
import { sleep } from './clock.ts';
import { startGenerator } from './generator.ts';
import { lasting, planFor, SCENARIOS } from './scenarios.ts';
import { type Bench, TARGET_NAMES } from './target.ts';
import { startMock, startTargets } from './targets.ts';

const HELP = `bun bench/objects.ts [options]

  --target NAME     hopgate, or another of its ways as \`run.ts\` names them (hopgate)
  --scenario NAME   the load: J50, S50, … (J50)
  --least N         types of which a request makes fewer are left out (0.5)

Runs the sources, without garbage collection. A scope (JSLexicalEnvironment) is made for each call of a function that
holds a closure, also where the closure is not made.
`;

const { values } = parseArgs({
  options: {
    target: { type: 'string', default: 'hopgate' },
    scenario: { type: 'string', default: 'J50' },
    least: { type: 'string', default: '0.5' },
    help: { type: 'boolean', default: false },
  },
});
const scenario = SCENARIOS.find(({ name }) => name === values.scenario);
const name = TARGET_NAMES.find((one) => one === values.target && one.startsWith('hopgate'));
if (values.help || scenario === undefined || name === undefined) {
  console.log(HELP);
  process.exit(values.help ? 0 : 2);
}

const dir = mkdtempSync(join(tmpdir(), 'hopgate-objects-'));
const counts = join(dir, 'counts.json');
const preload = join(dir, 'preload.ts');
const program = join(dir, 'program');
const main = new URL('../src/main.ts', import.meta.url).pathname;
writeFileSync(
  preload,
  `import { heapStats } from 'bun:jsc';
process.on('SIGUSR2', () => Bun.write(${JSON.stringify(counts)}, JSON.stringify(heapStats().objectTypeCounts)));`,
);
writeFileSync(
  program,
  `#!/bin/sh\nexec env BUN_JSC_useGC=false ${process.execPath} --preload ${preload} ${main} "$@"\n`,
);
chmodSync(program, 0o700);

stopOnSignals();
try {
  const mock = await startMock(dir);
  const generator = startGenerator(`${dir}/generator.log`);
  const bench: Bench = {
    mockPort: mock.port,
    mockPid: mock.pid,
    dir,
    say: (line) => console.error(line),
    program: { binary: program, env: {} },
  };
  const target = (await startTargets([name], bench)).targets[0];
  if (target === undefined) throw new Error('it does not start');
  const countsNow = async (): Promise<Record<string, number>> => {
    rmSync(counts, { force: true });
    process.kill(target.pid, 'SIGUSR2');
    for (let tried = 0; tried < 100; tried++) {
      await sleep(100);
      try {
        return JSON.parse(readFileSync(counts, 'utf8'));
      } catch {
        // Not written yet.
      }
    }
    throw new Error('it does not count its objects');
  };
  // First uses are over, and what is made once is made.
  await generator.run(planFor(lasting(scenario, 1500), target));
  const before = await countsNow();
  const { requests } = await generator.run(planFor(lasting(scenario, 800), target));
  const after = await countsNow();
  const made = Object.entries(after)
    .map(([type, count]) => ({ type, each: (count - (before[type] ?? 0)) / requests }))
    .filter(({ each }) => each >= Number(values.least))
    .toSorted((a, b) => b.each - a.each);
  console.log(`${requests} requests; objects for each:`);
  for (const { type, each } of made) console.log(`${each.toFixed(1).padStart(8)}  ${type}`);
} finally {
  await stopChildren();
  rmSync(dir, { recursive: true, force: true });
}
process.exit();
