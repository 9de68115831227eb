/** Checks of the shared engines: version, rights, clock, latency, what the cache evicts, and the replicas that run. */

import { type Config, configFingerprint } from '../../../config/config.ts';
import { within } from '../../../lib/loop/abort.ts';
import { printableLine } from '../../../lib/text/printable-text.ts';
import { redactText } from '../../../lib/text/redact.ts';
import { messageOf } from '../../../lib/text/thrown.ts';
import { EngineAway, type Sql } from '../../../state/engines/engine.ts';
import { openEngines } from '../../../state/engines/open-engines.ts';
import { liveReplicas } from '../../../state/engines/replicas.ts';
import type { StateMove } from '../../../state/move/paged-move.ts';
import type { CommandServices } from '../../command.ts';
import { plural } from '../../terminal.ts';
import { type Finding, finding } from './diagnosis.ts';

const HINTS = {
  cache:
    'Check engines.cache: is the server running, is the password right, does it want TLS (rediss://)?',
  database: 'Check engines.database: is the server running, are user, password and database right?',
  objects: 'Check engines.objects: endpoint, bucket, region and key.',
} as const;

/** Milliseconds to look for what the engines lack of this machine. */
const STATE_MS = 5000;

/** The list of what the store holds is in the database. */
const ALONE = [
  'nothing is stored in it without a database: recorded exchanges stay on each machine',
  'Set engines.database, or remove engines.objects.',
] as const;

export interface CheckEnginesOptions {
  readonly config: Config;
  /** The directory of the program's files. */
  readonly home: string;
  /** Of this program. */
  readonly version: string;
  readonly stateMoves: CommandServices['stateMoves'];
}

export async function checkEngines({
  config,
  home,
  version,
  stateMoves,
}: CheckEnginesOptions): Promise<readonly Finding[]> {
  const engines = openEngines(config.engines, () => {});
  try {
    const found = await Promise.all(
      engines.all.map(async (engine) => {
        const { name } = engine.state;
        const about = `engine ${name}`;
        try {
          const findings = await engine.examine();
          return findings.map(({ status, message, hint }) => finding(about, status, message, hint));
        } catch (thrown) {
          const why = messageOf(thrown);
          return [
            finding(about, 'fail', `it cannot be used: ${redactText(why).text}`, HINTS[name]),
          ];
        }
      }),
    );
    const replicas =
      engines.database === undefined
        ? []
        : await checkReplicas(engines.database, configFingerprint(config), version);
    const up = new Set(
      engines.all.filter(({ state }) => state.status === 'up').map(({ state }) => state.name),
    );
    const moves = await stateMoves({ home, config, engines, to: 'engines' });
    const state = await checkMoves(
      moves.filter(({ engine, byItself }) => up.has(engine) && byItself !== true),
      STATE_MS,
    );
    const alone = engines.objects !== undefined && engines.database === undefined;
    return [
      ...found.flat(),
      ...(alone ? [finding('engine objects', 'warn', ...ALONE)] : []),
      ...replicas,
      ...state,
    ];
  } finally {
    await engines.close();
  }
}

/** Nothing where none runs, or where the database cannot be asked, which is told elsewhere. */
async function checkReplicas(
  database: Sql,
  own: string,
  version: string,
): Promise<readonly Finding[]> {
  const replicas = await liveReplicas(database).catch(() => []);
  if (replicas.length === 0) return [];
  const count = plural(replicas.length, 'replica');
  // Another version may read the same file in another way.
  const others = replicas.filter((one) => one.version === version && one.config !== own);
  if (others.length === 0) return [finding('replicas', 'ok', `${count} run`)];
  const hosts = [...new Set(others.map(({ host }) => printableLine(host, 100)))].join(', ');
  return [
    finding(
      'replicas',
      'warn',
      `${count} run, ${others.length} of them with another configuration than this one: ${hosts}`,
      'Give all of them the same file, and restart or reload those that have an older one.',
    ),
  ];
}

const ABOUT = 'state';
const COMPARE = 'To compare all of it: hopgate state move --to engines --dry-run';

/**
 * One kind of state after the other, and nothing where there is nothing of before.
 * @param moves to the engines
 * @param patienceMs for all of them together
 */
export async function checkMoves(
  moves: readonly StateMove[],
  patienceMs: number,
): Promise<readonly Finding[]> {
  const end = performance.now() + patienceMs;
  const found: Finding[] = [];
  const missing: string[] = [];
  const late: string[] = [];
  let items = 0;
  for (const move of moves) {
    try {
      const compared = await within(end - performance.now(), move.compare(), () => undefined);
      if (compared === undefined) late.push(move.name);
      else if (compared.missing > 0) missing.push(plural(compared.missing, move.item));
      items += compared?.items ?? 0;
    } catch (thrown) {
      // The check of the engine itself reports it.
      if (thrown instanceof EngineAway) continue;
      const why = redactText(messageOf(thrown)).text;
      found.push(finding(ABOUT, 'warn', `${move.name}: ${why}`, COMPARE));
    }
  }
  if (missing.length > 0) {
    const what = `${listOf(missing)} of this machine are not in the engines`;
    found.push(finding(ABOUT, 'warn', what, 'Copy them: hopgate state move --to engines'));
  } else if (items > 0 && late.length === 0 && found.length === 0) {
    found.push(finding(ABOUT, 'ok', 'what this machine kept in its files is in the engines, too'));
  }
  if (late.length > 0) {
    const seconds = Math.round(patienceMs / 1000);
    const what = `not compared with the engines within ${seconds} s: ${late.join(', ')}`;
    found.push(finding(ABOUT, 'skip', what, COMPARE));
  }
  return found;
}

/** `a, b and c`. */
function listOf(parts: readonly string[]): string {
  const [last, ...others] = parts.toReversed();
  return others.length === 0 ? last! : `${others.toReversed().join(', ')} and ${last}`;
}
