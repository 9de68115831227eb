/** Checks of the shared engines: version, rights, clock, latency, what the cache evicts, and the replicas that run. */

import { type Config, configFingerprint } from '../../../config/config.ts';
import { printableLine } from '../../../lib/text/printable-text.ts';
import { redactText } from '../../../lib/text/redact.ts';
import { messageOf } from '../../../lib/text/thrown.ts';
import type { Sql } from '../../../state/engines/engine.ts';
import { openEngines } from '../../../state/engines/open-engines.ts';
import { liveReplicas } from '../../../state/engines/replicas.ts';
import type { CommandServices } from '../../command.ts';
import { plural } from '../../terminal.ts';
import { type Finding, finding } from './finding.ts';
import { checkMoves } from './moves.ts';

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
    const moves = stateMoves({ home, config, engines, to: 'engines' });
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
