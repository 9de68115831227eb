/** `bun bench/run.ts`: measures the compiled product against a bare relay, nginx and peers; a full run writes RESULTS.md. */

import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { runChecks } from './checks.ts';
import { pinTo, stopChildren, stopOnSignals } from './children.ts';
import { startGenerator } from './generator.ts';
import { verdicts } from './goals.ts';
import { type Run, report, withEarlierSections } from './report.ts';
import { runRounds } from './rounds.ts';
import { SCENARIOS } from './scenarios.ts';
import { type Bench, TARGET_NAMES } from './target.ts';
import { startMock, startTargets } from './targets.ts';

const HELP = `bun bench/run.ts [options]

  --rounds N        rounds to take medians over (7; 3 with --quick)
  --only NAMES      only these, with commas: ${SCENARIOS.map((s) => s.name).join(', ')}, checks, soak, sessions
  --targets NAMES   only these, with commas: ${TARGET_NAMES.join(', ')}
  --quick           shorter runs, no peers, no soak: within two minutes
  --soak            the long memory check too (100,000 requests and 1,000 aborts, three ways)
  --cores PLACES    each on cores of its own: gateway=0-1,load=4,mock=5 (Linux' taskset)
  --pairs NAMES     only these pairs of sessions, with commas: messages>chat, …
  --write           RESULTS.md also where the targets are chosen
  --json            the whole result as JSON on stdout instead of the report
`;

const { values } = parseArgs({
  options: {
    rounds: { type: 'string' },
    only: { type: 'string' },
    targets: { type: 'string' },
    quick: { type: 'boolean', default: false },
    soak: { type: 'boolean', default: false },
    pairs: { type: 'string' },
    cores: { type: 'string' },
    write: { type: 'boolean', default: false },
    json: { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
});

const list = (text: string | undefined) => text?.split(',').map((name) => name.trim());

/** The chosen ones of `all`. @throws on a name that is not among them */
function chosen<T extends string>(
  all: readonly T[],
  names: readonly string[] | undefined,
  standard: readonly T[],
): T[] {
  if (names === undefined) return [...standard];
  const unknown = names.find((name) => !(all as readonly string[]).includes(name));
  if (unknown !== undefined) throw new Error(`unknown: ${unknown} (known: ${all.join(', ')})`);
  return all.filter((name) => names.includes(name));
}

const QUICK_TARGETS = ['direct', 'relay', 'hopgate', 'hopgate-armed', 'hopgate-m2c', 'hopgate-c2m'];

async function main(): Promise<number> {
  const began = Date.now();
  const { quick } = values;
  if (values.cores !== undefined) pinTo(values.cores);
  const parts = [...SCENARIOS.map((s) => s.name), 'checks', 'soak', 'sessions'] as const;
  const standard = quick
    ? (['J50', 'S50', 'B50', 'P500', 'checks'] as const)
    : parts.filter((name) => name !== 'soak');
  const only = chosen(parts, list(values.only), standard);
  if (values.soak && !only.includes('soak')) only.push('soak');
  const names = chosen(
    TARGET_NAMES,
    list(values.targets),
    TARGET_NAMES.filter((name) => !quick || QUICK_TARGETS.includes(name)),
  );
  const rounds = Number(values.rounds ?? (quick ? 3 : 7));
  if (!Number.isInteger(rounds) || rounds < 1) throw new Error('--rounds wants a whole number');
  const scenarios = SCENARIOS.filter((scenario) => only.includes(scenario.name));
  const dir = mkdtempSync(join(tmpdir(), 'hopgate-bench-'));
  const say = (line: string) => console.error(line);
  const mock = await startMock(dir);
  const bench: Bench = { mockPort: mock.port, mockPid: mock.pid, dir, say };
  const { targets, skipped } = await startTargets(names, bench);
  const generator = startGenerator(`${dir}/generator.log`);
  const share = quick ? 0.5 : 1;
  const results =
    scenarios.length === 0
      ? { cells: [], idle: {} }
      : await runRounds(bench, generator, targets, scenarios, rounds, share);
  const checks = await runChecks(bench, generator, targets, {
    checks: only.includes('checks'),
    soak: only.includes('soak'),
    sessions: only.includes('sessions'),
    rounds,
    pairs: list(values.pairs),
    quick,
  });
  const run: Run = {
    command: ['npm run bench --', ...process.argv.slice(2)].join(' ').replace(/ --$/, ''),
    rounds: scenarios.length === 0 ? 0 : rounds,
    seconds: (Date.now() - began) / 1000,
    targets,
    scenarios,
    skipped,
    results,
    checks,
    verdicts: verdicts(results, checks),
  };
  const text = report(run);
  console.log(values.json ? JSON.stringify({ ...run, targets: names }) : text);
  const isChosen = values.targets !== undefined && !values.write;
  const partial = quick || values.only !== undefined || isChosen;
  const file = new URL('./RESULTS.md', import.meta.url).pathname;
  if (!partial) writeFileSync(file, withEarlierSections(text, readFileSync(file, 'utf8')));
  say(partial ? 'a part of the whole: RESULTS.md stays as it is' : `written to ${file}`);
  rmSync(dir, { recursive: true, force: true });
  return run.verdicts.some((verdict) => verdict.pass === false) ? 1 : 0;
}

stopOnSignals();

if (values.help) {
  console.log(HELP);
} else {
  try {
    process.exitCode = await main();
  } catch (error) {
    console.error(error instanceof Error ? error.message : error);
    process.exitCode = 2;
  } finally {
    await stopChildren();
  }
  process.exit();
}
