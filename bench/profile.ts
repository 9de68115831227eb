/** `bun bench/profile.ts`: where the CPU of a small request or of a turn goes, function by function, native code and kernel with it. */

import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { build, hostTarget, type Target as Platform } from '../build.ts';
import { stopChildren, stopOnSignals } from './children.ts';
import { sleep } from './clock.ts';
import { startGenerator } from './generator.ts';
import { cpuBetween, cpuSample } from './process-usage.ts';
import { startProduct } from './product.ts';
import { CompiledCode, callTree, type Sample, samplesOf, treeLines } from './profile-samples.ts';
import { lasting, planFor, SCENARIOS } from './scenarios.ts';
import { runSession, SESSION_UPSTREAMS, type Server, sessionPairs } from './session-traffic.ts';
import { type Bench, TARGET_NAMES } from './target.ts';
import { startMock, startTargets } from './targets.ts';

const HELP = `bun bench/profile.ts [options]

  --target NAME     hopgate, or another of its ways as \`run.ts\` names them (hopgate)
  --scenario NAME   the load: J50, S50, B50, … (J50)
  --session PAIR    in place of both: turns of agents' sessions, as client>upstream (messages>chat)
  --warm SECONDS    before anything counts (15)
  --seconds N       (6)
  --least PERCENT   functions below this are left out (0.5)
  --thread NAME     of which thread they are told (the busiest)

Needs Linux' perf. What is profiled is built for it, into dist/readable: functions keep their names there.
`;

const { values } = parseArgs({
  options: {
    target: { type: 'string', default: 'hopgate' },
    scenario: { type: 'string', default: 'J50' },
    session: { type: 'string' },
    warm: { type: 'string', default: '15' },
    seconds: { type: 'string', default: '6' },
    least: { type: 'string', default: '0.5' },
    thread: { type: 'string' },
    help: { type: 'boolean', default: false },
  },
});

/** Runs for at least so many milliseconds; gives how many requests, streams, events or turns were done. */
type Load = (ms: number) => Promise<number>;

interface Profiled {
  readonly server: Server;
  readonly load: Load;
  readonly unit: string;
}

/** A scenario of `run.ts`. */
async function scenarioLoad(bench: Bench): Promise<Profiled> {
  const scenario = SCENARIOS.find(({ name }) => name === values.scenario);
  const name = TARGET_NAMES.find((one) => one === values.target && one.startsWith('hopgate'));
  if (scenario === undefined) throw new Error(`unknown scenario: ${values.scenario}`);
  if (name === undefined) throw new Error(`unknown target: ${values.target}`);
  const { targets } = await startTargets([name], bench);
  const target = targets[0];
  if (target === undefined) throw new Error(`${name} does not start`);
  const generator = startGenerator(`${bench.dir}/generator.log`);
  const load: Load = async (ms) => {
    const result = await generator.run(planFor(lasting(scenario, ms), target));
    return scenario.unit === 'event' ? result.events / 1000 : result.requests;
  };
  const unit = scenario.unit === 'event' ? 'thousand events' : scenario.unit;
  return { server: target, load, unit };
}

/** Sessions of a pair, one after the other. */
async function sessionLoad(bench: Bench, name: string): Promise<Profiled> {
  const [pair] = sessionPairs([name]);
  const { client, upstream } = pair!;
  const { child, port } = await startProduct(bench, {
    upstream: SESSION_UPSTREAMS[upstream],
    name: 'profiled',
  });
  const server = { pid: child.pid, port };
  const load: Load = async (ms) => {
    let turns = 0;
    for (const until = Date.now() + ms; Date.now() < until; ) {
      turns += (await runSession(server, client)).turns.length;
    }
    return turns;
  };
  return { server, load, unit: 'turn' };
}

/** Samples the stacks of a process while `work` runs. @throws when perf does not */
async function recorded<T>(pid: number, file: string, work: () => Promise<T>): Promise<T> {
  const perf = Bun.spawn(
    ['perf', 'record', '-k', 'mono', '-F', '1500', '-g', '-p', String(pid), '-o', file],
    { stdout: 'ignore', stderr: 'pipe' },
  );
  await sleep(300);
  const done = await work();
  perf.kill('SIGINT');
  await perf.exited;
  if ((await Bun.file(file).exists()) === false) {
    throw new Error(`perf recorded nothing: ${await new Response(perf.stderr).text()}`);
  }
  return done;
}

function stacksIn(file: string): string {
  const fields = ['-F', 'comm,ip,sym,dso', '--max-stack', '127'];
  const { success, stdout, stderr } = Bun.spawnSync(['perf', 'script', '-i', file, ...fields]);
  if (!success) throw new Error(`perf script failed: ${stderr.toString().slice(0, 500)}`);
  return stdout.toString();
}

/** What the engine wrote about the code that it compiled in this process. */
function compiledBy(pid: number, dir: string): CompiledCode {
  const names = readdirSync(dir).filter((file) => file.endsWith(`-${pid}.dump`));
  // A server replaces itself when it begins, and the process before has written one, too.
  const dumps = names.map((name) => readFileSync(join(dir, name)));
  const [dump] = dumps.toSorted((a, b) => b.length - a.length);
  if (dump === undefined) throw new Error('the engine wrote no dump of its compiled code');
  return new CompiledCode(dump);
}

if (values.help) {
  console.log(HELP);
  process.exit(0);
}
if (Bun.which('perf') === null) {
  console.error('perf is not installed (Debian: linux-perf).');
  process.exit(1);
}
const dir = mkdtempSync(join(tmpdir(), 'hopgate-profile-'));
stopOnSignals();
try {
  const { outfile } = await build(hostTarget() as Platform, { readable: true });
  const env = { BUN_JSC_useJITDump: '1', BUN_JSC_jitDumpDirectory: dir };
  const mock = await startMock(dir);
  const bench: Bench = {
    mockPort: mock.port,
    mockPid: mock.pid,
    dir,
    say: (line) => console.error(line),
    program: { binary: outfile, env },
  };
  const { server, load, unit } = await (values.session === undefined
    ? scenarioLoad(bench)
    : sessionLoad(bench, values.session));
  await load(Number(values.warm) * 1000);
  const file = join(dir, 'perf.data');
  const before = cpuSample(server.pid);
  const units = await recorded(server.pid, file, () => load(Number(values.seconds) * 1000));
  const microseconds = cpuBetween(before, cpuSample(server.pid)) / 1000 / units;
  const samples = [...samplesOf(stacksIn(file), compiledBy(server.pid, dir))];
  const threads = Map.groupBy(samples, ({ thread }) => thread);
  const worth = microseconds / samples.length;
  console.log(
    `${microseconds.toFixed(1)} µs of CPU a ${unit}, ${samples.length} samples; by thread:`,
  );
  const byShare = [...threads].sort(([, a], [, b]) => b.length - a.length);
  for (const [thread, own] of byShare) {
    console.log(`${(own.length * worth).toFixed(1).padStart(8)}  ${thread}`);
  }
  const [thread, told] = byShare.find(([name]) => name === values.thread) ??
    byShare[0] ?? ['', [] as Sample[]];
  const least = (samples.length * Number(values.least)) / 100;
  console.log(
    `\nIn ${thread}, µs a ${unit}:\n${treeLines(callTree(told), worth, least).join('\n')}`,
  );
} finally {
  await stopChildren();
  rmSync(dir, { recursive: true, force: true });
}
