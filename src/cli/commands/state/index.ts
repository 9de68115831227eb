import { redactText } from '../../../lib/text/redact.ts';
import { messageOf } from '../../../lib/text/thrown.ts';
import { EngineAway } from '../../../state/engines/engine.ts';
import { openEngines } from '../../../state/engines/open-engines.ts';
import type { MoveComparison, MoveDirection, StateMove } from '../../../state/move/paged-move.ts';
import { type CommandSpec, type Invocation, JSON_OPTION, UsageError } from '../../command.ts';
import { loadOrReport } from '../../load-config.ts';
import { plural, table } from '../../terminal.ts';

const DIRECTIONS: readonly MoveDirection[] = ['engines', 'embedded'];
/** What shells call an end by SIGINT. */
const INTERRUPTED = 130;
const USAGE = 'Usage: hopgate state move --to engines|embedded [--dry-run]';

export const STATE: CommandSpec = {
  name: 'state',
  group: 'admin',
  summary: 'move keys, budgets, spend, memory and more to shared engines, or back',
  description: [
    'With engines in the configuration, replicas keep their state there. move copies what this machine kept in its files before that: keys with their secrets, what counts towards budgets, spend rows, stored responses, whose files and batches at vendors are, memory, recorded exchanges. --to embedded copies what the engines hold into the files of this machine.',
    'The source stays as it is. The command can run while gateways run, and can be stopped and started again: nothing is written twice, and what counts towards budgets is added once. Run it before the restart that changes where state is kept, and once more after it, for what was added in between.',
    'When all is copied, both sides are read again and compared.',
    'Several machines can move to the same engines: each adds what it has.',
  ],
  arguments: [{ name: 'action', summary: 'what to do', choices: ['move'], required: true }],
  options: {
    to: {
      value: 'SIDE',
      summary: 'where to: the engines of the configuration, or the files of this machine',
      choices: DIRECTIONS,
    },
    'dry-run': { short: 'n', summary: 'only compare both sides' },
    only: { value: 'KINDS', summary: 'move only these, separated by commas, such as keys,budgets' },
    json: JSON_OPTION,
  },
  examples: {
    'hopgate state move --to engines --dry-run': 'Shows what would be copied.',
    'hopgate state move --to engines': 'Copies it and compares both sides.',
    'hopgate state move --to embedded': 'Copies the state back to this machine.',
  },
  exits: {
    0: 'all is on both sides; with --dry-run: both sides could be read',
    1: 'something could not be read or written, or is not on the other side',
    [INTERRUPTED]: 'it was stopped with Ctrl-C; run again, it continues',
  },
  run: runState,
};

/** The move of one kind of state; `problem`: it could not be read or written. */
interface MoveResult {
  readonly move: StateMove;
  readonly before?: MoveComparison;
  readonly copied?: number;
  readonly after?: MoveComparison;
  readonly problem?: string;
}

async function runState(invocation: Invocation): Promise<number> {
  const { io, err, flag, text } = invocation;
  const to = DIRECTIONS.find((one) => one === text('to'));
  if (invocation.arguments[0] !== 'move' || invocation.arguments.length > 1 || to === undefined) {
    throw new UsageError(USAGE);
  }
  const config = await loadOrReport(invocation);
  if (config === undefined) return 1;
  const engines = openEngines(config.engines, () => {});
  const interrupt = () => {
    err.line('hopgate: stopped. What was copied stays; run the same command again to continue.');
    process.exit(INTERRUPTED);
  };
  process.once('SIGINT', interrupt);
  try {
    const { stateMoves } = await invocation.services();
    const moves = await stateMoves({ home: io.environment.home, config, engines, to });
    if (moves.length === 0) {
      err.line(
        'hopgate: There is nothing to move: the configuration names no engine that keeps state. Add "engines" first, as "Many machines" in the manual describes.',
      );
      return 1;
    }
    const results: MoveResult[] = [];
    for (const move of chosen(moves, text('only'))) {
      results.push(await moved(move, flag('dry-run'), invocation));
    }
    report(results, to, invocation);
    return results.every((one) => isWell(one, flag('dry-run'))) ? 0 : 1;
  } finally {
    process.off('SIGINT', interrupt);
    await engines.close();
  }
}

function chosen(moves: readonly StateMove[], only: string | undefined): readonly StateMove[] {
  if (only === undefined) return moves;
  const names = only.split(',').map((name) => name.trim());
  const known = moves.map(({ name }) => name);
  const unknown = names.find((name) => !known.includes(name));
  if (unknown !== undefined) {
    throw new UsageError(`--only: there is no "${unknown}" to move, but ${known.join(', ')}.`);
  }
  return moves.filter(({ name }) => names.includes(name));
}

async function moved(move: StateMove, dry: boolean, { err }: Invocation): Promise<MoveResult> {
  let result: MoveResult = { move };
  try {
    const before = await move.compare();
    result = { move, before };
    if (dry || before.missing === 0) return { ...result, after: before, copied: 0 };
    let shown = 0;
    const copied = await move.copy((done, all) => {
      const now = Date.now();
      if (now - shown < PROGRESS_MS) return;
      // The first line comes only where a copy takes long.
      if (shown > 0) err.line(`${move.name}: ${done} of ${all}`);
      shown = now;
    });
    return { ...result, copied, after: await move.compare() };
  } catch (thrown) {
    const why = redactText(messageOf(thrown)).text;
    const problem = thrown instanceof EngineAway ? `the ${thrown.engine} is away: ${why}` : why;
    return { ...result, problem };
  }
}

/** Between two lines about the same copy. */
const PROGRESS_MS = 5000;

const isWell = ({ after, problem }: MoveResult, dry: boolean): boolean =>
  problem === undefined && after !== undefined && (dry || after.missing === 0);

function report(
  results: readonly MoveResult[],
  to: MoveDirection,
  { out, err, flag }: Invocation,
): void {
  const dry = flag('dry-run');
  if (flag('json')) {
    const all = results.map(({ move: { name }, ...rest }) => ({ name, ...rest }));
    out.line(JSON.stringify({ to, dry_run: dry, state: all }, null, 2));
    return;
  }
  const rows = results.map(({ move, before, copied, after }) => {
    const number = (value: number | undefined) => (value === undefined ? '?' : String(value));
    return [
      move.name,
      number(before?.items),
      number(before && before.items - before.missing),
      number(dry ? before?.missing : copied),
      number(after?.conflicts),
    ];
  });
  const head = ['state', 'in all', 'already there', dry ? 'to copy' : 'copied', 'differ'];
  for (const line of table(rows, head)) out.line(line);
  for (const { move, after, problem } of results) {
    for (const note of after?.notes ?? []) out.line(`${move.name}: ${note}`);
    if (problem !== undefined) err.line(`hopgate: ${move.name}: ${problem}`);
    else if (!dry && after !== undefined && after.missing > 0) {
      err.line(
        `hopgate: ${move.name}: ${plural(after.missing, move.item)} came meanwhile: run the command again.`,
      );
    }
  }
}
